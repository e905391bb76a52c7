"""The table lock, and the leases of services."""
