"""The six kinds of error, divided by what the caller has to do next.

| error | next step |
|---|---|
| `ConflictError` | retry the write |
| `UnavailableError` | back off, then try again |
| `InvalidError` | fix the call |
| `CorruptTableError` | repair the table |
| `UnsupportedError` | upgrade, or ask for the feature |
| `InternalError` | report a defect |

Every error carries its table, instant and path where they are known, and its text says what to do next.

Translation of the operating system's disk errors (full, read-only, refused, failed) into our own.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

REPAIR: Final = "restore the file from a backup, or rewrite the partition's rows with insert_overwrite"
"""The next step after an error about a damaged data file, as the end of a sentence."""


class DrawstringError(Exception):
    """The root of every error that drawstring raises on purpose.

    Args:
        message: what happened and what to do next, in one or two sentences.
        table: root of the table concerned.
        instant: requested time of the action that failed.
        path: path of the file concerned, relative to the table.
    """

    def __init__(
        self,
        message: str,
        *,
        table: str | None = None,
        instant: str | None = None,
        path: str | None = None,
    ) -> None:
        message = printable(message)
        super().__init__(message)
        self.message = message
        self.table = table
        self.instant = instant
        self.path = path

    def __str__(self) -> str:
        details = [
            f"{name}: {value}"
            for name, value in (("table", self.table), ("instant", self.instant), ("file", self.path))
            if value is not None
        ]
        return printable(f"{self.message} ({', '.join(details)})") if details else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword fields when an error travels from a worker process."""
        return _rebuild, (type(self), self.message, self.table, self.instant, self.path)

    def at(
        self, *, table: str | None = None, instant: str | None = None, path: str | None = None
    ) -> DrawstringError:
        """Fill in the details that a lower layer did not know; those that are set already stay.

        A path of the file system becomes relative to the table.
        """
        self.table = self.table or table
        self.instant = self.instant or instant
        self.path = self.path or path
        if self.table and self.path:
            self.path = self.path.removeprefix(f"{self.table}/")
        return self


def printable(text: str) -> str:
    """Return a text with escapes for what UTF-8 cannot have."""
    return text.encode("utf-8", "backslashreplace").decode()


_AROUND: Final = 20
"""Characters of a text to show before and after the one that is wrong."""


def no_text(error: UnicodeEncodeError) -> InvalidError:
    """Return the error for a text with half of a surrogate pair, which no UTF-8 and so no table can have.

    Args:
        error: the error of Python.
    """
    start, text = error.start, error.object
    shown = printable(text[max(0, start - _AROUND) : start + _AROUND])
    return InvalidError(
        f"The text '{shown}' has the character {printable(text[start])} at position {start}. It is one half"
        " of a surrogate pair, which cannot be stored or looked up as UTF-8. Correct the text where it comes"
        " from, as by text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
    )


@contextmanager
def errors_at(table: str | None) -> Iterator[None]:
    """Add the table to every error of a block, and tell of texts that cannot be stored.

    Args:
        table: its root, None if it is not known.
    """
    try:
        yield
    except DrawstringError as error:
        raise error.at(table=table) from error.__cause__
    except UnicodeEncodeError as error:
        raise no_text(error).at(table=table) from error


def _rebuild(
    kind: type[DrawstringError], message: str, table: str | None, instant: str | None, path: str | None
) -> DrawstringError:
    return kind(message, table=table, instant=instant, path=path)


class ConflictError(DrawstringError):
    """Another writer committed first: retry the write."""


class DecidedError(ConflictError):
    """Others settled what this process had decided to complete before it stood still: it may have counted."""


class TakenOverError(DecidedError):
    """Others complete what this process had decided to complete before it stood still."""


class LostRaceError(ConflictError):
    """Another writer committed a conflicting change while a write ran; the write can run again."""


class RivalError(LostRaceError):
    """A live writer has begun a file of the same file group; the write can run again when that is done."""


class OutrunError(LostRaceError):
    """Others changed what no reservation protects, as a clean deletes files; the write can run again."""


