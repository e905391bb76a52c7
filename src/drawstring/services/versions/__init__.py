"""Upgrade and downgrade."""
