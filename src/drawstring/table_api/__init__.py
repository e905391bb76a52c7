"""Groups of calls on an open table, such as `table.services`."""
