"""From a record to its file group, and from there to a file."""
