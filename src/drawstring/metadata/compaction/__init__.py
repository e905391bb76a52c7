"""Compaction of the metadata table: into base files, or of many log files into one."""
