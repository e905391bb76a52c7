"""Query planning: from a query to the file slices, rows and columns that it reads."""
