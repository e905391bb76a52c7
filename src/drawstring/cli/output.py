r"""Print the output of commands: tables and sentences for people, JSON for machines, and progress bars.

Commands print with these functions only. They escape control characters and rich markup, since values,
names and paths come from untrusted tables. Characters that move the cursor, change colours or the direction
of text, break lines or are invisible are printed as Python escapes: `\x1b`, `\u202e`.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from decimal import Decimal
from typing import Final, TypeAlias

from cyclopts import CycloptsError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as RichProgress
from rich.table import Table as Grid
from rich.text import Text

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.model.result import Result
from drawstring.services.progress import Progress

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text
    "\u00ad\u180e\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible, or a new line
    "\ud800-\udfff"  # halves of characters: bytes of a file name that are not UTF-8
    "\U000e0000-\U000e007f"  # tags
    "]"
)
"""Joiners (U+200C, U+200D) are not escaped: Persian and Hindi words need them."""


def printable(text: str) -> str:
    """Return a text as one line with unsafe characters escaped."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable_lines(text: str) -> str:
    """Return a text with unsafe characters escaped except line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(document: str) -> str:
    """Return a JSON document with the unsafe characters in its strings escaped as in JSON.

    Args:
        document: result of `json.dumps`, which escapes line breaks within strings.
    """
    return "\n".join(
        _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], line) for line in document.split("\n")
    )


class PrintableFormatter(logging.Formatter):
    """Formats log records with unsafe characters in file and table names escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


Value = object
"""A value of Arrow's `to_pylist`: a number, string, date, list, dictionary and so on."""

_WIDTH_WITHOUT_TERMINAL = 200


def print_line(text: str) -> None:
    """Print a sentence for people, which is not wrapped: it may have a command to copy."""
    _console().print(Text(printable(text)), soft_wrap=True)


def print_error(text: str) -> None:
    """Print an error to standard error, as one line that is not wrapped."""
    line = printable(" ".join(text.split()))
    Console(stderr=True, soft_wrap=True).print(Text.assemble(("drawstring:", "bold red"), " ", line))


_printed: list[bool] = []
"""Not empty once this call of a command has printed a JSON document."""


def begin() -> None:
    """Forget what an earlier call of a command in this process printed."""
    _printed.clear()


def print_json_error(error: Mapping[str, Value]) -> None:
    """Print an error as the JSON document of a call, unless the call has printed one that tells of it."""
    if not _printed:
        print_json({"error": error})


def error_fields(error: BaseException, message: str | None = None) -> dict[str, Value]:
    """Return an error for JSON output: its kind (`base.errors` has six), what happened, and where.

    Args:
        error: the error.
        message: what to tell people; None for the text of the error.
    """
    known = error if isinstance(error, DrawstringError) else DrawstringError(message or str(error))
    kinds = [kind for kind in type(error).__mro__ if DrawstringError in kind.__bases__]
    if isinstance(error, CycloptsError):
        kinds = [InvalidError]
    return {
        "kind": (*kinds, type(error))[0].__name__,
        "message": message or known.message,
        "table": known.table,
        "instant": known.instant,
        "file": known.path,
    }


def print_json(value: Value) -> None:
    """Print one JSON document."""
    document = json.dumps(as_json(value), indent=2, ensure_ascii=False, allow_nan=False)
    _printed.append(True)
    sys.stdout.write(printable_json(document) + "\n")


def print_result(result: Result) -> None:
    """Print the result of a call as one JSON document; `changed` says whether the call did anything."""
    print_json(result_fields(result))


def result_fields(result: Result) -> dict[str, object]:
    """Return the fields of a result for JSON output."""
    return {"changed": result.changed, **asdict(result)}


def print_grid(columns: Sequence[str], rows: Iterable[Sequence[Value]], *, title: str | None = None) -> None:
    """Print rows below column headers; numbers are right-aligned."""
    shown = [list(row) for row in rows]
    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, name in enumerate(columns):
        numeric = any(_is_number(row[index]) for row in shown)
        grid.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        grid.add_row(*(Text(as_text(value)) for value in row))
    _console().print(grid)


def print_facts(facts: Iterable[tuple[str, Value]]) -> None:
    """Print names and values, one pair per line."""
    grid = Grid(show_header=False, box=None, pad_edge=False)
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(printable(name)), Text(as_text(value)))
    _console().print(grid)


def instant_text(instant: str | None) -> str:
    """Return the time of an instant as `2024-01-31 10:00:00.123`; other texts unchanged."""
    if not instant or len(instant) not in (14, 17) or not instant.isdigit():
        return instant or ""
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    clock = f"{instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
    return f"{day} {clock}.{instant[14:]}" if instant[14:] else f"{day} {clock}"


def as_text(value: Value) -> str:
    """Return a value as one line of a grid; empty for null."""
    if value is None:
        return ""
    plain = as_json(value)
    if isinstance(plain, str):
        return printable(plain)
    return printable_json(json.dumps(plain, ensure_ascii=False))


def as_json(value: Value) -> Value:
    """Return a value that JSON can represent.

    Decimals, dates and times become strings, bytes base64, NaN and infinities their names.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _console() -> Console:
    """Return the console of standard output; lines to a pipe are not wrapped."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


StepStarted: TypeAlias = Callable[[str], Progress]
"""Called with the name of a step that begins; returns the progress callback of the step."""


@contextmanager
def progress_bar(title: str) -> Iterator[StepStarted]:
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
