"""Writing base files and log files of a file group."""
