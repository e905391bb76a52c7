"""Bloom filters of record keys, in base files and log files."""
