"""A bank whose clerks, janitors and auditors are processes that work on one table at the same time."""
