"""ORC base files."""
