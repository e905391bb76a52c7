"""File groups and slices at an instant, from timeline and listing."""
