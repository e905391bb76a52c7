"""Bootstrap: a table from a folder of Parquet files."""
