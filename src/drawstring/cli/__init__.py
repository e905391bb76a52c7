"""The command line: `drawstring show PATH`, and a command for each service of `drawstring.Table`."""

from drawstring.cli.app import main

__all__ = ["main"]
