"""Table services: each a pure plan and a runner."""
