"""Writing to tables that merge column by column: what is read is what Hudi's fold comes to."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table
from tests.support.merge_histories import SCHEMA, Row, Rules, Version, histories
from tests.support.merge_tables import COLUMNS, DELETED, KINDS, Kind, names, table_of, timed

EXAMPLES = max(3, settings.get_profile(settings.get_current_profile_name()).max_examples // 10)


@dataclass
class Model:
    """One file group: the base file's records, and above them what the log files say of each key."""

    kind: Kind
    is_mor: bool
    base: dict[str, Version] = field(default_factory=dict)
    log: dict[str, Version] = field(default_factory=dict)
    has_base: bool = False

    def write(self, batch: list[Version]) -> None:
        for key, version in self.kind.rules.fold(batch).items():
            self._write(key, version)
        self.has_base = True

    def _write(self, key: str, version: Version) -> None:
        rules = self.kind.rules
        if self.is_mor and self.has_base:
            if version.is_delete and self.kind.block_deletes_always_win:
                version = replace(version, is_commit_time_ordering_delete=True)
            there = self.log.get(key)
            if there is not None and there.is_commit_time_ordering_delete and version.is_delete:
                return
            self.log[key] = version if there is None else rules.step(there, version)
        elif key in self.base:
            self._keep(key, rules.step(self.base.pop(key), version))
        else:
            self._keep(key, version)

    def _keep(self, key: str, version: Version) -> None:
        if not version.is_delete:
            self.base[key] = version

    def snapshot(self) -> dict[str, Version]:
        found = dict(self.base)
        for key, version in self.log.items():
            found[key] = self.kind.rules.step(found[key], version) if key in found else version
        return {key: version for key, version in found.items() if not version.is_delete}

    def compact(self) -> None:
        # Reading the base file again, a record is ordered by what stands in its column.
        self.base = {key: Version(key, version.row) for key, version in self.snapshot().items()}
        self.log = {}


def row_of(version: Version) -> Row:
    return {**{name: version.row[name] for name in SCHEMA.names[1:]}, DELETED: version.is_delete or None}


def written(version: Version, kind: Kind) -> Version:
    """Return a version as a batch can bring it: a delete is a row that says so."""
    always = kind.deletes_always_win or version.ts is None or not kind.rules.ordered
    return replace(version, is_commit_time_ordering_delete=version.is_delete and always)


steps = st.lists(
    st.one_of(histories().filter(bool), st.sets(st.sampled_from("abc"), min_size=1), st.just("compact")),
    min_size=2,
    max_size=6,
)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps)
def test_a_patched_table_holds_what_the_fold_comes_to(
    kind: Kind, table_type: str, history: list[Any]
) -> None:
    model = Model(kind, table_type == "MERGE_ON_READ")
    with table_of(kind, table_type) as table:
        for step in history:
            if step == "compact":
                if model.is_mor and model.has_base:
                    table.services.compact()
                    model.compact()
            elif isinstance(step, set):
                if model.has_base:
                    table.delete(pa.table({"key": sorted(step)}))
                    model.write([Version(key, dict.fromkeys(SCHEMA.names), True, True) for key in step])
            else:
                batch = [written(version, kind) for version in step]
                table.upsert(pa.Table.from_pylist([row_of(version) for version in batch], COLUMNS))
                model.write(batch)
            found = table.scan(columns=SCHEMA.names[1:]).to_arrow().to_pylist()
            expected = {key: row_of(version) for key, version in model.snapshot().items()}
            assert {row["key"]: row for row in found} == {
                key: {name: row[name] for name in SCHEMA.names[1:]} for key, row in expected.items()
            }
            assert len(found) == len(expected)


