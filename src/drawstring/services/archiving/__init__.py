"""Archiving."""
