"""Placement of records: file sizing, file groups and files."""
