"""Row expressions: SQL conditions and values as Arrow expressions."""
