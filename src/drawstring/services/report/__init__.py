"""A report about a table: facts, and a page that shows them."""
