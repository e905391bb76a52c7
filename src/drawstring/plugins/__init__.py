"""Optional parts of drawstring: plug-ins, which the other rooms find by entry points and do not import."""
