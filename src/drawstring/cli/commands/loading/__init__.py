"""Commands that fill tables from elsewhere."""
