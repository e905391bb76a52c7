"""File formats: encoding and decoding between bytes and Arrow; independent of tables."""
