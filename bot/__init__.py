"""Talks to the world: Slack, models, text messages, the clock and the command line."""
