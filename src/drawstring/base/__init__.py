"""Errors, clock and ids, named bounds: what every other room may use."""
