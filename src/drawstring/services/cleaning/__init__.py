"""Cleaning."""
