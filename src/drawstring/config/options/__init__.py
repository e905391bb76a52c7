"""The registry of all options, and the options of one write or read as typed fields."""
