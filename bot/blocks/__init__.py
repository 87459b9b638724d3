"""Slack's side of what people meet: cards, modals and the inbox as Block Kit, made by pure functions from values."""
