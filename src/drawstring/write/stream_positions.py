"""Positions of streams in commits, by which a batch counts once, whatever happens to its writer.

A stream writes a batch and the position behind it in one commit. A writer that starts again finds the
position of the last commit, and the check under the table lock finds a second writer of the same stream.

    extraMetadata   _hudi_streaming_sink_checkpoint    {"<stream>": "<position>"}, as Hudi's sink writes it
                    _drawstring_streaming_query        id of the Structured Streaming query, if it is one
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drawstring.base.errors import CorruptTableError
from drawstring.model.commit import STREAM_POSITIONS, STREAM_QUERY, CommitMetadata
from drawstring.model.instant import Instant, time_of
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable


class PassedError(Exception):
    """The table has the batch; nothing is to be done."""


class PositionKeeper(Protocol):
    """How commits keep the positions of a stream."""

    def entries(self, position: str) -> dict[str, str]:
        """Return the extra metadata of a commit that has a position."""
        ...

    def position_in(self, commit: CommitMetadata) -> str | None:
        """Return the position that a commit has, None without one of this stream."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """Whose positions are meant.

    Attributes:
        name: name of the stream in the table (`hoodie.datasource.write.streaming.checkpoint.identifier`).
        query: id of the query, which changes with the checkpoint folder; empty for streams without one.
            Positions of other queries do not count, those that Hudi wrote do.
    """

    name: str
    query: str = ""

    def entries(self, position: str) -> dict[str, str]:
        """Return the extra metadata of a commit that has a position."""
        query = {STREAM_QUERY: self.query} if self.query else {}
        return {STREAM_POSITIONS: json.dumps({self.name: position}), **query}

    def position_in(self, commit: CommitMetadata) -> str | None:
        """Return the position that a commit has, None without one of this stream.

        Raises:
            CorruptTableError: the entry is no JSON object.
        """
        text = commit.extra.get(STREAM_POSITIONS)
        if not text or (self.query and commit.extra.get(STREAM_QUERY, self.query) != self.query):
            return None
        try:
            positions = json.loads(text)
        except ValueError:
            positions = None
        if not isinstance(positions, dict):
            raise CorruptTableError(
                f"The positions of streams in a commit ({STREAM_POSITIONS}) are damaged: {text[:80]!r}. Roll"
                " the commit back, or start the stream under another name."
            )
        position = positions.get(self.name)
        return None if position is None else str(position)


@dataclass(slots=True)
class CommittedPositions:
    """The last position of a stream in a table; each commit is read once.

    Attributes:
        stream: whose positions.
    """

    stream: PositionKeeper
    _seen: set[Instant] = field(default_factory=set)
    _last: tuple[str, str] | None = None
    _has_read_archive: bool = False

    def last(self, context: TableContext, store: TimelineStore, timeline: Timeline) -> str | None:
        """Return the position of the last commit of the stream, None if it has none.

        Args:
            context: the table.
            store: reads the commits.
            timeline: the active timeline.

        Raises:
            CorruptTableError: a commit is damaged.
        """
        if self._last is not None and not timeline.has_completed(self._last[0]):
            self._forget()  # a restore took the commit back
        for instant in sorted(set(timeline.writes()) - self._seen, key=time_of, reverse=True):
            position = self._position(instant, store.commit_metadata(instant))
            if position is not None:
                self._last = (instant.requested, position)
                break
        self._seen = set(timeline.writes())
        if self._last is None and not self._has_read_archive:
            self._last = self._archived(context.storage)
            self._has_read_archive = True
        return self._last[1] if self._last is not None else None

    def _archived(self, storage: Storage) -> tuple[str, str] | None:
        """Return the last archived commit of the stream with its position."""
        for instant, commit in open_archive(storage, load_config(storage)).writes():
            position = self._position(instant, commit)
            if position is not None:
                return instant.requested, position
        return None

    def _position(self, instant: Instant, commit: CommitMetadata) -> str | None:
        try:
            return self.stream.position_in(commit)
        except CorruptTableError as error:
            raise error.at(instant=instant.requested) from error

    def _forget(self) -> None:
        self._last, self._seen, self._has_read_archive = None, set(), False


@dataclass(frozen=True, slots=True)
class StreamStep:
    """A step of a stream: the batch that is written, as the position after it.

    Attributes:
        positions: of the stream in the table.
        position: the position after the batch.
        check: called with the last position in the table, before the write and, where others commit
            meanwhile, again before its commit; raises what keeps the batch from being written.
    """

    positions: CommittedPositions
    position: str
    check: Callable[[str | None], None]

    def check_against(self, locked: LockedTable, timeline: Timeline) -> None:
        """Check the step against a table that is locked, and its timeline."""
        self.check(self.positions.last(locked.context, locked.store, timeline))

    @property
    def entries(self) -> Mapping[str, str]:
        """The extra metadata of its commit."""
        return self.positions.stream.entries(self.position)
