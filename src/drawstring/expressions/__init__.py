"""Translation of SQL conditions and values to Arrow expressions."""
