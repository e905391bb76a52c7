"""What catalogs know of a table: a Hive metastore, AWS Glue."""
