"""Adapters: everything the bot talks to, one vendor a file."""
