"""Queries: which slices, which rows, which columns."""
