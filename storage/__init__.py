"""What is remembered: runs, checkpoints, approvals, effects and everything that was said about them."""
