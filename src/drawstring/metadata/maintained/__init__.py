"""Maintainers of the partitions of the metadata table, one module for each kind."""
