"""Cleaning of old file versions."""
