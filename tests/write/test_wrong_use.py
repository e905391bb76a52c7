"""Wrong use is refused on both engines before anything is written: no file of the table is another then."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.consistent_buckets import CONSISTENT
from tests.support.rows import SCHEMA, rides
from tests.support.spark import spark_session
from tests.support.storages import Files, files_below, files_of
from tests.support.tables import COW, MOR, create

Give = Callable[[pa.Table], Any]
Call = Callable[[Table, Give], Any]

OLD = [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)]
NEW = rides(("n", "rome", 2, 2.0), ("o", "oslo", 2, 2.0))
SIMPLE: dict[str, str] = {}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
NULLS = "hoodie.write.set.null.for.missing.columns"
INDEX, FAIL = "hoodie.index.type", {"hoodie.datasource.insert.dup.policy": "fail"}


def replaced(name: str, values: pa.Array) -> pa.Table:
    return NEW.set_column(NEW.schema.get_field_index(name), name, values)


NO_KEY = "id is null or empty in 1 row"
NULL_KEY = replaced("id", pa.array(["n", None]))


def verb(name: str, rows: pa.Table, **options: str) -> Call:
    return lambda table, give: getattr(table, name)(give(rows), options=options)


def merge(rows: pa.Table) -> Call:
    return lambda table, give: (
        table.merge(give(rows), ["id", "city"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


CALLS: dict[str, tuple[dict[str, str], Call, str]] = {
    "a key that is there": (SIMPLE, verb("insert", rides(*OLD[:2]), **FAIL), "rows to insert have keys"),
    "a key that is there, in a bucket": (BUCKET, verb("insert", rides(OLD[2]), **FAIL), "for example 'c'"),
    "one record from several source rows": (
        SIMPLE, merge(rides(("a", "rome", 2, 2.0), ("a", "rome", 2, 3.0))), "Several rows change the record",
    ),
    "a null key to upsert": (SIMPLE, verb("upsert", NULL_KEY), NO_KEY),
    "a null key in a bucket": (BUCKET, verb("upsert", NULL_KEY), NO_KEY),
    "a null key to insert": (SIMPLE, verb("insert", NULL_KEY), NO_KEY),
    "a null key to bulk_insert": (SIMPLE, verb("bulk_insert", NULL_KEY), NO_KEY),
    "a null key to append": (SIMPLE, verb("append", NULL_KEY), NO_KEY),
    "a null key to delete": (SIMPLE, verb("delete", NULL_KEY), NO_KEY),
    "a null key to overwrite with": (SIMPLE, verb("insert_overwrite_table", NULL_KEY), NO_KEY),
    "a null key to merge": (SIMPLE, merge(NULL_KEY), NO_KEY),
    "other key columns": (
        SIMPLE,
        verb("upsert", NEW, **{"hoodie.datasource.write.recordkey.field": "id,city"}),
        "record key id,city but the table has id",
    ),
    "another partition column": (
        SIMPLE,
        verb("upsert", NEW, **{"hoodie.datasource.write.partitionpath.field": "fare"}),
        "partition.* fare but the table has city",
    ),
    "another key generator": (
        SIMPLE,
        verb("upsert", NEW, **{"hoodie.datasource.write.keygenerator.type": "COMPLEX"}),
        "COMPLEX but the table has SIMPLE",
    ),
    "another ordering column": (
        SIMPLE,
        verb("upsert", NEW, **{"hoodie.table.ordering.fields": "fare"}),
        "ordering.* fare but the table has ts",
    ),
    "a bucket index where there is none": (
        SIMPLE,
        verb("upsert", NEW, **BUCKET),
        "a bucket index True but the table has False",
    ),
    "missing columns that stay and become null": (
        SIMPLE,
        verb("upsert", NEW, **{"drawstring.write.partial_update": "true", NULLS: "true"}),
        "leaves missing columns as they are.*makes them null",
    ),
    "no bucket index where there is one": (
        BUCKET,
        verb("upsert", NEW, **{INDEX: "BLOOM"}),
        "a bucket index False but the table has True",
    ),
    "simple buckets where there are rings": (
        CONSISTENT,
        verb("upsert", NEW, **{INDEX: "BUCKET", "hoodie.index.bucket.engine": "SIMPLE"}),
        "consistent hashing|CONSISTENT_HASHING",
    ),
    "another number of buckets": (
        BUCKET,
        verb("upsert", NEW, **{"hoodie.bucket.index.num.buckets": "4"}),
        "number of buckets 4 but the table has 2",
    ),
    "a column of another type": (
        SIMPLE,
        verb("upsert", replaced("fare", pa.array([[1.0], [2.0]]))),
        "'fare' is double in the table and list",
    ),
    "a narrower value that does not fit": (
        SIMPLE,
        verb("upsert", replaced("fare", pa.array(["cheap", "dear"]))),
        "'fare' is double in the table and string",
    ),
    "a mark of deleted rows that is a text": (
        SIMPLE,
        verb("upsert", NEW.append_column("_hoodie_is_deleted", pa.array(["true", "false"]))),
        "'_hoodie_is_deleted' .* has to be boolean, but is string",
    ),
    "a key of another type": (
        SIMPLE,
        verb("upsert", replaced("id", pa.array([[b"x"], [b"y"]]))),
        "'id' is string in the table and list",
    ),
}  # fmt: skip


def _kinds(properties: dict[str, str]) -> list[tuple[str, int]]:
    return [(MOR, 9), (MOR, 6)] if properties is CONSISTENT else [(COW, 9), (MOR, 9), (MOR, 6)]


@cache
def files_of_a_table(kind: tuple[str, int], properties: tuple[tuple[str, str], ...]) -> Files:
    table = create(table_type=kind[0], version=kind[1], properties={INDEX: "SIMPLE", **dict(properties)})
    table.insert(rides(*OLD))
    table.upsert(rides(OLD[0]))
    return files_of(context_of(table).storage)


def refused(path: Path, name: str, kind: tuple[str, int], opened: Callable[[str], Table], give: Give) -> None:
    """Make a table, carry a wrong call out, and compare the table's files with those before it."""
    properties, call, says = CALLS[name]
    for file, data in files_of_a_table(kind, tuple(properties.items())).items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_bytes(data)
    before = files_below(str(path))
    with pytest.raises(InvalidError, match=f"(?s){says}") as caught:
        call(opened(str(path)), give)
    assert caught.value.table == str(path)
    # On Spark a note stays of a write that was begun: tasks may go on.
    after = {name: each for name, each in files_below(str(path)).items() if not name.endswith(".rolledback")}
    assert after == before


