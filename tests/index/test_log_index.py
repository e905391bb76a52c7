"""The index in log files: it never misses a key, and reads no log file that the footers exclude."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drawstring.base.errors import InvalidError
from drawstring.filegroups.log_key_index import summarise_log
from drawstring.model.files import FileSlice
from tests.index.log_tables import AVRO, OFF, LogTable, Watched, found_by_reading, narrowed
from tests.support.rows import rides
from tests.support.tables import create

KEYS = [f"k{number}" for number in range(12)]
versions = pytest.mark.parametrize("version", [6, 9])
EXAMPLES = max(3, settings.get_profile(settings.get_current_profile_name()).max_examples // 20)


@dataclass(frozen=True)
class Step:
    """One step of a history."""

    verb: str
    keys: tuple[str, ...]
    ts: int
    is_old: bool
    is_avro: bool

    def take(self, table: LogTable) -> None:
        options = {**(OFF if self.is_old else {}), **(AVRO if self.is_avro else {})}
        match self.verb:
            case "compact":
                table.open().services.compact()
            case "schedule":
                table.schedule()
            case "fail":
                table.fail(self.keys, self.ts, changes=6 + self.ts % 3)
            case _:
                table.write(self.verb, self.keys, self.ts, **options)


key_sets = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True).map(tuple)
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(("upsert",) * 6 + ("delete", "delete", "insert", "compact", "schedule", "fail")),
        key_sets,
        st.integers(0, 5),
        st.sampled_from((False, False, False, True)),
        st.booleans(),
    ),
    min_size=3,
    max_size=8,
)


@versions
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps, wanted=st.lists(key_sets, min_size=1, max_size=2))
def test_a_look_by_footers_finds_what_a_full_scan_finds(
    version: int, history: list[Step], wanted: list[tuple[str, ...]]
) -> None:
    table = LogTable(version)
    table.write("insert", KEYS[:6])
    for step in history:
        step.take(table)
        for keys in wanted:
            check_look(table, keys)


def check_look(table: LogTable, keys: tuple[str, ...]) -> None:
    watched = Watched(table.storage)
    plain, look = table.look(), table.look(watched)
    for file_slice in table.slices():
        watched.opened.clear()
        less = narrowed(look, file_slice, keys)
        asked = set(watched.opened)
        watched.opened.clear()
        found = set() if less is None else found_by_reading(look, less, keys)
        assert found == found_by_reading(plain, file_slice, keys)
        kept = {log.status.name for log in less.logs} if less is not None else set()
        logs_read = {name for name in watched.opened if ".log." in name}
        assert logs_read == kept
        assert kept <= may_be_read(table, file_slice, keys)
        assert {name for name in asked if ".log." in name} <= {log.status.name for log in file_slice.logs}


def may_be_read(table: LogTable, file_slice: FileSlice, keys: tuple[str, ...]) -> set[str]:
    """Return the log files that have one of the keys by their own rows, or whose rows are not told of."""
    names = set()
    for log, index in zip(file_slice.logs, table.indexes_of(file_slice), strict=True):
        summary, is_opaque = summarise_log(table.storage, log)
        bloom = summary.bloom_filter()
        if is_opaque or index is None or (bloom is not None and bloom.contains_any(pa.array(keys))):
            names.add(log.status.name)
    return names


def filled(version: int, files: int, clique_files: int = 3, **options: str) -> LogTable:
    """A slice with 100 keys in its base file, and log files of two keys each."""
    table = LogTable(version, clique_files)
    table.write("insert", [f"b{number:02}" for number in range(100)])
    for number in range(files):
        table.write("upsert", [f"b{number:02}", f"b{number + 50}"], ts=2, **options)
    return table


@versions
def test_every_log_file_names_its_clique_and_all_cliques_before(version: int) -> None:
    table = filled(version, 8)
    (file_slice,) = table.slices()
    names = [log.status.name for log in file_slice.logs]
    shapes = [
        (
            [names.index(member.file[0]) for member in index.clique],
            [[names.index(name) for name, _ in clique] for clique in index.chain],
        )
        for index in table.indexes()
        if index is not None
    ]
    assert shapes == [
        ([], []),
        ([0], []),
        ([0, 1], []),
        ([], [[2, 1, 0]]),
        ([3], [[2, 1, 0]]),
        ([3, 4], [[2, 1, 0]]),
        ([], [[5, 4, 3], [2, 1, 0]]),
        ([6], [[5, 4, 3], [2, 1, 0]]),
    ]


@versions
@pytest.mark.parametrize("options", [{}, AVRO], ids=["parquet", "avro"])
def test_a_look_opens_the_ends_of_cliques_and_the_files_that_have_the_keys(
    version: int, options: dict[str, str]
) -> None:
    table = filled(version, 30, clique_files=10, **options)
    (file_slice,) = table.slices()
    watched = Watched(table.storage)
    look = table.look(watched)
    less = narrowed(look, file_slice, ["b57", "nobody"])
    ends = [file_slice.logs[at].status.name for at in (29, 19, 9)]
    assert sorted(name for name in watched.opened if ".log." in name) == sorted(ends)
    assert less is not None
    assert [log.status.name for log in less.logs] == [file_slice.logs[7].status.name]
    assert narrowed(look, file_slice, ["nobody"]) is None


@versions
def test_compacted_log_files_drop_out_of_what_is_told(version: int) -> None:
    table = filled(version, 5)
    table.schedule()
    table.write("upsert", ["b01", "b20"], ts=3)
    table.write("upsert", ["b02", "b21"], ts=3)
    before = table.indexes()[-1]
    assert before is not None
    assert (len(before.clique), len(before.chain)) == (0, 2)
    table.open().services.compact()
    assert [len(each.logs) for each in table.slices()] == [0]
    table.write("upsert", ["b03"], ts=4)
    (after,) = table.indexes()
    assert after is not None
    assert (after.clique, after.chain) == ((), ())


@versions
def test_inserts_and_deletes_in_log_files_are_found(version: int) -> None:
    table = filled(version, 2)
    table.write("delete", ["b07", "b08"], ts=5)
    (file_slice,) = table.slices()
    look = table.look()
    less = narrowed(look, file_slice, ["b08"])
    assert less is not None
    assert len(less.logs) == 1
    assert found_by_reading(look, less, ["b08"]) == {("b08", file_slice.file_id, True)}


@versions
def test_log_files_of_other_writers_join_the_clique_of_the_next_one(version: int) -> None:
    table = filled(version, 3, **OFF)
    (file_slice,) = table.slices()
    assert table.indexes() == [None] * 3
    less = narrowed(table.look(), file_slice, ["b01"])
    assert less is not None
    assert less.logs == file_slice.logs
    table.write("upsert", ["b90"], ts=7)
    index = table.indexes()[-1]
    assert index is not None
    assert [member.summary.rows for member in index.clique] == [2, 2, 2]
    (file_slice,) = table.slices()
    less = narrowed(table.look(), file_slice, ["b01"])
    assert less is not None
    assert less.logs == (file_slice.logs[1],)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"table_type": "COPY_ON_WRITE"}, "needs a MERGE_ON_READ table"),
        ({"properties": {"hoodie.index.type": "SIMPLE"}}, "needs hoodie.index.type BLOOM"),
        ({"properties": {"hoodie.index.type": "BUCKET"}}, "needs hoodie.index.type BLOOM"),
    ],
)
def test_an_index_in_log_files_is_refused_where_it_cannot_be(how: dict[str, object], message: str) -> None:
    table = create(**{"table_type": "MERGE_ON_READ", **how})
    with pytest.raises(InvalidError, match=message):
        table.upsert(rides(("a", "rome", 1, 1.0)), options={"hoodie.index.log.enable": "true"})
    assert table.timeline.instants == ()


def test_a_rollback_in_a_log_file_is_always_read() -> None:
    table = filled(6, 2)
    table.fail(["b40"], ts=3, changes=8)
    table.write("upsert", ["b41"], ts=4)
    (file_slice,) = table.slices()
    dead, rollback = file_slice.logs[2:4]
    less = narrowed(table.look(), file_slice, ["b40"])
    assert less is not None
    assert less.logs == (dead, rollback)
    assert found_by_reading(table.look(), less, ["b40"]) == {("b40", file_slice.file_id, False)}
