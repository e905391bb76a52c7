"""Rollback, restore, and recovery from failed writes."""
