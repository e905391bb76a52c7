"""Writes that read the table: merge, update and delete by condition, partial updates."""
