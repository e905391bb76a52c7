"""Options of streams, and of what follows their commits."""
