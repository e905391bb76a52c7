"""The six kinds of error, each named by what its receiver does next.

| error | next step |
|---|---|
| `ConflictError` | retry the write |
| `UnavailableError` | back off, then try again |
| `InvalidError` | fix the call |
| `CorruptTableError` | repair the table |
| `UnsupportedError` | upgrade, or ask for the feature |
| `InternalError` | report a defect |

Every error carries what it is about (table, instant, path) and its text says what to do.
"""

from __future__ import annotations

from typing import Final

REPAIR: Final = "restore it from a backup, or write the partition's rows anew with insert_overwrite"
"""What can be done about a damaged data file."""


class DrawstringError(Exception):
    """The root of every error that drawstring raises on purpose.

    Args:
        message: what happened and what to do next, in one or two sentences.
        table: root of the table that it happened to.
        instant: requested time of the action that it happened in.
        path: the file that it happened to, relative to the table.
    """

    def __init__(
        self,
        message: str,
        *,
        table: str | None = None,
        instant: str | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.table = table
        self.instant = instant
        self.path = path

    def __str__(self) -> str:
        about = [
            f"{name}: {value}"
            for name, value in (("table", self.table), ("instant", self.instant), ("file", self.path))
            if value is not None
        ]
        return f"{self.message} ({', '.join(about)})" if about else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword fields when an error travels from a worker process."""
        return _rebuild, (type(self), self.message, self.table, self.instant, self.path)

    def at(
        self, *, table: str | None = None, instant: str | None = None, path: str | None = None
    ) -> DrawstringError:
        """Fill in what a lower layer could not know; what is known already stays."""
        self.table = self.table or table
        self.instant = self.instant or instant
        self.path = self.path or path
        return self


def _rebuild(
    kind: type[DrawstringError], message: str, table: str | None, instant: str | None, path: str | None
) -> DrawstringError:
    return kind(message, table=table, instant=instant, path=path)


class ConflictError(DrawstringError):
    """Another writer was there first: retry the write."""


class UnavailableError(DrawstringError):
    """The storage or a service did not answer: back off and try again."""


class InvalidError(DrawstringError):
    """The call cannot be carried out as it is: fix it."""


class CorruptTableError(DrawstringError):
    """A file of the table is damaged or missing: repair the table."""


class MissingFileError(CorruptTableError):
    """A file that the table needs is not there.

    Inside drawstring it is a suspicion: whoever planned the reading looks at the timeline again
    (`query.replanning`, `timeline.change_detection`). What reaches a caller has been checked: it
    is lost.
    """


class OutrunError(UnavailableError):
    """A clean, an archiving or another action took what a reader had planned to read: read again."""


class UnsupportedError(DrawstringError):
    """The table or the call needs something that this release does not have."""


class InternalError(DrawstringError):
    """An invariant of drawstring itself does not hold: report it."""
