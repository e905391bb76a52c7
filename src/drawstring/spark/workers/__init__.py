"""Functions that run in Spark's Python workers, and the rows that they exchange with Spark."""
