"""Apache Hudi's own SQL tests, run by an interpreter on drawstring and on Apache Hudi."""
