"""Compares a table with its model in every way of asking: now, at a commit, what came since, what changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import UnsupportedError
from drawstring.formats.log_files import log_blocks
from drawstring.formats.log_inline.blocks import LogBlock
from drawstring.model.files import LogFile
from drawstring.model.result import CommitResult
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.contract.cells import PATCHES
from tests.support.contract.kinds import Kind, Row
from tests.support.contract.model import COMMIT_TIME, PARTITION_PATH, State
from tests.support.contract.steps import Both, Step


@dataclass(frozen=True)
class Commit:
    """A commit that was made, the state after it, and the late rows that it brought."""

    operation: str
    instant: str
    time: str
    state: State
    late: tuple[Row, ...] = ()


@dataclass
class Witness:
    """A table of a kind with its model, and what the model said after each commit.

    `patched` counts the commits that were found to have log blocks with some of the columns.
    """

    both: Both
    commits: list[Commit] = field(default_factory=list)
    patched: int = 0

    @property
    def kind(self) -> Kind:
        return self.both.kind

    def take(self, step: Step) -> CommitResult | None:
        """Carry a step out; None or an empty result when it came to nothing."""
        result = self.both.take(step)
        if result:
            time, model = result.completed or result.instant, self.both.model
            made = Commit(step.operation, result.instant, time, dict(model.state), tuple(model.late))
            self.commits.append(made)
            self.check_blocks()
        return result

    def check_blocks(self) -> None:
        """Look into the log files of the last commit.

        Records that it updated are in blocks with some of the columns, and with these alone where it wrote
        no others.
        """
        commit = self.commits[-1]
        if not (self.kind.is_bare and commit.operation in PATCHES and self.both.hits):
            return
        blocks = [block.is_partial for block in data_blocks(self.both.table, commit.instant)]
        assert any(blocks), f"{commit.operation} wrote whole rows: {blocks}"
        assert all(blocks) or commit.operation == "merge"
        self.patched += 1

    def check_snapshot(self) -> None:
        """Compare what the table holds; base files alone hold all of it where no log files can be."""
        expected = self._plain(self.both.model.state)
        assert self._found(self.both.table.scan().to_arrow()) == expected
        if not self.kind.is_mor or (self.commits and self.commits[-1].operation == "compact"):
            assert self._found(self.both.table.scan(read_optimized=True).to_arrow()) == expected

    def check_travel(self, number: int) -> None:
        """Compare the table as of a commit."""
        commit = self.commits[number]
        found = self._found(self.both.table.scan(as_of=commit.instant).to_arrow())
        assert _bare(found) == _bare(self._plain(commit.state))

    def check_incremental(self, start: int, end: int) -> None:
        """Compare the range of commits after number `start` (-1: all) up to `end`.

        The rows that the last commit of the range left, if a commit of the range wrote them. A query on
        log files alone cannot know that a late row in them lost to a row before the range; in Apache Hudi
        neither.
        """
        range_ = self._range(start, end)
        if not self.kind.has_commit_times:
            with pytest.raises(UnsupportedError, match="no meta columns"):
                self.both.table.incremental(*range_)
            return
        asked = self.commits[start + 1 : end + 1]
        found = self._found(self.both.table.incremental(*range_).to_arrow())
        written = {commit.instant for commit in asked}
        last = self._plain(asked[-1].state)
        expected = {name: row for name, row in last.items() if row[COMMIT_TIME] in written}
        surplus = [found.pop(name) for name in found.keys() - expected.keys()]
        assert _bare(found) == _bare(expected)
        late = {self.both.model.name(row) for commit in asked for row in commit.late if self.kind.is_mor}
        assert [row for row in surplus if self.both.model.name(row) not in late] == []

    def check_changes(self, start: int, end: int) -> None:
        """Apply the changes of a range to the rows before it: they come to the rows after it."""
        if not self.kind.has_commit_times:
            return
        first = self.commits[start].state if start >= 0 else {}
        state = {name: _image(row) for name, row in first.items()}
        for change in self.both.table.changes(*self._range(start, end)).to_arrow().to_pylist():
            before, after = (
                change[side] and _image(json.loads(change[side])) for side in ("before", "after")
            )
            assert (
                change["op"]
                == {(False, True): "i", (True, True): "u", (True, False): "d"}[
                    before is not None, after is not None
                ]
            )
            if before is not None:
                assert state.pop(self.both.model.name(before)) == before
            if after is not None:
                state[self.both.model.name(after)] = after
        assert state == {name: _image(row) for name, row in self.commits[end].state.items()}

    def _range(self, start: int, end: int) -> tuple[str, str]:
        return self.commits[start].time if start >= 0 else "earliest", self.commits[end].time

    def _found(self, table: pa.Table) -> State:
        """Return rows by name; a record that comes twice is an error."""
        meta = [COMMIT_TIME, PARTITION_PATH] if self.kind.has_commit_times else []
        rows = table.select([*meta, *(n for n in self.both.columns if n in table.column_names)]).to_pylist()
        by_name = {self.both.model.name(row): row for row in map(_with_number, rows)}
        assert len(by_name) == len(rows), f"a record comes twice: {rows}"
        return by_name

    def _plain(self, state: State) -> State:
        """Return the state as a scan shows it."""
        hidden = () if self.kind.has_commit_times else (COMMIT_TIME, PARTITION_PATH)
        return {
            name: {k: v for k, v in {**dict.fromkeys(self.both.columns), **row}.items() if k not in hidden}
            for name, row in state.items()
        }


def data_blocks(table: Table, instant: str) -> Iterator[LogBlock]:
    """Yield the blocks with records that a commit wrote."""
    storage = context_of(table).storage
    for status in storage.list_tree(""):
        log = LogFile.parse(status)
        if log is not None and not log.is_cdc and not status.path.startswith(".hoodie/"):
            with storage.open(status.path) as file:
                blocks = log_blocks(file, log)
            yield from (each for each in blocks if each.instant == instant and each.kind.is_data)


def _bare(state: State) -> State:
    """Leave out null columns: a query on the past may not have columns that came later."""
    return {name: _without_nulls(row.items()) for name, row in state.items()}


def _image(row: Row) -> Row:
    return _without_nulls(
        (name, value) for name, value in _with_number(row).items() if name[:8] != "_hoodie_"
    )


def _with_number(row: Row) -> Row:
    """Queries show as text what a timestamp-based key generator formats."""
    return {**row, "made": int(row["made"])} if isinstance(row["made"], str) else row


def _without_nulls(items: Iterable[tuple[str, Any]]) -> Row:
    return {name: value for name, value in items if value is not None}
