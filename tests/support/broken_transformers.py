"""A module that cannot be imported, named by tests."""

raise RuntimeError("not today")
