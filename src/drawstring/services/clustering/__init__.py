"""Clustering, base-file compaction, and resizing of consistent hashing buckets."""
