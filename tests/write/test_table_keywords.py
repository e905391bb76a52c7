"""Keywords of methods do what the options do that they stand for, and every call returns a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import COW, MOR, create

ROWS = (("a", "rome", 3, 1.0), ("b", "rome", 1, 2.0), ("c", "oslo", 2, 3.0))

NOTHING: dict[str, Callable[[Table], Any]] = {
    "compact": lambda table: table.services.compact(),
    "log_compact": lambda table: table.services.log_compact(),
    "compact_base_files": lambda table: table.services.compact_base_files(),
    "cluster": lambda table: table.services.cluster(partitions=["nowhere"]),
    "clean": lambda table: table.services.clean(),
    "archive": lambda table: table.services.archive(),
    "expire_partitions": lambda table: table.services.expire_partitions(retain_days=9),
    "restore": lambda table: table.savepoints.restore(table.timeline.writes()[-1].requested),
    "rollback": lambda table: table.services.rollback(),
    "upgrade": lambda table: table.versions.upgrade(),
    "delete": lambda table: table.delete(where="id = 'z'", options={"hoodie.allow.empty.commit": False}),
    "delete_partition": lambda table: table.delete_partition(
        "nowhere", options={"hoodie.allow.empty.commit": False}
    ),
}


@pytest.mark.parametrize("call", NOTHING)
def test_a_call_with_nothing_to_do_returns_a_result_that_says_so(call: str) -> None:
    table = create(table_type=MOR)
    table.insert(rides(*ROWS))
    instants = table.timeline.instants
    result = NOTHING[call](table)
    assert result is not None
    assert (bool(result), result.changed) == (False, False)
    assert table.timeline.instants == instants


def test_a_call_that_does_something_returns_the_same_kind_of_result() -> None:
    table = create(table_type=MOR)
    assert table.insert(rides(*ROWS)).changed
    assert table.upsert(rides(("a", "rome", 9, 9.0)))
    done, nothing = table.services.compact(), table.services.compact()
    assert (type(done), bool(done), bool(nothing)) == (type(nothing), True, False)
    assert (nothing.operation, nothing.records_written) == (done.operation, 0)


def test_a_positional_plan_is_what_runs() -> None:
    table = create(table_type=COW)
    for row in ROWS[:2]:
        table.append(rides(row), merge_small_files=False)
    plan = table.services.schedule_base_file_compaction(small_file_bytes=1 << 20)
    assert plan is not None
    assert table.services.compact_base_files(plan).instant == plan
    with pytest.raises(InvalidError, match="no base-file compaction"):
        table.services.compact_base_files("20200101000000000")
    with pytest.raises(TypeError):
        table.services.compact(None, lambda done, total: None)  # type: ignore[call-arg]


def test_insert_drops_or_refuses_duplicates() -> None:
    table = create()
    table.insert(rides(*ROWS))
    assert table.insert(rides(("a", "rome", 5, 5.0), ("d", "rome", 5, 5.0)), duplicates="drop").inserts == 1
    with pytest.raises(InvalidError):
        table.insert(rides(("a", "rome", 6, 6.0)), duplicates="fail")
    with pytest.raises(InvalidError, match="Choose one of none, drop, fail"):
        table.insert(rides(*ROWS), duplicates="perhaps")


def test_upsert_of_some_columns() -> None:
    table = create()
    table.insert(rides(*ROWS))
    some = rides(("a", "rome", 9, 0.0)).drop_columns(["fare"])
    with pytest.raises(InvalidError):
        table.upsert(some)
    table.upsert(some, partial_update=True)
    assert ("a", "rome", 9, 1.0) in held(table)
    table.upsert(some, null_for_missing=True)
    assert ("a", "rome", 9, None) in held(table)


def test_rows_are_sorted_by_the_columns_that_are_named() -> None:
    table = create(partition_by=())
    many = [(f"r{number}", "rome", 100 - number, float(number % 7)) for number in range(100)]
    table.bulk_insert(rides(*many), sort_by="ts")
    for batch in table.scan("ts").to_batches():
        assert batch["ts"].to_pylist() == sorted(batch["ts"].to_pylist())
    assert table.services.cluster(sort_by=["fare", "ts"], target_file_bytes=1 << 30)
    fares = table.scan("fare").to_arrow()["fare"].to_pylist()
    assert fares == sorted(fares)


def test_clean_keeps_what_is_asked_for() -> None:
    table = create()
    for ts in range(5):
        table.upsert(rides(("a", "rome", ts, 1.0)), options={"hoodie.clean.automatic": False})
    by_versions, by_commits = (
        table.services.plan_clean(retain_versions=2),
        table.services.plan_clean(retain_commits=2),
    )
    assert by_versions is not None and by_commits is not None
    assert (by_versions.policy, by_versions.file_count) == ("KEEP_LATEST_FILE_VERSIONS", 3)
    assert (by_commits.policy, by_commits.file_count) == ("KEEP_LATEST_COMMITS", 2)
    assert table.services.plan_clean(retain_hours=1) is None
    with pytest.raises(InvalidError, match="contradict each other"):
        table.services.clean(retain_commits=2, retain_hours=1)
    assert table.services.clean(retain_versions=2).files == 3


def test_a_table_is_described_by_keywords() -> None:
    table = drawstring.create(
        "memory://keywords",
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering="ts",
        index="BUCKET",
        bucket_count=3,
        merge_mode="COMMIT_TIME_ORDERING",
        hive_style=True,
        cdc=True,
    )
    config = table.config
    assert (config.index_type, config.bucket_count, config.hive_style) == ("BUCKET", 3, True)
    assert (str(config.merge_mode), config.cdc_enabled) == ("COMMIT_TIME_ORDERING", True)
    with pytest.raises(InvalidError, match=r"index and hoodie\.index\.type contradict"):
        drawstring.create(
            "memory://others",
            SCHEMA,
            record_key="id",
            index="BLOOM",
            properties={"hoodie.index.type": "BUCKET"},
        )


def test_options_that_are_no_dictionary_are_refused() -> None:
    table = create()
    with pytest.raises(InvalidError, match="options is a dictionary"):
        table.upsert(pa.table({}), options="hoodie.index.type=BUCKET")  # type: ignore[arg-type]
