"""Which version of a record wins."""
