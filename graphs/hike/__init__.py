"""The parts of the hike planner that need no graph: its rules, its words, what people see of it."""
