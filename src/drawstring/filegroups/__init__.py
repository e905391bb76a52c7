"""File groups: which files make up a table at an instant, reading a slice, writing one."""
