"""What happens: the engine, and every flow built on it."""
