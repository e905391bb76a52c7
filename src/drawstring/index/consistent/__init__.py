"""Consistent hashing bucket index."""
