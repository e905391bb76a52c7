"""Tables with ORC and Lance base files: their files, and what queries and services make of them."""

from __future__ import annotations

import gc
import json
import random
import resource
import sys
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance.file import LanceFileWriter

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError, UnsupportedError
from drawstring.formats.data_file import base_footer, key_summary
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.limits import SetLimits
from tests.support.rows import rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create

FORMATS = ("orc", "lance")
BASE_FORMAT = "hoodie.table.base.file.format"
CDC = {"hoodie.table.cdc.enabled": "true"}
ONE_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
formats = pytest.mark.parametrize("ending", FORMATS)
TYPES = pa.schema(
    [
        ("id", pa.string()),
        ("whole", pa.int32()),
        ("large", pa.int64()),
        ("share", pa.float32()),
        ("exact", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("coarse", pa.timestamp("ms", "UTC")),
        ("local", pa.timestamp("us")),
        ("amount", pa.decimal128(12, 2)),
        ("raw", pa.binary()),
        ("digest", pa.binary(4)),
        ("tags", pa.list_(pa.string())),
        ("props", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("at", pa.timestamp("us", "UTC")), ("names", pa.list_(pa.string()))])),
    ]
)
NOON = datetime(2024, 2, 29, 12, 30, 1, 123456)
FULL: dict[str, Any] = {
    "whole": -7,
    "large": 1 << 40,
    "share": 0.25,
    "exact": -1e300,
    "flag": True,
    "day": date(1969, 12, 31),
    "at": NOON.replace(tzinfo=UTC),
    "coarse": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
    "local": NOON,
    "amount": Decimal("-1234567890.05"),
    "raw": b"",
    "digest": b"\0\1\2\xff",
    "tags": ["a", None, ""],
    "props": [("k", 1), ("l", None)],
    "inner": {"at": NOON.replace(tzinfo=UTC), "names": None},
}


def of_types(*rows: tuple[str, dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, **values} for key, values in rows], TYPES)


def made(ending: str, table_type: str = MOR, path: Path | None = None, **properties: str) -> Table:
    how = {"version": 10, "path": path, "table_type": table_type}
    return create(**how, properties={BASE_FORMAT: ending, **properties})


def names(table: Table) -> list[str]:
    """Return the endings of the data files of a table, in order."""
    storage = context_of(table).storage
    found = [each.name for each in storage.list_files("rome") if not each.name.startswith(".")]
    return sorted(name.partition(".")[2] for name in found)


def fares(table: Table, **how: Any) -> dict[str, float]:
    return {row["id"]: row["fare"] for row in table.scan(["id", "fare"], **how).to_arrow().to_pylist()}


@formats
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_values_of_all_types_come_back_from_base_and_log_files(ending: str, table_type: str) -> None:
    properties = {BASE_FORMAT: ending, **ONE_BUCKET}
    how = {"partition_by": (), "ordering": "large", "version": 10, "table_type": table_type}
    table = create(TYPES, **how, properties=properties)
    rows = [("a", FULL), ("b", {"inner": {}, "large": 0}), ("c", {"large": 0})]
    table.bulk_insert(of_types(*rows))
    later = [("c", FULL), ("d", FULL), ("e", {})]
    table.upsert(of_types(*later), options=WITHOUT_SERVICES)
    found = table.scan(TYPES.names).to_arrow()
    assert found.schema.types == TYPES.types
    assert found.sort_by("id").to_pylist() == of_types(*rows[:2], *later).to_pylist()
    assert table.scan(["id"], where="at = TIMESTAMP '2024-02-29 12:30:01.123456'").to_arrow().num_rows == 3
    assert table.scan(["id"], where="amount < -5 and flag").to_arrow().num_rows == 3
    if table_type == MOR:
        assert table.services.compact()
        assert table.scan(TYPES.names).to_arrow().sort_by("id").equals(found.sort_by("id"))
    assert table.services.validate().is_sound


INNER = pa.struct([("at", pa.int64()), ("tags", pa.list_(pa.string()))])
NESTED = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("one", pa.struct([("two", pa.struct([("three", INNER)])), ("n", pa.int32())])),
        ("many", pa.list_(pa.struct([("in", INNER)]))),
        ("named", pa.map_(pa.string(), pa.struct([("in", INNER)]))),
    ]
)
_INNERS = (None, {"at": None, "tags": None}, {"at": 1, "tags": []}, {"at": 2, "tags": ["a", None]})


def nested_values(picked: random.Random) -> dict[str, Any]:
    """Return a row of structs in structs, of which any may be null."""
    ins = [picked.choice([None, {"in": picked.choice(_INNERS)}]) for _ in range(4)]
    two = picked.choice([None, {"three": picked.choice(_INNERS)}])
    return {
        "one": picked.choice([None, {"two": two, "n": picked.randrange(9)}]),
        "many": picked.choice([None, [], ins[:1], ins]),
        "named": picked.choice([None, [("a", ins[0])], [("a", ins[1]), ("b", ins[2])]]),
    }


