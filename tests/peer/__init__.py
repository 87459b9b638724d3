"""Ours beside other people's tools."""