class ReservedError(LostRaceError):
    """A write that lost before goes first where this one writes; it can run again when that is done.

    Args:
        message: what happened and what to do next.
        writer: the words that name the write that goes first.
        parts: the words that name where it does.
        groups: the file groups that it has begun files for, as partition and file id, if they were looked up.
        details: as of every error.
    """

    def __init__(
        self,
        message: str,
        *,
        writer: str = "",
        parts: str = "",
        groups: frozenset[tuple[str, str]] = frozenset(),
        **details: str | None,
    ) -> None:
        super().__init__(message, **details)
        self.writer = writer
        self.parts = parts
        self.groups = groups

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the fields when an error travels from a worker process."""
        rebuild = partial(
            ReservedError,
            writer=self.writer,
            parts=self.parts,
            groups=self.groups,
            table=self.table,
            instant=self.instant,
            path=self.path,
        )
        return rebuild, (self.message,)


class PendingClusteringError(ConflictError):
    """A file group that a write would change waits for a clustering: write again when that is done."""


class OvertakenError(ConflictError):
    """Another process writes the same stream: stop one of the two."""


class UnavailableError(DrawstringError):
    """The storage or a service did not answer: back off and try again."""


class InvalidError(DrawstringError):
    """The call cannot be carried out as it is: fix it."""


class MissingKeyError(InvalidError):
    """Rows have no record key: give them one, or leave them out."""


class NoTableError(InvalidError):
    """There is no table at the address: check it, or create a table."""


class CorruptTableError(DrawstringError):
    """A file of the table is damaged or missing: repair the table."""


class MissingFileError(CorruptTableError):
    """A file that the table needs does not exist.

    Inside drawstring this is only a suspicion: the code that planned the read loads the timeline again
    (`query.replanning`, `timeline.change_detection`), since a clean may have deleted the file. When the
    error reaches a caller, this has been checked: the file is lost.
    """


class MetadataTableError(CorruptTableError):
    """The metadata table is damaged, though the table itself may be whole: switch the metadata table off."""


class FilesCleanedError(UnavailableError):
    """A clean, an archiving or another action deleted files that a reader had planned to read: read again."""


class UnsupportedError(DrawstringError):
    """The table or the call needs something that this release does not have."""


class InternalError(DrawstringError):
    """An invariant of drawstring itself does not hold: report it."""


def not_installed(needs: str, extra: str) -> InvalidError:
    """Return the error of a call that needs a package which is not installed.

    Args:
        needs: what needs which package, as in "Kafka needs confluent-kafka".
        extra: the extra of drawstring that brings it.
    """
    return InvalidError(
        f"{needs}, which is not installed. Install it with: pip install 'drawstring[{extra}]'"
    )


TABLE_DISK: Final = "the disk of the table"

_WHY: Final = {
    errno.ENOSPC: ("The disk is full", "free space on {where}"),
    errno.EDQUOT: ("The disk quota is used up", "free space on {where}, or have the quota raised"),
    errno.EFBIG: ("A file is larger than allowed", "raise the limit (ulimit -f, or that of {where})"),
    errno.EIO: ("The disk failed (input/output error)", "check {where}"),
}

_REFUSED: Final = {
    errno.EACCES: "Check the owner and the mode of the file and of its folders",
    errno.EPERM: "Check the owner and the mode of the file and of its folders",
    errno.EROFS: "Have {where} mounted for writing",
}
"""Errors that waiting does not cure."""


def disk_error(error: OSError, where: str, path: str | None = None) -> DrawstringError | None:
    """Return the error to raise when a disk refused a write; None for any other kind of error.

    Args:
        error: the error that the operating system, or Arrow on its behalf, raised.
        where: the folder that was written to.
        path: path of the file, relative to the table.
    """
    if remedy := _REFUSED.get(error.errno or 0):
        reason = error.strerror or error
        return InvalidError(
            f"The file system refuses access ({reason}). {remedy.format(where=where)}.", path=path
        )
    why = _WHY.get(error.errno or 0)
    if why is None:
        return None
    happened, remedy = why
    remedy = remedy.format(where=where)
    then = "then try again. The unfinished action has no effect: the table is as it was before."
    return UnavailableError(f"{happened}. {remedy[0].upper()}{remedy[1:]}, {then}", path=path)


def temporary_disk_errors(folder: str | None = None) -> AbstractContextManager[None]:
    """Raise the errors of the disk that has a temporary folder; see `disk_errors`.

    Args:
        folder: absolute path; None for the temporary folder of the machine.
    """
    return disk_errors(folder or f"{tempfile.gettempdir()} (or set TMPDIR to another folder)")


@contextmanager
def disk_errors(where: str, path: str | None = None) -> Iterator[None]:
    """Raise the errors of a disk as `UnavailableError`, and refused access as `InvalidError`.

    Args:
        where: the folder that is written to.
        path: path of the file, relative to the table.
    """
    try:
        yield
    except OSError as error:
        translated = disk_error(error, where, path)
        if translated is None:
            raise
        raise translated from error
