"""Writing under protection: the table lock, and what must be settled before a write."""
