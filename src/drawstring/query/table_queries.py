"""What an open table can be asked: its properties, its timeline, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.model.files import FileSlice
from drawstring.model.hold import Hold
from drawstring.query.cleaned_files import is_needed
from drawstring.query.facts import TableFacts, load_facts
from drawstring.query.incremental.batch_ends import Limits
from drawstring.query.incremental.cdc_query import changes_scan
from drawstring.query.incremental.commit_ranges import Holes, RangeSpec
from drawstring.query.incremental.follow import Batch, FollowSpec, OnCleaned, follow
from drawstring.query.incremental.holds import HOLD_HOURS, Keeper, hold_for_scan
from drawstring.query.incremental.holds import hold as place_hold
from drawstring.query.incremental.incremental_query import incremental_scan
from drawstring.query.incremental.positions import position_of, stored_position
from drawstring.query.replanning import Draft, planned
from drawstring.query.scan import Scan
from drawstring.query.snapshot import snapshot_scan
from drawstring.query.support import with_shown_columns
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.holds import Holds
from drawstring.txn.table_context import TableContext


class TableQueries:
    """The half of a table that changes nothing.

    Args:
        state: where the table is and who runs its tasks.
    """

    def __init__(self, state: TableContext) -> None:
        self._state = state
        load_config(state.storage)

    @property
    def uri(self) -> str:
        """The table's root."""
        return self._state.storage.spec.uri

    @property
    def state(self) -> TableContext:
        """What the table consists of; for engines."""
        return self._state

    @property
    def config(self) -> TableConfig:
        """The table's properties, read afresh."""
        with self._about():
            return load_config(self._state.storage)

    @property
    def timeline(self) -> Timeline:
        """The active timeline, read afresh."""
        with self._about():
            return TimelineStore(self._state.storage, self.config, self._state.clock).load()

    @property
    def schema(self) -> pa.Schema:
        """The table's columns as queries show them, without the meta columns.

        A column that a timestamp-based key generator formats is text there, as in Hudi's queries; rows
        that are written bring it as it was declared.
        """
        with self._about():
            facts = self._facts()
            return with_shown_columns(facts.schema, facts.config)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        as_of: Any = None,
        read_optimized: bool = False,
    ) -> Scan:
        """Return the table's rows as a lazy scan.

        Args:
            columns: columns to read, or one column; all by default, meta columns included.
            where: a SQL predicate in Spark's dialect, as in `"month = 7 and delay > 60"` (columns plain
                or in backticks, texts in quotes), or a pyarrow expression.
            as_of: an instant or a date-time: the table as it was then.
            read_optimized: base files only; changes that are not compacted yet do not show.

        Raises:
            InvalidError: a column that is not there, a condition that does not fit the columns, or a
                time that is none or whose files were cleaned away. The condition may also fail on a row,
                when the scan is read; a time whose files a clean by file versions took, or that were cleaned
                away since, fails then as well.
            CorruptTableError: a file of the table is damaged or missing; data files are looked at
                when the scan is read.
            UnavailableError: when the scan is read: files of it were cleaned away while it was, after rows
                had been handed out. Scan again, within `held()` perhaps.
            UnsupportedError: the table has a feature that this release cannot read.
        """
        with self._about():
            return snapshot_scan(
                self._facts(), columns=columns, where=where, as_of=as_of, read_optimized=read_optimized
            )

    def incremental(
        self,
        start: Any = None,
        end: Any = None,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        *,
        include_start: bool = False,
        holes: str = Holes.FAIL,
        full_scan: bool = True,
    ) -> Scan:
        """Return the rows that commits after `start`, up to and including `end`, left behind.

        Args:
            start: exclusive; a completion time (requested time in table version 6), a date-time, or
                `"earliest"`; None for the newest commit up to `end` alone.
            end: inclusive; the newest commit by default.
            columns, where: as in `scan`.
            include_start: take commits of the very start in as well.
            holes: in table version 6, what to do about a pending write before completed ones: `FAIL`,
                `BLOCK` (stop before it) or `USE_TRANSITION_TIME` (ranges in modification times).
            full_scan: whether the whole table may be read, by commit times, when commits of the range were
                archived or their files cleaned away; later commits hide earlier ones then.

        Raises:
            InvalidError: a column or time that is none, a condition that does not fit the columns, an end
                before the start, or files that are gone without `full_scan`.
            CorruptTableError: a file of the table is damaged or missing; data files are looked at
                when the scan is read.
            UnavailableError: a pending write would be missed.
            UnsupportedError: the table keeps no commit times, or has a feature that this release cannot
                read.
        """
        with self._about():
            asked = RangeSpec(start, end, include_start, _chosen(Holes, holes), full_scan)
            return incremental_scan(self._facts(), asked, columns=columns, where=where)

    def changes(
        self, start: Any = None, end: Any = None, *, include_start: bool = False, holes: str = Holes.FAIL
    ) -> Scan:
        """Return every change of the commits after `start`, up to and including `end`.

        The columns are `op` (`i`, `u` or `d`), `ts_ms` (the requested time of the commit) and the record
        `before` and `after` the change as JSON. They come commit by commit, and of a commit the deletes
        first: a record that moved to another partition is deleted there before it is inserted here. On
        Spark the rows of a DataFrame have no order; sort them by `ts_ms`, deletes first.

        Args:
            start, end: as in `incremental`; here also the commit time of a row (`_hoodie_commit_time`): as
                start it leaves that commit out, as end it takes it in, as in Hudi's change queries.
            include_start, holes: as in `incremental`.

        Raises:
            InvalidError: a time that is none, or commits whose files were cleaned away.
            CorruptTableError: a file of the table is damaged or missing.
            UnavailableError: a pending write would be missed.
            UnsupportedError: the table has a feature that this release cannot read.
        """
        with self._about():
            asked = RangeSpec(start, end, include_start, _chosen(Holes, holes))
            return changes_scan(self._facts(), asked)

    def follow(
        self,
        start: Any = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        changes: bool = False,
        poll_seconds: float | None = 10.0,
        max_commits: int | None = None,
        max_bytes: int | None = None,
        on_cleaned: str = OnCleaned.FAIL,
        clock: Clock | None = None,
        hold: str | None = None,
        hold_hours: float = HOLD_HOURS,
    ) -> Iterator[Batch]:
        """Yield batch after batch of what commits write, waiting for more.

        A `Batch` has `rows`, a lazy scan, and `position`, text to store with what was made of the rows:
        a loop that starts at a stored position sees every commit exactly once.

        Args:
            start: a stored position, a time (exclusive), `"latest"`, or `"earliest"` (as None): all that
                the table holds, then what is new.
            columns, where: as in `scan`.
            changes: hand out every change with its images, as `changes` does, rather than rows.
            poll_seconds: time between looks when nothing is new; None to end then.
            max_commits, max_bytes: most commits, and bytes that they wrote, in a batch; one commit is
                in a batch in any case.
            on_cleaned: when commits after the position were archived or their files cleaned away:
                `fail`, go on with the whole table (`snapshot`), or with the earliest commit that can be
                read (`earliest`), leaving out what is gone.
            clock: what sleeps between looks; for tests.
            hold: name of a hold that moves on with this reader, and stays where it ended, so that
                drawstring's cleaning and archiving leave what it has not seen alone; None for none.
            hold_hours: hours after which the hold ends if nobody comes back.

        Raises:
            InvalidError: a position, column, condition or bound that is none, or commits that are gone.
            CorruptTableError, UnsupportedError: as for `incremental`.
        """
        if changes and (columns is not None or where is not None):
            raise InvalidError("changes have columns of their own: leave out columns and where")
        limits = Limits(max_commits, max_bytes)
        spec = FollowSpec(columns, where, changes, limits, _chosen(OnCleaned, on_cleaned))
        with self._about():
            keeper = None if hold is None else self._keeper(hold, hold_hours, start)
            load = partial(self._facts_kept, keeper)
            start = start if keeper is None else keeper.position
            batches = follow(load, clock or self._state.clock, spec, start, poll_seconds)
        return self._following(batches, keeper)

    def _keeper(self, name: str, hours: float, start: Any) -> Keeper:
        keeper = Keeper(self._state, name, hours)
        keeper.at(position_of(self._facts(), start))
        return keeper

    def _following(self, batches: Iterator[Batch], keeper: Keeper | None) -> Iterator[Batch]:
        with self._about():
            for batch in batches:
                yield batch
                if keeper is not None:
                    keeper.at(stored_position(batch.position))

    def _facts_kept(self, keeper: Keeper | None) -> TableFacts:
        if keeper is not None:
            keeper.renew()
        return self._facts()

    def hold(self, name: str, position: Any = None, hours: float = HOLD_HOURS) -> Hold:
        """Keep what was written after a position, and the table as it was then, for a reader.

        drawstring's cleaning and archiving leave it alone until it is released or its time is over. Apache
        Hudi's know nothing of it.

        Args:
            name: of the reader; the hold of that name moves on, also backwards.
            position: what a batch of `follow` said, a completion time (requested time in table version 6), a
                date-time, or `"earliest"`; None for now.
            hours: after which it ends by itself.

        Raises:
            InvalidError: a name, position or time that is none, or what is to be kept is gone already.
        """
        with self._about():
            return place_hold(self._state, name, position, hours)

    def release(self, name: str) -> bool:
        """Give up the hold of a name, and tell whether there was one."""
        with self._about():
            return self._holds.release(name)

    def holds(self) -> list[Hold]:
        """Return the holds that last, the one that keeps most first."""
        with self._about():
            return self._holds.active()

    @contextmanager
    def held(self, hours: float = HOLD_HOURS) -> Iterator[Hold]:
        """Keep the table as it is now for a block of code, which scans it for longer than cleaning waits.

        Args:
            hours: after which the hold ends in any case.

        Raises:
            InvalidError: no number of hours greater than 0.
        """
        with self._about():
            hold = hold_for_scan(self._state, hours)
        try:
            yield hold
        finally:
            self.release(hold.name)

    @property
    def _holds(self) -> Holds:
        return Holds(self._state.storage, self._state.clock, self._state.ids)

    def file_slices(self) -> list[FileSlice]:
        """Return the latest file slice of every file group.

        Raises:
            CorruptTableError: a file is gone that has to be there.
        """

        def slices(facts: TableFacts) -> Draft[FileSlice]:
            lookup = SliceLookup(facts.storage.spec, facts.config, facts.timeline)
            found = [file_slice for path in lookup.partitions() for file_slice in lookup.slices(path)]
            return Draft(found, partial(is_needed, facts))

        with self._about():
            return list(planned(self._facts(), slices)[1].tasks)

    @contextmanager
    def _about(self) -> Iterator[None]:
        """Say in every error which table it is about."""
        try:
            yield
        except DrawstringError as error:
            raise error.at(table=self.uri) from error.__cause__

    def _facts(self) -> TableFacts:
        return load_facts(self._state.storage, self._state.clock)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _chosen(choices: type[_Choice], name: Any) -> _Choice:
    for choice in choices:
        if isinstance(name, str) and choice.upper() == name.upper():
            return choice
    raise InvalidError(f"there is no policy {name!r}: choose {', '.join(choices)}")
