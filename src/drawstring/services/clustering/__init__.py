"""Clustering, base-file compaction, and the resizing of buckets."""
