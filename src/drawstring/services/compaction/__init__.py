"""Compaction and log compaction."""
