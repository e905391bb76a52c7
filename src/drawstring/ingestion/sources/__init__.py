"""Where ingested rows come from."""