OWN = "5a3f0c0e-merge-by-adding"
CUSTOM = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": OWN}
ADDING = Kind(9, CUSTOM, Rules(ordered=False))
table_types = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def adds(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Add the counts up; a record whose count comes to nothing is deleted."""
    count = pc.add(older["count"], newer["count"])
    added = newer.set_column(newer.schema.get_field_index("count"), "count", count)
    return added.set_column(added.schema.get_field_index(DELETED), DELETED, pc.equal(count, 0))


@pytest.fixture
def mergers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drawstring.config.table_types._mergers", {})


def counts(*pairs: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"key": key, "count": count} for key, count in pairs], COLUMNS)


def counted(table: Table) -> dict[str, int]:
    rows = table.scan(columns=["key", "count"], where="count < 1000").to_arrow().to_pylist()
    return {row["key"]: row["count"] for row in rows}


@table_types
@pytest.mark.usefixtures("mergers")
def test_a_merger_of_ones_own_merges_batches_files_and_logs(table_type: str) -> None:
    drawstring.register_merger(OWN, adds)
    with table_of(ADDING, table_type) as table:
        table.upsert(counts(("a", 1), ("b", 5), ("a", 2), ("c", 9)))
        assert counted(table) == {"a": 3, "b": 5, "c": 9}
        table.upsert(counts(("a", 10), ("b", -5), ("d", 4)))
        table.upsert(counts(("a", 100), ("d", 1)))
        table.delete(pa.table({"key": ["c"]}))
        assert counted(table) == {"a": 113, "d": 5}
        if table_type == "MERGE_ON_READ":
            table.services.compact()
            assert counted(table) == {"a": 113, "d": 5}
        table.upsert(counts(("c", 7)))
        assert counted(table) == {"a": 113, "c": 7, "d": 5}


@pytest.mark.usefixtures("mergers")
def test_a_table_with_an_unknown_merger_says_how_to_register_one() -> None:
    with table_of(ADDING, "MERGE_ON_READ") as table:
        with pytest.raises(UnsupportedError, match=rf"register_merger\('{OWN}', merger\)") as refused:
            table.upsert(counts(("a", 1)))
        assert refused.value.table == table.uri
        drawstring.register_merger(OWN, adds)
        table = drawstring.open(table.uri)
        table.upsert(counts(("a", 1)))
        table.upsert(counts(("a", 2)))
        drawstring.config.table_types._mergers.clear()
        unknown = drawstring.open(table.uri)
        with pytest.raises(UnsupportedError, match="register_merger"):
            unknown.scan().to_arrow()
        assert unknown.scan(read_optimized=True).to_arrow().column("count").to_pylist() == [1]


@pytest.mark.parametrize(
    ("merger", "words"),
    [
        (lambda older, newer: newer.slice(1), "returned 0 rows for 1 pairs"),
        (lambda older, newer: None, "returned a NoneType"),
        (lambda older, newer: newer.drop_columns(["name"]), "returned no column name"),
        (lambda older, newer: newer.set_column(newer.schema.get_field_index("count"), "count", older["name"]),
         "returned columns of other types"),
        (lambda older, newer: older["nothing"], "failed: KeyError"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("mergers")
def test_a_merger_that_goes_wrong_is_named(merger: Any, words: str) -> None:
    drawstring.register_merger(OWN, merger)
    with table_of(ADDING, "MERGE_ON_READ") as table:
        row = counts(("a", 1)).set_column(2, "name", pa.array(["no number"]))
        table.upsert(row)
        table.upsert(row)
        with pytest.raises(InvalidError, match=f"merger '{OWN}' {words}"):
            table.scan().to_arrow()


@pytest.mark.parametrize(("name", "merger"), [(" ", adds), ("x", "adds")])
def test_what_cannot_be_a_merger_is_not_registered(name: str, merger: Any) -> None:
    with pytest.raises(InvalidError):
        drawstring.register_merger(name, merger)


@table_types
def test_rows_with_the_tables_delete_marker_delete(table_type: str) -> None:
    marker = {
        "hoodie.record.merge.property.hoodie.payload.delete.field": "name",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
    }
    with table_of(Kind(9, marker, Rules()), table_type) as table:
        table.upsert(timed(("a", 5, "x"), ("b", 5, "x"), ("c", 5, "x"), ("e", 5, "x"), ("n", 1, "D")))
        table.upsert(timed(("a", 6, "D"), ("b", 4, "D"), ("c", 6, "d"), ("e", None, "D")))
        assert names(table) == {"b": "x", "c": "d"}


@pytest.mark.parametrize("version", [6, 8, 9])
@table_types
def test_a_soft_delete_without_ordering_value_wins(table_type: str, version: int) -> None:
    with table_of(Kind(version, {}, Rules()), table_type) as table:
        table.upsert(timed(("a", 5, "x"), ("b", 5, "x")))
        gone = timed(("a", None, None), ("b", 4, None))
        table.upsert(gone.set_column(gone.schema.get_field_index(DELETED), DELETED, pa.array([True, True])))
        assert names(table) == {"b": "x"}


def test_a_delete_without_ordering_value_stays_when_a_late_one_follows() -> None:
    """Hudi's readers keep the first of the two, which wins over any record of the base file."""
    with table_of(Kind(9, {}, Rules()), "MERGE_ON_READ") as table:
        table.upsert(timed(("a", 5, "x"), ("b", 5, "x")))
        table.delete(pa.table({"key": ["a"]}))
        gone = timed(("a", 4, None), ("b", 4, None))
        table.upsert(gone.set_column(gone.schema.get_field_index(DELETED), DELETED, pa.array([True, True])))
        assert names(table) == {"b": "x"}


def test_a_late_change_that_fills_nothing_is_no_change() -> None:
    with table_of(KINDS["v9 ignore defaults"], "COPY_ON_WRITE") as table:
        first = table.upsert(timed(("a", 5, "x"), ("b", 5, None), ("c", 5, "x")))
        second = table.upsert(timed(("a", 4, "late"), ("b", 4, "late"), ("c", 6, None)))
        assert names(table) == {"a": "x", "b": "late", "c": "x"}
        found = table.scan(columns=["key", "_hoodie_commit_time"]).to_arrow().to_pylist()
        assert {row["key"]: row["_hoodie_commit_time"] for row in found} == {
            "a": first.instant, "b": second.instant, "c": second.instant,
        }  # fmt: skip


@table_types
def test_rows_whose_operation_is_a_delete_delete(table_type: str) -> None:
    schema = pa.schema([("key", pa.string()), ("_hoodie_operation", pa.string())])
    with tempfile.TemporaryDirectory() as folder:
        table = drawstring.create(folder, schema, name="changes", table_type=table_type, record_key="key")
        table.upsert(pa.table({"key": list("abcd"), "_hoodie_operation": ["I"] * 4}, schema))
        table.upsert(pa.table({"key": list("abcd"), "_hoodie_operation": ["D", "-U", "U", None]}, schema))
        assert sorted(table.scan(columns=["key"]).to_arrow().column("key").to_pylist()) == ["c", "d"]
