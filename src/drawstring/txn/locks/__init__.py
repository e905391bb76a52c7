"""The table lock, its queue, and the leases of table services."""
