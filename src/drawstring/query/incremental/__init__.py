"""Incremental queries, change (CDC) queries, and batches that follow a table."""
