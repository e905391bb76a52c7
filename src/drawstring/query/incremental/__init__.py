"""Incremental and change queries, and tables that are followed."""
