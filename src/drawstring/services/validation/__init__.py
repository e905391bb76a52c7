"""Validation and repair."""
