"""What changes rows between their source and the table."""
