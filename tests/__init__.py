"""Tests, laid out like the packages they prove."""
