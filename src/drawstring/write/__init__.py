"""Write operations: keys, tagging, placement into file groups, commit."""
