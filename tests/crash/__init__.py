"""Processes that are killed, frozen or cut off from their database at every point, and what is left afterwards."""
