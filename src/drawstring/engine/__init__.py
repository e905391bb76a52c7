"""Engines move rows and run tasks; they know nothing of tables."""
