"""Writes of DataFrames to tables."""
