"""Option definitions by subject: keys, types, defaults and descriptions."""
