"""Tests of the flows and the engine."""
