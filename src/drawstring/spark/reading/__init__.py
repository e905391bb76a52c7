"""Reads in Spark: DataFrames, the Python data source, views and streams."""
