"""Give a table to other libraries: as a lazy snapshot, or as a stream of batches that follows it.

A `Snapshot` is the table as it was at one moment. Other libraries push columns and conditions into it.
`follow_table` returns the batches of rows that commits write, with a hold that advances with the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.formats.arrow_dataset import ScannedDataset
from drawstring.query.planner import snapshot_scan
from drawstring.query.polars_scan import lazy_frame
from drawstring.query.scan import Scan
from drawstring.query.stream import Batch, FollowSpec, ReaderHold, follow, position_of, stored_position
from drawstring.query.table_state import TableFacts, facts_of
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as it was at one moment.

    Attributes:
        facts: the loaded table.
        as_of: an instant or a date-time, None for the newest state.
    """

    facts: TableFacts
    as_of: Any = None

    def scan(self, columns: Sequence[str] | None, where: str | pc.Expression | None) -> Scan:
        """Return some of its columns and rows."""
        return snapshot_scan(self.facts, columns=columns, where=where, as_of=self.as_of)

    def reader(self, columns: Sequence[str] | None, where: pc.Expression | None) -> pa.RecordBatchReader:
        """Return some of its columns and rows as they are read."""
        return self.scan(columns, where).to_reader()

    def dataset(self) -> ScannedDataset:
        """Return it as a dataset of Arrow."""
        return ScannedDataset(self.scan(None, None).schema, self.reader)

    def polars(self) -> polars.LazyFrame:
        """Return it as a lazy frame of polars."""
        return lazy_frame(self.scan(None, None).schema, self.scan)


@dataclass(frozen=True, slots=True)
class Following:
    """Settings of a stream of batches.

    Attributes:
        spec: contents of the batches.
        start: a stored position, a time, `latest`, or `earliest`, which None stands for.
        poll_seconds: seconds between two loads of the timeline when there are no new commits; None to end
            then.
        clock: sleeps between two loads; None for the table's clock.
        hold: name of the hold that advances with the reader; None without one.
        hold_hours: hours after which the hold expires.
    """

    spec: FollowSpec
    start: Any
    poll_seconds: float | None
    clock: Clock | None
    hold: str | None
    hold_hours: float


def follow_table(context: TableContext, following: Following) -> Iterator[Batch]:
    """Return batches of the rows that commits write; the iterator plans one batch at a time.

    Args:
        context: the table.
        following: settings of the stream.

    Raises:
        InvalidError: a position, column, condition or bound is invalid.
    """
    spec = following.spec
    if spec.changes and (spec.columns is not None or spec.where is not None):
        raise InvalidError("Changes have their own columns. Leave out columns and where.")
    clock = following.clock or context.clock
    if following.hold is None:
        return follow(lambda: facts_of(context), clock, spec, following.start, following.poll_seconds)
    keeper = ReaderHold(context, following.hold, following.hold_hours)
    keeper.at(position_of(facts_of(context), following.start))

    def load() -> TableFacts:
        keeper.renew()
        return facts_of(context)

    return _held(follow(load, clock, spec, keeper.position, following.poll_seconds), keeper)


def _held(batches: Iterator[Batch], keeper: ReaderHold) -> Iterator[Batch]:
    """Yield batches, and advance the hold after the caller has used a batch."""
    for batch in batches:
        yield batch
        keeper.at(stored_position(batch.position))
