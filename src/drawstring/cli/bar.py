"""The progress bar of commands that take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as RichProgress

from drawstring.cli.printable import printable
from drawstring.services.progress import Progress

Began: TypeAlias = Callable[[str], Progress]
"""Told what begins now; returns what is told how far it is."""


@contextmanager
def progress_bar(title: str) -> Iterator[Began]:
    """Show a bar on standard error, if that is a terminal, for a block of code.

    Args:
        title: of the bar until something begins.
    """
    console = Console(stderr=True)
    with RichProgress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(_plain(title), total=None)

        def began(what: str) -> Progress:
            bar.update(task, description=_plain(what), completed=0, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield began


def _plain(text: str) -> str:
    """Return a text that the bar, which reads descriptions as markup, shows as it is."""
    return escape(printable(text))
