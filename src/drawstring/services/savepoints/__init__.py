"""Savepoints."""
