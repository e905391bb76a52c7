"""ORC: reading and writing of base files and of native log files."""
