"""Domain model of the table format, as frozen dataclasses without I/O."""
