"""Which buckets a condition on the key leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, TableConfig, TableType
from drawstring.expressions.predicate import parse_where
from drawstring.filegroups.read_task import InstantRange
from drawstring.index.bucket import bucket_numbers
from drawstring.query.bucket_detection import counts_that_fit
from drawstring.query.partition_pruning import BucketFacts, bucket_pruning
from drawstring.storage.memory import MemoryStorage
from tests.support.golden import golden_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
COUNT = 8


def rides(count: int, key: pa.DataType) -> pa.Table:
    ids = pa.array(range(count)).cast(key)
    columns = [ids, ["a"] * count, range(count), [0.5] * count]
    return pa.table([pa.array(column) for column in columns], names=SCHEMA.names)


def table(path: Path, key: pa.DataType = pa.string(), **more: str) -> drawstring.Table:  # noqa: B008
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(COUNT), **more}
    made = drawstring.create(
        path,
        rides(1, key).schema,
        record_key="id",
        partition_by="city",
        table_type="MERGE_ON_READ",
        properties=properties,
    )
    made.insert(rides(100, key))
    return made


@pytest.mark.parametrize(
    ("where", "slices", "ids"),
    [
        ("id = '7'", 1, [7]),
        ("id = '7' AND x > 0.1", 1, [7]),
        ("id IN ('7', '7') OR id = '7'", 1, [7]),
        ("id = '7' AND city = 'b'", 0, []),
        ("id = '7' AND id = '8'", 0, []),
        ("(id = '7' OR id = '8') AND n < 8", 2, [7]),
        ("id = '7' OR n = 9", COUNT, [7, 9]),
        ("NOT id = '7' AND n < 2", COUNT, [0, 1]),
        ("id >= '98'", COUNT, [98, 99]),
        ("id LIKE '98%'", COUNT, [98]),
        ("id = '' OR id = '7'", COUNT, [7]),
        ("city = 'a' AND n = 7", COUNT, [7]),
        ("id = 'q\"u\\\\o' OR id = '7'", 2, [7]),
    ],
)
def test_only_buckets_that_may_hold_the_keys_are_read(
    tmp_path: Path, where: str, slices: int, ids: list[int]
) -> None:
    made = table(tmp_path / "t")
    scan = made.scan(columns=["n"], where=where)
    assert sorted(scan.to_arrow()["n"].to_pylist()) == ids
    assert len(scan.tasks()) <= slices
    assert len(scan.tasks()) == slices or slices < COUNT


@pytest.mark.parametrize(("where", "slices"), [("id = 7", 1), ("id = 7.5", COUNT), ("id < 1", COUNT)])
def test_whole_numbers_are_keys_too(tmp_path: Path, where: str, slices: int) -> None:
    scan = table(tmp_path / "t", pa.int64()).scan(where=where)
    assert len(scan.tasks()) == slices


def test_every_key_is_found_where_it_was_written(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    made.upsert(rides(120, pa.string()))
    for key in range(0, 120, 7):
        scan = made.scan(columns=["n"], where=f"id = '{key}'")
        assert scan.to_arrow()["n"].to_pylist() == [key]
        assert len(scan.tasks()) == 1


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.index.type": "SIMPLE"},
        {
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.bucket.index.hash.field": "n",
        },
    ],
)
def test_other_indexes_leave_nothing_out(tmp_path: Path, properties: dict[str, Any]) -> None:
    made = drawstring.create(
        tmp_path / "t", SCHEMA, record_key=["id", "n"], partition_by="city", properties=properties
    )
    made.insert(rides(10, pa.string()))
    whole = len(made.scan().tasks())
    assert len(made.scan(where="id = '7'").tasks()) == whole


@pytest.mark.parametrize("hashed", [None, "n", "id", "n,id"])
def test_a_compound_key_leads_to_its_bucket_whatever_is_hashed(tmp_path: Path, hashed: str | None) -> None:
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "7"}
    properties |= {"hoodie.bucket.index.hash.field": hashed} if hashed else {}
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key=["id", "n"], properties=properties)
    made.upsert(rides(120, pa.string()))
    for key in range(0, 120, 7):
        scan = made.scan(columns=["n"], where=f"id = '{key}' AND n = {key}")
        assert scan.to_arrow()["n"].to_pylist() == [key]
        assert len(scan.tasks()) == 1
    assert len(made.scan(where="id = '7'").tasks()) > 1
    with pytest.raises(InvalidError, match="hash fields"):
        other = "id" if hashed == "n" else "n"
        made.upsert(rides(10, pa.string()), options={"hoodie.bucket.index.hash.field": other})


def test_a_table_that_does_not_say_what_is_hashed_is_read_as_a_whole(tmp_path: Path) -> None:
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "7"}
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key=["id", "n"], properties=properties)
    stored = tmp_path / "t/.hoodie/hoodie.properties"
    kept = [line for line in stored.read_text().splitlines() if "hash.field" not in line]
    stored.write_text("\n".join(kept) + "\n")
    by_one = {"hoodie.bucket.index.hash.field": "id"}
    made = drawstring.open(made.uri)
    made.upsert(rides(120, pa.string()), options=by_one)
    for key in range(0, 120, 7):
        found = made.scan(columns=["n"], where=f"id = '{key}' AND n = {key}").to_arrow()
        assert found["n"].to_pylist() == [key]


@pytest.mark.parametrize(
    ("generator", "buckets"), [("COMPLEX", 1), ("USER_PROVIDED", None), ("CUSTOM", None)]
)
def test_keys_that_may_hold_more_than_the_column_lead_nowhere(generator: str, buckets: int | None) -> None:
    config = TableConfig(
        "t",
        TableType.MERGE_ON_READ,
        9,
        2,
        record_key_fields=("id",),
        key_generator=KeyGeneratorType(generator),
        index_type="BUCKET",
        bucket_count=COUNT,
        bucket_hash_fields=("id",),
    )
    facts = BucketFacts(MemoryStorage("memory://empty"), config, InstantRange(frozenset()))
    found = bucket_pruning(parse_where("id = '7'", SCHEMA), SCHEMA, facts)
    assert (None if found is None else len(found.among(COUNT))) == buckets


RULES = "hoodie.bucket.index.partition.expressions"


def test_partitions_have_the_buckets_that_their_rules_say(tmp_path: Path) -> None:
    made = table(tmp_path / "t", **{RULES: r"^b\d,2; c ,3"})
    cities = ("a", "b1", "c")
    for number, city in enumerate(cities[1:], start=1):
        rows = rides(100, pa.string()).set_column(1, "city", pa.array([city] * 100))
        made.upsert(rows.set_column(2, "n", pa.array([number * 1_000 + n for n in range(100)])))
    assert [len(made.scan(where=f"city = '{city}'").tasks()) for city in cities] == [COUNT, 2, 3]
    for key in range(0, 100, 9):
        scan = made.scan(columns=["n"], where=f"id = '{key}'")
        assert sorted(scan.to_arrow()["n"].to_pylist()) == [key, 1_000 + key, 2_000 + key]
        assert len(scan.tasks()) == 3
    again = drawstring.open(tmp_path / "t")
    assert not again.services.validate().findings
    again.upsert(rides(100, pa.string()), options={RULES: r"^b\d,2; c ,3"})
    assert again.scan().to_arrow().num_rows == 300
    with pytest.raises(InvalidError, match="the table has"):
        again.upsert(rides(1, pa.string()), options={RULES: "b,4"})


@pytest.mark.parametrize("rules", ["b", "b,x", "b,0", "(,2", "b,1,2"])
def test_rules_that_make_no_sense_are_refused(tmp_path: Path, rules: str) -> None:
    with pytest.raises(InvalidError, match="expressions"):
        table(tmp_path / "t", **{RULES: rules})
    assert not list(tmp_path.iterdir())


def without_index(path: Path) -> drawstring.Table:
    """Open a table whose properties say nothing of its index, like those of Apache Hudi."""
    properties = path / ".hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "index" not in line]
    properties.write_text("\n".join(kept) + "\n")
    return drawstring.open(path)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("generator", ["SIMPLE", "COMPLEX"])
def test_a_table_that_stores_no_number_of_buckets_reads_one_in_each_partition(
    tmp_path: Path, table_type: str, generator: str
) -> None:
    properties = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(COUNT),
        "hoodie.table.keygenerator.type": generator,
    }
    rows = rides(300, pa.string())
    rows = rows.set_column(1, "city", pa.array([f"city {number % 3}" for number in range(300)]))
    drawstring.create(
        tmp_path,
        SCHEMA,
        record_key="id",
        partition_by="city",
        table_type=table_type,
        properties=properties,
    ).insert(rows)
    made = without_index(tmp_path)
    assert len(made.scan().tasks()) == 3 * COUNT
    for number in range(0, 300, 7):
        found = made.scan(where=f"id = '{number}'")
        assert 3 <= len(found.tasks()) <= 6, "one, or a few if the keys leave several numbers possible"
        assert found.to_arrow()["n"].to_pylist() == [number]
        narrow = made.scan(where=f"id = '{number}' AND city = 'city {number % 3}'")
        assert narrow.to_arrow()["n"].to_pylist() == [number]
    assert len(made.scan(where="n = 7").tasks()) == 3 * COUNT
    assert made.scan(where="id = 'none'").to_arrow().num_rows == 0


def test_a_compound_key_that_may_be_hashed_in_part_rules_no_bucket_out(tmp_path: Path) -> None:
    properties = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(COUNT),
        "hoodie.bucket.index.hash.field": "n",
    }
    drawstring.create(tmp_path, SCHEMA, record_key=["id", "n"], properties=properties).insert(
        rides(100, pa.string())
    )
    found = without_index(tmp_path).scan(where="id = '7' AND n = 7")
    assert len(found.tasks()) == COUNT
    assert found.to_arrow()["n"].to_pylist() == [7]


@pytest.mark.parametrize(("name", "slices"), [("v6_idx_bucket_cow", 12), ("v9_idx_bucket_cow", 12)])
def test_a_table_of_apache_hudi_reads_one_bucket_in_each_partition(
    tmp_path: Path, name: str, slices: int
) -> None:
    made = golden_table(name, tmp_path)
    assert len(made.scan().tasks()) == slices
    rows = made.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    for key in rows:
        found = made.scan(where=f"id = {key!r}")
        assert (len(found.tasks()), found.to_arrow().num_rows) == (3, rows.count(key))


def test_partitions_with_other_numbers_of_buckets_are_asked_on_their_own(tmp_path: Path) -> None:
    made = table(tmp_path, **{RULES: "b,12"})
    made.insert(rides(100, pa.string()).set_column(1, "city", pa.array(["b"] * 100)))
    for each in (tmp_path / ".hoodie/.bucket_index/partition_bucket_index_meta/configs").iterdir():
        each.unlink()
    made = without_index(tmp_path)
    assert len(made.scan().tasks()) == COUNT + 12
    for number in range(100):
        found = made.scan(where=f"id = '{number}'")
        assert len(found.tasks()) < 8
        assert found.to_arrow()["n"].to_pylist() == [number, number]


def test_keys_that_are_in_no_buckets_tell_no_number() -> None:
    keys = [str(number) for number in range(8)]
    right = bucket_numbers(pa.array(keys), 12, ("id",)).tolist()
    assert 12 in counts_that_fit(keys, right, max(right), ("id",))
    assert counts_that_fit(keys, [1, 0, 2, 3, 4, 5, 6, 7], 7, ("id",)) == ()
    assert counts_that_fit([], [], 3, ("id",)) == ()


def test_rules_go_with_buckets_that_are_fixed_in_partitions(tmp_path: Path) -> None:
    for more in ({"hoodie.index.type": "SIMPLE"}, {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}):
        with pytest.raises(InvalidError):
            table(tmp_path / "t", **{RULES: "b,2", **more})
    made = table(tmp_path / "t")
    with pytest.raises(InvalidError, match="the table has none"):
        made.upsert(rides(1, pa.string()), options={RULES: "b,4"})


def test_counts_of_a_rescaling_count_once_it_is_done(tmp_path: Path) -> None:
    made = table(tmp_path / "t", **{RULES: "a,4"})
    folder = tmp_path / "t/.hoodie/.bucket_index/partition_bucket_index_meta/configs"
    (first,) = folder.iterdir()
    later = json.loads(first.read_text()) | {"expressions": "a,1", "instant": "99990101000000000"}
    (folder / "99990101000000000.hashing_config").write_text(json.dumps(later))
    assert len(made.scan(where="id = '7'").tasks()) == 1
    first.write_text("{}")
    with pytest.raises(CorruptTableError, match="bucket counts"):
        made.scan(where="id = '7'").tasks()


def hostile_rules(path: Path, **changes: object) -> Path:
    """Make a table whose file of bucket counts is changed, and return that file."""
    made = table(path / "t", **{RULES: "a,4"})
    rows = rides(100, pa.string()).set_column(1, "city", pa.array(["a" * 64 + "!"] * 100))
    made.upsert(rows)
    (counts,) = (path / "t/.hoodie/.bucket_index/partition_bucket_index_meta/configs").iterdir()
    counts.write_text(json.dumps(json.loads(counts.read_text()) | changes))
    return counts


def test_a_rule_that_backtracks_for_ever_is_answered(tmp_path: Path) -> None:
    hostile_rules(tmp_path, expressions="(aa+)+$,7;a,4")
    made = drawstring.open(tmp_path / "t")
    assert made.scan(where="id = '7'").to_arrow().num_rows == 2
    assert made.services.validate().is_sound


@pytest.mark.parametrize(
    "changes",
    [
        {"expressions": "a(?=a),2"},
        {"expressions": r"(a)\1,2"},
        {"expressions": "a,2000000"},
        {"expressions": "a" * 20_000 + ",2"},
        {"defaultBucketNumber": 1 << 40},
    ],
)
def test_rules_that_cannot_be_followed_are_unsupported(tmp_path: Path, changes: dict[str, object]) -> None:
    counts = hostile_rules(tmp_path, **changes)
    with pytest.raises(UnsupportedError) as caught:
        drawstring.open(tmp_path / "t").scan(where="id = '7'").tasks()
    assert caught.value.path == str(counts.relative_to(tmp_path / "t"))


def test_more_rules_than_anybody_needs_are_damage(tmp_path: Path) -> None:
    hostile_rules(tmp_path, expressions="a,2;" * 5_000)
    with pytest.raises(CorruptTableError, match="5000 rules"):
        drawstring.open(tmp_path / "t").scan(where="id = '7'").tasks()


def test_a_table_made_without_a_number_of_buckets_stores_it_and_leaves_slices_out(tmp_path: Path) -> None:
    made = drawstring.create(
        tmp_path / "t",
        SCHEMA,
        record_key="id",
        partition_by="city",
        table_type="MERGE_ON_READ",
        index="BUCKET",
    )
    assert made.config.properties["hoodie.bucket.index.num.buckets"] == "256"
    made.insert(rides(50, pa.string()))
    assert len(made.scan().tasks()) > 20
    found = made.scan(where="id = '7'")
    assert len(found.tasks()) == 1
    assert found.to_arrow()["id"].to_pylist() == ["7"]
