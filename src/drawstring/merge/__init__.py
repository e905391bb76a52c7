"""Record merging: which version of a record survives, and with which values."""
