"""Global indexes."""
