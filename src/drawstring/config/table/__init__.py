"""The configuration of a table: the properties file, its typed form, and the properties of a new table."""
