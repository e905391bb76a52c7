"""Options by subject: keys, types, defaults and texts."""
