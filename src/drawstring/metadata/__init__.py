"""The metadata table: what it says of the table's files, statistics and keys."""
