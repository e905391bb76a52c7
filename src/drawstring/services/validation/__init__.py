"""Validation and repair of tables."""
