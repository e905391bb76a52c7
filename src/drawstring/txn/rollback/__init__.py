"""Rollback, restore, and recovery from writers that died."""
