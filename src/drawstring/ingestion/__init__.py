"""What `drawstring.ingest` does: batches of a source, each written once with the position behind it.

checkpoint in the table ── source: the next batch, within limits ── transformers ── table, new checkpoint
"""
