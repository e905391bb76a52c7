"""Errors, clock, ids, named bounds and other helpers that every room may use."""