@formats
def test_structs_in_structs_come_back_from_slices_of_batches(ending: str) -> None:
    for seed in range(10):
        picked = random.Random(seed)
        rows = [{"id": f"{at:02}", "p": str(at // 4), **nested_values(picked)} for at in range(20)]
        table = create(
            NESTED, partition_by="p", ordering=(), table_type=COW, properties={BASE_FORMAT: ending}
        )
        table.bulk_insert(pa.Table.from_pylist(rows, NESTED))
        assert table.scan(NESTED.names).to_arrow().sort_by("id").to_pylist() == rows, seed


@pytest.mark.parametrize("step", ["__init__", "write_batch"])
def test_rows_that_lance_cannot_store_say_so(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made("lance", COW)
    table.insert(rides(("a", "rome", 1, 1.0)))
    before = names(table)

    class PanicException(BaseException):
        """Such as Lance has, under this name."""

    def fail(writer: LanceFileWriter, *given: object, **named: object) -> None:
        raise PanicException("assertion failed")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(LanceFileWriter, step, fail)
    with pytest.raises(
        InvalidError, match=r"cannot be stored in a Lance file: assertion failed\. Use a table"
    ):
        table.upsert(rides(("b", "rome", 1, 1.0)))
    assert names(table) == before
    gc.collect()
    assert not any(tmp_path.iterdir())


def test_writes_and_services_that_need_lance_leave_the_table_alone_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made("lance", **ONE_BUCKET)
    for fare in (1.0, 2.0):
        table.upsert(rides(("a", "rome", 1, fare)), options=WITHOUT_SERVICES)
    instants, files = table.timeline.instants, names(table)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "lance.file", None)
        with pytest.raises(InvalidError, match="Lance files need pylance"):
            table.upsert(rides(("b", "rome", 1, 3.0)))
        assert (table.timeline.instants, names(table)) == (instants, files)
        with pytest.raises(InvalidError, match="Lance files need pylance"):
            table.services.compact()
        assert table.timeline.writes() == instants  # what is planned stays so
        assert names(table) == files
    assert table.services.compact()
    assert fares(table) == {"a": 2.0}


@formats
@pytest.mark.parametrize("layout", ["default", "lsm_tree"])
def test_log_files_have_the_format_and_the_footers_of_native_ones(ending: str, layout: str) -> None:
    table = made(ending, **{"hoodie.table.storage.layout": layout}, **ONE_BUCKET)
    table.insert(rides(*((key, "rome", 1, 1.0) for key in "cab")), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0), ("n", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 9, 0.0)), options=WITHOUT_SERVICES)
    (file_slice,) = table.inspect.files()
    assert names(table) == sorted([ending, f"deletes.{ending}", *[f"log.{ending}"] * 2])
    storage = context_of(table).storage
    stored = {each.native: base_footer(storage, each.status.path) for each in file_slice.logs}
    for footer in stored.values():
        assert footer.entries["hudi.log.format.VERSION"] == "2"
        assert footer.entries["hudi.log.format_version"] == "2"
        assert '"name":"fare"' in footer.entries["hudi.log.format.SCHEMA"].replace(" ", "")
        assert ("orc.avro.schema" in footer.entries) == (ending == "orc")
    assert fares(table) == {"a": 3.0, "c": 1.0, "n": 2.0}
    assert table.services.validate().is_sound


@formats
def test_change_images_are_stored_in_the_format(ending: str) -> None:
    table = made(ending, COW, **CDC)
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 9, 0.0)), options=WITHOUT_SERVICES)
    assert names(table) == [f"cdc.{ending}"] * 2 + [ending] * 3
    changes = table.changes("earliest").to_arrow().to_pylist()
    assert sorted(row["op"] for row in changes) == ["d", "i", "i", "u"]
    (updated,) = (row for row in changes if row["op"] == "u")
    assert [json.loads(updated[name])["fare"] for name in ("before", "after")] == [1.0, 2.0]


@formats
def test_base_files_carry_the_key_summary_by_which_lookups_leave_them_out(ending: str) -> None:
    table = made(ending, COW, **{"hoodie.index.type": "BLOOM"})
    table.insert(rides(("b", "rome", 1, 1.0), ("a", "rome", 1, 1.0)))
    (file_slice,) = table.inspect.files()
    assert file_slice.base is not None
    summary = key_summary(context_of(table).storage, file_slice.base.status.path)
    assert summary is not None
    assert (summary.rows, summary.smallest, summary.largest) == (2, "a", "b")
    bloom = summary.bloom_filter()
    assert bloom is not None
    assert bloom.contains(pa.array(["a", "b", "c"])).tolist() == [True, True, False]
    table.upsert(rides(("b", "rome", 2, 2.0), ("c", "rome", 2, 2.0)))
    assert fares(table) == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert len(table.inspect.files()) == 1


