"""Writes of DataFrames."""
