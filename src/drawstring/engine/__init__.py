"""Engines: they move rows and run tasks, and know nothing about tables."""
