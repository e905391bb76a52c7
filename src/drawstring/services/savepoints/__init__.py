"""Savepoints, and restore to one."""
