"""Options and table properties: every key text lives here, parsed once at the edge."""
