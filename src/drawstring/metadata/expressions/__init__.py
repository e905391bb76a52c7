"""Expressions of columns that expression indexes hold: Hudi's functions, computed as Spark computes them."""
