"""Avro and Arrow schemas, the meta columns, evolution."""
