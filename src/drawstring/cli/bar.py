"""Progress bar of long-running commands."""

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
"""Called with the name of a step that begins; returns the progress callback of the step."""


@contextmanager
def progress_bar(title: str) -> Iterator[Began]:
    """Show a progress bar on standard error, if that is a terminal, during a block of code.

    Args:
        title: title of the bar until a step begins.
    """
    console = Console(stderr=True)
    with RichProgress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(_plain(title), total=None)

        def began(what: str) -> Progress:
            bar.update(task, description=_plain(what), completed=0, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield began


def _plain(text: str) -> str:
    """Escape a text for the bar, which parses descriptions as markup."""
    return escape(printable(text))


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """Show a line that changes on standard error, if that is a terminal, during a block of code.

    Args:
        text: what it says at first.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda changed: None
        return
    with console.status(_plain(text)) as status:
        yield lambda changed: status.update(_plain(changed))
