"""The Spark engine and its Python workers."""
