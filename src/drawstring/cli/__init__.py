"""The command line: `drawstring show|timeline|files|head|compact|cluster PATH`."""

from drawstring.cli.app import main

__all__ = ["main"]
