"""Bytes to Arrow and back; nothing here knows about tables."""
