"""The archived timeline of both layouts."""
