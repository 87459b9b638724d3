"""Signoff against programs that nobody here wrote: another Slack, other models."""