@formats
def test_services_and_earlier_times_keep_the_format(ending: str) -> None:
    table = made(ending)
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"}
    for number, key in enumerate("abcd"):
        rows = rides((key, "rome", number, float(number)))
        table.insert(rows, options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS, **statistics})
    table.upsert(rides(("a", "rome", 9, 9.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 10, 10.0)), options=WITHOUT_SERVICES)
    before = fares(table)
    assert table.services.log_compact(min_blocks=2)
    assert fares(table) == before
    assert table.services.compact()
    assert table.services.cluster()
    assert fares(table) == before == {"a": 10.0, "b": 1.0, "c": 2.0, "d": 3.0}
    assert fares(table, where="fare > 2.5") == {"a": 10.0, "d": 3.0}
    (file_slice,) = table.inspect.files()
    assert file_slice.base is not None
    assert file_slice.base.status.name.endswith(f".{ending}")
    first = table.timeline.writes()[0]
    assert fares(table, as_of=first.requested) == {"a": 0.0}
    assert table.services.validate().is_sound


@formats
def test_a_write_that_fails_leaves_no_file_behind(ending: str) -> None:
    table = made(ending, COW)
    table.insert(rides(("a", "rome", 1, 1.0)))
    before = names(table)
    row = {"id": "b", "city": "rome", "ts": 2, "fare": 2.0, "at": datetime(2500, 1, 1, tzinfo=UTC)}
    far = pa.Table.from_pylist([row])
    if ending == "orc":
        with pytest.raises(InvalidError, match="from 1678 to 2261"):
            table.upsert(far)
        assert names(table) == before
        assert fares(table) == {"a": 1.0}
    else:
        table.upsert(far)
        assert table.scan(["at"], where="id = 'b'").to_arrow().column(0).to_pylist()[0].year == 2500


@formats
def test_a_disk_that_refuses_a_file_is_reported(ending: str, tmp_path: Path, limit: SetLimits) -> None:
    table = create(TYPES, path=tmp_path / "t", partition_by=(), ordering=(), properties={BASE_FORMAT: ending})
    rows = [(f"{at:04}", {"raw": random.Random(at).randbytes(20_000)}) for at in range(2_000)]
    limit(lance_gathered_bytes=1 << 20)
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, hard))
    try:
        with pytest.raises(UnavailableError, match="A file is larger than allowed"):
            table.bulk_insert(of_types(*rows))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert table.scan().to_arrow().num_rows == 0


@formats
def test_the_format_is_chosen_when_a_table_is_created_and_not_later(ending: str) -> None:
    table = made(ending)
    assert table.config.properties[BASE_FORMAT] == ending.upper()
    table.insert(rides(("a", "rome", 1, 1.0)), options={BASE_FORMAT: ending.upper()})
    with pytest.raises(InvalidError, match="format of base files"):
        table.upsert(rides(("a", "rome", 1, 1.0)), options={BASE_FORMAT: "parquet"})
    with pytest.raises(UnsupportedError, match="Use PARQUET or ORC or LANCE"):
        made("hfile")


def test_lance_needs_a_version_whose_readers_know_it() -> None:
    with pytest.raises(InvalidError, match="needs a later table version"):
        create(version=6, properties={BASE_FORMAT: "lance"})


def test_who_lacks_the_package_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made("lance", path=tmp_path / "t")
    table.insert(rides(("a", "rome", 1, 1.0)))
    monkeypatch.setitem(sys.modules, "lance.file", None)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidError, match=r"pip install 'drawstring\[lance\]'"):
        table.upsert(rides(("a", "rome", 2, 2.0)))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_with_lance_files_is_not_taken_to_a_version_without_readers_of_them(tmp_path: Path) -> None:
    table = create(path=tmp_path / "t", table_type=MOR, version=9, properties={BASE_FORMAT: "lance"})
    table.insert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(UnsupportedError, match=r"version 6 cannot have Lance base files \("):
        table.versions.downgrade(6)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    table.versions.downgrade(8)
    assert fares(table) == {"a": 2.0}


def test_a_bootstrapped_table_keeps_the_format_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(rides(("a", "rome", 1, 1.0)), tmp_path / "source" / "a.parquet")
    with pytest.raises(UnsupportedError, match="as its source has"):
        drawstring.bootstrap(
            tmp_path / "t", tmp_path / "source", record_key="id", options={BASE_FORMAT: "orc"}
        )