@pytest.mark.parametrize("name", CALLS, ids=lambda name: re.sub(r"\W+", "_", name))
def test_a_wrong_call_changes_no_file(tmp_path: Path, name: str) -> None:
    for number, kind in enumerate(_kinds(CALLS[name][0])):
        refused(tmp_path / str(number), name, kind, drawstring.open, lambda rows: rows)
    assert not list(tmp_path.rglob("*.rolledback"))


def test_a_bucket_index_is_refused_for_files_that_are_in_no_bucket(tmp_path: Path) -> None:
    table = create(path=str(tmp_path / "t"))
    table.insert(rides(*OLD))
    with pytest.raises(InvalidError, match=r"has no buckets.*Drop the option hoodie"):
        table.upsert(NEW, options={INDEX: "BUCKET"})


@pytest.mark.spark
@pytest.mark.parametrize("name", CALLS, ids=lambda name: re.sub(r"\W+", "_", name))
def test_a_wrong_call_changes_no_file_on_spark(tmp_path: Path, name: str) -> None:
    import drawstring.spark
    from drawstring.spark.workers.rows import spark_schema

    spark = spark_session()

    def give(rows: pa.Table) -> Any:
        listed = [tuple(row.values()) for row in rows.to_pylist()]
        return spark.createDataFrame(listed, spark_schema(rows.schema)).coalesce(1)

    refused(tmp_path / "t", name, (MOR, 9), lambda path: drawstring.spark.table(spark, path), give)


def test_a_null_key_that_a_stream_brings_late_leaves_no_rows(tmp_path: Path) -> None:
    table = drawstring.create(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city")
    table.insert(rides(*OLD))
    before = table.scan().to_arrow()
    batches = [*NEW.to_batches(), *NULL_KEY.to_batches()]
    stream = pa.RecordBatchReader.from_batches(SCHEMA, iter(batches))
    with pytest.raises(InvalidError, match=NO_KEY):
        table.bulk_insert(stream)
    assert table.scan().to_arrow().equals(before)
    assert not table.timeline.pending()
