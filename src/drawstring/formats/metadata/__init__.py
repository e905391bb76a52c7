"""Contents of timeline files: commit metadata, plans, and the metadata of table services."""
