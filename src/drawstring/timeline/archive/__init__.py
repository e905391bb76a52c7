"""The archived timeline in both layouts."""
