"""Reading a file slice."""
