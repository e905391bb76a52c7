"""Avro and Arrow schemas, meta columns and schema evolution."""
