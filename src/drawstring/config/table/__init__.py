"""The configuration of a table: its properties file, typed, and the properties of a new table."""
