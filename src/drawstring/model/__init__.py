"""The nouns of the format as frozen dataclasses; no I/O here."""
