"""Avro: container files, and the datums of log blocks, column by column."""
