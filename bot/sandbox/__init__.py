"""A stand-in for Slack on loopback: Web API, Socket Mode, people and one page."""
