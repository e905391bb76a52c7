"""Reading of an open table as a stream of batches, with a hold that advances with the reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.query.facts import TableFacts, facts_of
from drawstring.query.incremental.follow import Batch, FollowSpec, follow
from drawstring.query.incremental.holds import Keeper
from drawstring.query.incremental.positions import position_of, stored_position
from drawstring.txn.table_context import TableContext


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
    keeper = Keeper(context, following.hold, following.hold_hours)
    keeper.at(position_of(facts_of(context), following.start))

    def load() -> TableFacts:
        keeper.renew()
        return facts_of(context)

    return _held(follow(load, clock, spec, keeper.position, following.poll_seconds), keeper)


def _held(batches: Iterator[Batch], keeper: Keeper) -> Iterator[Batch]:
    """Yield batches, and advance the hold after the caller has used a batch."""
    for batch in batches:
        yield batch
        keeper.at(stored_position(batch.position))
