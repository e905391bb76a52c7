"""Indexes: from a record key to the file group that has it."""
