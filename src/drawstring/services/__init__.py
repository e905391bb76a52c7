"""Table services: each has a pure plan and a runner."""
