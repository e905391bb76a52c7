"""Command line: `drawstring show PATH`, and a command for each table service of `drawstring.Table`."""

from drawstring.cli.app import main

__all__ = ["main"]
