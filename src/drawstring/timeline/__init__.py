"""The timeline: every action on the table in order, and the table's properties file."""
