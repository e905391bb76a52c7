"""Avro: container files, and the column-wise encoding and decoding of datums in log blocks."""
