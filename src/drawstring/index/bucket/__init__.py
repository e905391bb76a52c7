"""Simple bucket index."""
