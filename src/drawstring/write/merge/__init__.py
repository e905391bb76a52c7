"""Writes that read the table: merge, update, delete by condition, partial updates."""
