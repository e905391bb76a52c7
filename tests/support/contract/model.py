"""What a table has to hold: a plain dictionary, and what each operation does to it.

Nothing here knows of files, indexes or engines. A record is known by its partition and key, with a global
index by its key alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from drawstring.schema.fields import META_COLUMNS
from tests.support.contract.kinds import DELETED, Kind, Row

COMMIT_TIME, PARTITION_PATH = META_COLUMNS[0], META_COLUMNS[3]
Name = tuple[str, ...]
State = dict[Name, Row]


@dataclass
class Model:
    """The rows of a table of a kind.

    Attributes:
        kind: which tells what a record is known by and which of two wins.
        state: the rows now, with partition path and time of the commit that wrote them.
        late: rows of the last operation that lost to what was there.
        patched: records of which a log block may have some of the columns alone.
        lagging: records of which a log file may have a late row.
    """

    kind: Kind
    state: State = field(default_factory=dict)
    late: list[Row] = field(default_factory=list)
    patched: set[Name] = field(default_factory=set)
    lagging: set[Name] = field(default_factory=set)

    def name(self, row: Row) -> Name:
        keys = tuple(row[name] for name in self.kind.keys)
        return keys if self.kind.is_global else (self.kind.path_of(row), *keys)

    def write(self, rows: Iterable[Row], time: str) -> None:
        """Lay rows over what is there: upserts, and inserts of what is new."""
        self.late = []
        for name, row in self._combined(rows).items():
            if self._loses(name, row):
                self.late.append(row)
                self.lagging.add(name)
                continue
            self.patched.discard(name)
            self.lagging.discard(name)
            if row.get(DELETED):
                self.state.pop(name, None)
            else:
                self.state[name] = {**row, COMMIT_TIME: time, PARTITION_PATH: self.kind.path_of(row)}

    def patch(self, rows: Iterable[Row], time: str) -> None:
        """Set the columns that rows have; rows of new records come whole."""
        nothing = dict.fromkeys(self.kind.columns)
        whole = [{**self.state.get(self.name(row), nothing), **row} for row in rows]
        self.write(whole, time)
        self.patched |= set(map(self.name, whole)) - self.lagging

    def settle(self) -> None:
        """Note that nothing is in log files any more."""
        self.late = []
        self.patched.clear()
        self.lagging.clear()

    def can_patch(self, name: Name, *, late: bool = False) -> bool:
        """Tell whether what becomes of a record by an update of some columns depends on the rows alone.

        Log records merge among themselves before they meet the base file, so such an update brings along
        what a late row in the log says of the other columns, and so does a late row what it leaves open.
        """
        depends = self.kind.is_bare and (name in self.lagging or (late and name in self.patched))
        return not depends

    def delete(self, names: Iterable[Name]) -> None:
        self.late = []
        for name in names:
            self.state.pop(name, None)

    def clear(self, paths: Iterable[str] | None = None) -> None:
        """Drop partitions, or everything."""
        gone = None if paths is None else set(paths)
        kept = {} if gone is None else self.state
        self.state = {name: row for name, row in kept.items() if row[PARTITION_PATH] not in (gone or ())}
        self.late = []

    def _combined(self, rows: Iterable[Row]) -> State:
        """Keep one row of each record: the greatest time, of equal ones the last."""
        kept: State = {}
        for row in rows:
            there = kept.get(self.name(row))
            if there is None or not self.kind.is_ordered or row["ts"] >= there["ts"]:
                kept[self.name(row)] = dict(row)
        return kept

    def _loses(self, name: Name, row: Row) -> bool:
        there = self.state.get(name)
        return there is not None and self.kind.is_ordered and row["ts"] < there["ts"]
