"""Batches of streams: each is written in one commit with the position behind it, and counts once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from drawstring.base.errors import (
    CorruptTableError,
    InternalError,
    InvalidError,
    OvertakenError,
    UnsupportedError,
)
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.protocol import Rows
from drawstring.model.result import CommitResult
from drawstring.services.table_services import after_commit
from drawstring.timeline.claims import are_claimed
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table
from drawstring.write.executor import write
from drawstring.write.stream_positions import (
    CommittedPositions,
    PassedError,
    PositionKeeper,
    Stream,
    StreamStep,
)

OPERATIONS: Final = frozenset(
    {"upsert", "insert", "bulk_insert", "append", "delete", "insert_overwrite", "insert_overwrite_table"}
)
"""What a batch of a stream can do."""

Source: TypeAlias = Callable[[str | None], Iterable[tuple[Any, str]]]
"""Yields rows and the position behind them, from a position on; None for the beginning."""

_PERMANENT: Final = (CorruptTableError, InternalError, InvalidError, OvertakenError, UnsupportedError)
_INLINE: Final = "hoodie.compact.inline"
_BACKGROUND: Final = "hoodie.datasource.compaction.async.enable"
_SCHEDULE: Final = "hoodie.compact.schedule.inline"
_NO_COMPACTION: Final = "hoodie.datasource.write.streaming.disable.compaction"
_NAME: Final = "hoodie.datasource.write.streaming.checkpoint.identifier"
_EMPTY: Final = "hoodie.allow.empty.commit"
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A batch of a stream.

    Attributes:
        rows: the rows, in the engine of the table.
        step: the step of the stream.
    """

    rows: Rows
    step: StreamStep


def stream_options(given: Mapping[str, Any], name: str | None = None) -> WriteOptions:
    """Parse the options of a stream.

    As in Hudi's, compaction runs in the background where nothing else is asked for. A batch without rows
    writes nothing.

    Args:
        given: options by Hudi's keys.
        name: name of the stream; by default the options name it.

    Raises:
        InvalidError: an option is unknown or has no valid value, or the operation is not one of `OPERATIONS`.
    """
    named = {key.lower() for key in given}
    options: dict[str, Any] = {_EMPTY: "false", **given}
    if name is not None:
        given_name: object = name
        if not isinstance(given_name, str) or not given_name.strip():
            raise InvalidError(f"{name!r} is no name of a stream. Give a text that is not empty.")
        options[_NAME] = name
    if str(given.get(_NO_COMPACTION, "")).lower() == "true":
        options |= {_INLINE: "false", _BACKGROUND: "false", _SCHEDULE: "false"}
    elif not named & {_INLINE, _BACKGROUND, _SCHEDULE}:
        options[_BACKGROUND] = "true"
    parsed = WriteOptions.parse(options)
    if parsed.operation not in OPERATIONS:
        raise InvalidError(
            f"A stream cannot {parsed.operation}. Use one of {', '.join(sorted(OPERATIONS))} as"
            " hoodie.datasource.write.operation."
        )
    return parsed


def write_batch(context: TableContext, batch: StreamBatch, options: WriteOptions) -> CommitResult:
    """Write a batch unless the table has it, and try again as often as the options say.

    Args:
        context: the table.
        batch: the batch.
        options: of the stream.

    Returns:
        The result of the commit; false if the table has the batch, or it has no rows.

    Raises:
        OvertakenError: another process writes the stream.
        DrawstringError: the batch was not written.
    """
    settings = options.streaming
    attempts = 1 if batch.rows.reads_once else settings.attempts
    try:
        for number in range(1, attempts):
            try:
                return _write(context, batch, options)
            except _PERMANENT:
                raise
            except Exception as error:  # jobs of other engines raise errors of their own
                _pause(context, batch, options, number, error)
        return _write(context, batch, options)
    except OvertakenError:
        raise
    except Exception:
        if not settings.ignores_failed:
            raise
        _log.exception(
            "Batch %s of stream %s failed and is left out (ignore.failed.batch): its rows are lost.",
            batch.step.position,
            settings.name,
        )
        return CommitResult.nothing(options.operation)


def _write(context: TableContext, batch: StreamBatch, options: WriteOptions) -> CommitResult:
    try:
        return after_commit(write(context, options.operation, batch.rows, options, step=batch.step))
    except PassedError:
        _log.info("Stream %s: the table has batch %s.", options.streaming.name, batch.step.position)
        return CommitResult.nothing(options.operation)


