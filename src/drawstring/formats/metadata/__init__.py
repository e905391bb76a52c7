"""Contents of timeline files: commits, plans, and the metadata of table services."""
