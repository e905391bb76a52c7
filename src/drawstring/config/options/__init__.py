"""The option type, the registry of all options, and the parsed options of a write or read."""