def _pause(
    context: TableContext, batch: StreamBatch, options: WriteOptions, number: int, error: Exception
) -> None:
    """Wait before a batch is tried again.

    Args:
        number: of the attempt that failed, from 1.
        error: why it failed.
    """
    pause_ms = options.streaming.pause_ms * 2 ** (number - 1)
    _log.warning(
        "Attempt %d of %d to write batch %s of stream %s failed; the next one is in %d ms. Cause: %s",
        number,
        options.streaming.attempts,
        batch.step.position,
        options.streaming.name,
        pause_ms,
        error,
    )
    context.clock.sleep(pause_ms / 1000)


class StreamWriter:
    """Writes batches of any source to a table, each with the position behind it, in one commit.

    Created by `Table.stream`. A position is a text that the source understands, such as an offset or a file
    name. A source that goes on at `position` writes each of its batches exactly once, also after a crash.

    Args:
        context: the table.
        rows_of: returns the table and the rows of the caller's data in its engine.
        options: options of the stream, parsed.
        errors: adds what the caller knows to an error.
        keeper: how commits keep the positions; by default under the name of the stream.
    """

    def __init__(
        self,
        context: TableContext,
        rows_of: Callable[[Any], tuple[TableContext, Rows]],
        options: WriteOptions,
        errors: Callable[[], AbstractContextManager[None]],
        keeper: PositionKeeper | None = None,
    ) -> None:
        self._context = context
        self._rows_of = rows_of
        self._options = options
        self._errors = errors
        self._positions = CommittedPositions(keeper or Stream(options.streaming.name))
        with errors():
            self._position = self._settled()

    @property
    def position(self) -> str | None:
        """The position of the last batch that was committed, None before the first one."""
        return self._position

    def write(self, rows: Any, position: str) -> CommitResult:
        """Write a batch and the position behind it in one commit.

        Args:
            rows: as for `Table.upsert`. Without a row nothing is written, and the position stays.
            position: where the source goes on after these rows; not that of the batch before.

        Returns:
            The result of the commit; false if there was nothing to write, or the table has the batch.

        Raises:
            OvertakenError: another process has written to this stream since.
            InvalidError: the rows or the options do not fit the table, or the position did not move.
            DrawstringError: the batch was not written. It can be written again.
        """
        expected = self._position
        if position in ("", expected):
            raise InvalidError(
                f"The position behind a batch must differ from the one before, {expected!r}. Nothing was"
                " written."
            )

        def check(last: str | None) -> None:
            if last == position:
                raise PassedError
            if last != expected:
                raise OvertakenError(
                    f"Stream {self._options.streaming.name} is at {last!r} in the table, but this writer was"
                    f" at {expected!r}. Another process writes the stream. Stop one of the two."
                )

        with self._errors():
            context, given = self._rows_of(rows)
            step = StreamStep(self._positions, position, check)
            result = write_batch(context, StreamBatch(given, step), self._options)
            self._position = self._stored()
        return result

    def run(self, source: Source) -> int:
        """Write all batches that a source yields from the stored position on.

        Args:
            source: called with the position, None for the beginning; yields pairs of rows and the position
                behind them.

        Returns:
            How many batches were committed.

        Raises:
            InvalidError: the source is no function, or what it yields is no pair.
            DrawstringError: a batch was not written; see `write`.
        """
        if not callable(source):
            raise InvalidError(f"The source is {source!r}. Give a function that is called with the position.")
        return sum(bool(self.write(*_pair(batch))) for batch in source(self._position))

    def _settled(self) -> str | None:
        """Return the stored position, after a batch whose process died when it had decided to complete it."""
        store = self._store()
        timeline = store.load()
        if are_claimed(self._context.storage, timeline.pending_writes()):
            with lock_table(self._context, self._options.locking) as locked:
                locked.store.bar_stalled(locked.store.load().pending_writes())
            timeline = store.load()
        return self._positions.last(self._context, store, timeline)

    def _stored(self) -> str | None:
        store = self._store()
        return self._positions.last(self._context, store, store.load())

    def _store(self) -> TimelineStore:
        storage = self._context.storage
        return TimelineStore(storage, load_config(storage), self._context.clock)


def _pair(batch: Any) -> tuple[Any, str]:
    """Return what a source yields as rows and the position behind them."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InvalidError(
            f"The source yields {type(batch).__name__}. Yield pairs of rows and the position behind them."
        )
    return batch[0], batch[1]
