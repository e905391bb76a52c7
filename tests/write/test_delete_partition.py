"""Whole partitions go away."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.testing import context_of
from drawstring.write.delete_partition import matching
from tests.support.combinations import pairwise
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_COMPACTION, create

OPERATION = "hoodie.datasource.write.operation"
ROME, PISA, OSLO = ("a", "rome", 1, 1.0), ("b", "pisa", 1, 1.0), ("c", "oslo", 1, 1.0)


@pytest.mark.parametrize(
    ("table_type", "version", "index"),
    pairwise(list(itertools.product((COW, MOR), (6, 8, 9), ("SIMPLE", "BUCKET")))),
)
def test_a_partition_goes_with_all_its_file_groups(table_type: str, version: int, index: str) -> None:
    table = create(table_type=table_type, version=version, properties=BUCKETS if index == "BUCKET" else {})
    table.upsert(rides(ROME, PISA, OSLO, ("d", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    before = table.timeline.writes()[-1]
    result = table.delete_partition("rome")
    assert held(table) == [PISA, OSLO]
    assert held(table, as_of=before.requested)[0] == ("a", "rome", 2, 2.0)
    assert (result.operation, result.files) == ("delete_partition", 0)
    assert result.partitions_dropped == 1
    assert result.groups_dropped == (2 if index == "BUCKET" else 1)
    table.upsert(rides(("a", "rome", 0, 9.0)))
    assert held(table)[0] == ("a", "rome", 0, 9.0)


def test_partitions_in_a_pending_compaction_stay_until_it_ran() -> None:
    table = create(table_type=MOR)
    table.upsert(rides(ROME, OSLO), options=WITHOUT_COMPACTION)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_COMPACTION)
    planned = table.services.schedule_compaction()
    with pytest.raises(ConflictError, match="Partition rome has file groups in the pending compaction"):
        table.delete_partition("*")
    assert len(held(table)) == 2
    table.delete_partition("oslo")
    assert held(table) == [("a", "rome", 2, 2.0)]
    table.services.compact(planned)
    table.delete_partition("rome")
    assert held(table) == []


def test_a_star_stands_for_any_text_and_what_is_not_there_is_passed_over() -> None:
    table = create(properties={"hoodie.datasource.write.hive_style_partitioning": "true"})
    table.upsert(rides(ROME, PISA, OSLO))
    table.delete_partition("city=r*", "city=paris", "/city=oslo/")
    assert held(table) == [PISA]
    table.delete_partition("nothing like that")
    assert held(table) == [PISA]


def test_patterns_cross_slashes_and_take_no_other_sign_for_a_pattern() -> None:
    paths = ["2024/01/01", "2024/02/01", "2025/01/01", "x.y", "xzy", "a%2Ab"]
    assert matching(["2024*01"], paths) == paths[:2]
    assert matching(["x.y"], paths) == ["x.y"]
    assert matching(["2024/01"], paths) == []
    assert matching(["x%2Ay"], paths) == ["x.y", "xzy"]
    assert matching(["*"], paths) == paths


def test_rows_name_the_partitions_when_no_option_does() -> None:
    table = create()
    table.upsert(rides(ROME, PISA, OSLO))
    rows = context_of(table).engine.rows(*_stream(rides(ROME, ("new", "oslo", 1, 1.0))))
    table._write_rows("delete_partition", rows, {})
    assert held(table) == [PISA]


def _stream(table: Any) -> tuple[Any, Any]:
    return table.schema, table.to_batches()


def test_wrong_calls_are_refused_and_leave_no_trace() -> None:
    table = create()
    table.upsert(rides(ROME))
    with pytest.raises(InvalidError, match="No partition to delete"):
        table.delete_partition()
    with pytest.raises(InvalidError, match="needs the operation delete_partition"):
        table.upsert(rides(ROME), options={"hoodie.datasource.write.partitions.to.delete": "rome"})
    with pytest.raises(InvalidError, match="the call is delete_partition"):
        table.delete_partition("rome", options={OPERATION: "upsert"})
    assert len(table.timeline.instants) == 1


@pytest.mark.parametrize("path", ["", "  ", "/", "*", "rome"])
def test_a_table_without_partitions_says_what_empties_it(path: str) -> None:
    table = create(partition_by=())
    table.upsert(rides(ROME))
    with pytest.raises(InvalidError, match=r"is not a partition|delete\(where=.*insert_overwrite_table"):
        table.delete_partition(path)
    rows = context_of(table).engine.rows(*_stream(rides(ROME)))
    with pytest.raises(InvalidError, match="is not partitioned"):
        table._write_rows("delete_partition", rows, {})
    assert held(table) == [ROME]


def test_an_empty_path_among_others_drops_nothing() -> None:
    table = create()
    table.upsert(rides(ROME, PISA))
    with pytest.raises(InvalidError, match="empty path is not a partition"):
        table.delete_partition("rome", "")
    assert held(table) == [ROME, PISA]


@pytest.mark.parametrize(
    ("typed", "near"),
    [("roma", "'rome'"), ("ROME", "'rome'"), ("x", "'oslo', 'pisa'"), ("rome/*", "'rome'")],
)
def test_a_path_that_drops_nothing_is_told_with_those_that_are_there(
    typed: str, near: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = create()
    table.upsert(rides(ROME, PISA, OSLO))
    with caplog.at_level(logging.WARNING, "drawstring.write.delete_partition"):
        result = table.delete_partition(typed, "o*o")
        assert (result.partitions_dropped, result.groups_dropped) == (1, 1)
        table.delete_partition("rom*")
    (message,) = [
        each.getMessage() for each in caplog.records if each.name == "drawstring.write.delete_partition"
    ]
    assert repr(typed) in message
    assert f"there are {near}" in message


def test_a_list_of_paths_is_refused_and_told_how_to_hand_it_over() -> None:
    table = create()
    table.upsert(rides(ROME))
    with pytest.raises(InvalidError, match=r"not list.*delete_partition\(\*paths\)"):
        table.delete_partition(["rome"])  # type: ignore[arg-type] # what is refused
    assert held(table) == [ROME]
