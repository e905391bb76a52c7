"""The timeline of a table, its archive, and the table's properties file."""
