"""Simulated lives of tables: random steps, and the faults that they are exposed to."""
