"""Reads on Spark: DataFrames, the data source, views, streams."""
