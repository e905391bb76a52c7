"""The protocol of sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.query.scan import Scan


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that cannot be read.

    Attributes:
        place: where it is: a file and the number of the record in it, or a topic, partition and offset.
        content: its bytes.
        reason: what is wrong with it.
    """

    place: str
    content: bytes
    reason: str


Reject: TypeAlias = Callable[[Rejected], None]
"""Takes a record that cannot be read, or raises an `InvalidError` that says so."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a batch are read.

    Attributes:
        known: columns whose types are known. They decide where what is read says less, as text does; other
            columns come as they are.
        reject: takes records that cannot be read.
        is_strict: whether records whose values do not fit the known columns are rejected.
    """

    known: pa.Schema
    reject: Reject
    is_strict: bool = False

    def type_of(self, column: str) -> pa.DataType | None:
        """Return the type of a column, None if it is not known."""
        at = self.known.get_field_index(column)
        return self.known.field(at).type if at >= 0 else None


@dataclass(frozen=True, slots=True)
class Found:
    """What a piece of a batch has.

    Attributes:
        name: of the piece, for errors.
        schema: its columns.
        rows: number of its rows.
    """

    name: str
    schema: pa.Schema
    rows: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """A batch in pieces that tasks read, each alone; they can be sent to other processes.

    Attributes:
        items: the pieces, in the order of their rows.
        look: finds out what a piece has, and rejects its bad records.
        read: reads the rows of a piece.
    """

    items: Sequence[Any]
    look: Callable[[Any, Reading], Found]
    read: Callable[[Any, Reading], pa.RecordBatchReader]


@dataclass(frozen=True, slots=True)
class TableRows:
    """A batch that is what a query of a Hudi table finds.

    Attributes:
        scan: plans the query.
    """

    scan: Callable[[], Scan]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A batch that is the result of a query.

    Attributes:
        text: the query, in Spark's dialect.
    """

    text: str


Parts: TypeAlias = Pieces | TableRows | SparkQuery
"""How an engine of several processes reads a batch by itself."""


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """What a source has after a checkpoint, within limits; its rows have not been read.

    Attributes:
        checkpoint: where the source goes on after the batch.
        size: of the batch, in the unit of the source.
        left: what the source had after the batch, in the same unit.
        read: reads the rows in this process.
        parts: how an engine of several processes reads the same rows; None if it gets those of `read`.
    """

    checkpoint: Checkpoint
    size: int
    left: int
    read: Callable[[Reading], pa.RecordBatchReader]
    parts: Parts | None = None


@runtime_checkable
class Source(Protocol):
    """Rows that come in an order, from a checkpoint on."""

    @property
    def unit(self) -> str:
        """What sizes and limits count, for people: `bytes`, `records` or `commits`."""
        ...

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        """Plan the next batch.

        Args:
            checkpoint: where the last batch ended; None for the beginning.
            limit: largest size of the batch, of which at least the smallest piece of the source is taken;
                None for the default of the source.

        Returns:
            The batch; None if there is nothing new.

        Raises:
            InvalidError: the checkpoint or the options do not fit the source.
            UnavailableError: the source does not answer.
        """
        ...

    def committed(self, checkpoint: Checkpoint) -> None:
        """Learn that the table has everything up to a checkpoint."""
        ...

    def close(self) -> None:
        """Let go of what the source holds."""
        ...
