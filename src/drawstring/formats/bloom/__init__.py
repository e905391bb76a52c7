"""Bloom filters of record keys."""
