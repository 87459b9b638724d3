"""Tests of the hike planner's parts."""
