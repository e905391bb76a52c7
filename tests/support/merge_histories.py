"""Histories of records, drawn at random, and what they come to one by one, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from drawstring.merge.record_version import Versions

Row = dict[str, Any]

MARKER = "__unavailable"
SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("key", pa.string()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("count", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Version:
    """One version of a record; `unset` are the columns that it lacks, of a partial update."""

    key: str
    row: Row
    is_delete: bool = False
    is_commit_time_ordering_delete: bool = False
    unset: frozenset[str] = frozenset()

    @property
    def ts(self) -> int | None:
        return self.row["ts"]


@dataclass(frozen=True)
class Rules:
    """How a model folds; the fields of `FieldMerger`, and whether there are ordering values."""

    ordered: bool = True
    ignores_nulls: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    unavailable: str | None = None
    late_fills: bool = True
    late_stamps: bool = False
    ties_to_first: bool = False

    def says_nothing(self, version: Version, column: str) -> bool:
        value = version.row[column]
        if column in version.unset:
            return True
        if self.unavailable is not None:
            return value in (self.unavailable, self.unavailable.encode())
        if column in self.defaults:
            return self.defaults[column] is not None and value == self.defaults[column]
        return self.ignores_nulls and value is None

    def newer_wins(self, old: Version, new: Version) -> bool:
        if not self.ordered or old.is_commit_time_ordering_delete or new.is_commit_time_ordering_delete:
            return True
        before, after = (-(10**9) if v.ts is None else v.ts for v in (old, new))
        return after > before if self.ties_to_first else after >= before

    def step(self, old: Version, new: Version) -> Version:
        """Lay a version over what there is."""
        leads = self.newer_wins(old, new)
        high, low = (new, old) if leads else (old, new)
        if high.is_delete or low.is_delete or not (leads or self.late_fills):
            return high
        filled = {c for c in SCHEMA.names if self.says_nothing(high, c)}
        row = {c: low.row[c] if c in filled else high.row[c] for c in SCHEMA.names}
        if self.late_stamps:
            row["_hoodie_commit_time"] = new.row["_hoodie_commit_time"]
        # What orders the record is the winner's, whatever its column was filled with.
        return Folded(high.key, row, unset=frozenset(high.unset & low.unset), at=high.ts)

    def fold(self, versions: list[Version]) -> dict[str, Version]:
        found: dict[str, Version] = {}
        for version in versions:
            found[version.key] = self.step(found[version.key], version) if version.key in found else version
        return found


@dataclass(frozen=True)
class Folded(Version):
    """A patched record; `at` is the ordering value of the one that won."""

    at: int | None = None

    @property
    def ts(self) -> int | None:
        return self.at


def values(column: str) -> st.SearchStrategy[Any]:
    texts = st.sampled_from([None, "", "a", "b", MARKER])
    return {
        "name": texts,
        "count": st.sampled_from([None, 0, 1, 7]),
        "tags": st.sampled_from([None, [], ["x"], ["y", None]]),
        "raw": texts.map(lambda text: None if text is None else text.encode()),
    }[column]


@st.composite
def histories(draw: st.DrawFn, *, partial: bool = False, deletes: bool = True) -> list[Version]:
    """Draw versions of a few keys, oldest first."""
    found = []
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["record"] * 4 + (["delete", "commit delete"] if deletes else [])))
        data = {name: draw(values(name)) for name in ("name", "count", "tags", "raw")}
        unset = draw(st.sets(st.sampled_from(sorted(data)))) if partial and kind == "record" else set()
        ts = None if kind == "commit delete" else draw(st.sampled_from([None, 1, 2, 3, 4]))
        key = draw(st.sampled_from("abc"))
        row = {"_hoodie_commit_time": str(number), "key": key, "ts": ts, **data}
        row |= dict.fromkeys(unset if kind == "record" else data)
        version = Version(key, row, kind != "record", kind == "commit delete", frozenset(unset))
        found.append(version)
    return found


def versions_of(history: list[Version], rules: Rules) -> Versions:
    """Return a history as the mergers take it."""
    rows = pa.Table.from_pylist([version.row for version in history], SCHEMA)
    unset = sorted({name for version in history for name in version.unset})
    return Versions(
        rows,
        pa.array([version.key for version in history], pa.string()),
        (rows.column("ts").combine_chunks(),) if rules.ordered else (),
        np.array([version.is_delete for version in history], dtype=bool),
        np.array([version.is_commit_time_ordering_delete for version in history], dtype=bool),
        {name: np.array([name in version.unset for version in history]) for name in unset},
    )


def left(versions: Versions) -> dict[str, Row | None]:
    """Return what is left of each key, None for a delete."""
    rows = versions.rows.to_pylist()
    keys = versions.keys.to_pylist()
    return {key: None if gone else row for key, row, gone in zip(keys, rows, versions.is_delete, strict=True)}


def expected(folded: dict[str, Version]) -> dict[str, Row | None]:
    """Return what is left of each key by the model, None for a delete."""
    return {key: None if version.is_delete else version.row for key, version in folded.items()}
