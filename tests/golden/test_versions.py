"""Golden tables in another version: every query gives what real Hudi read from them before."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.clock import SystemClock
from drawstring.model.instant import time_of
from drawstring.query.table_state import load_facts
from drawstring.storage import open_storage
from tests.support.golden import Case, cases_of, golden_table
from tests.support.golden_rows import in_order, rows_of

MOVED = "_hoodie_file_name"
"""Compaction writes records to other files."""

CHANGES = [
    ("v6_cow_archived", 9),
    ("v6_cow_savepoint_clean", 8),
    ("v6_cow_insert_overwrite", 9),
    ("v6_cdc_cow_op_key_only", 8),
    ("v6_mor_archived", 8),
    ("v6_mor_rollback", 9),
    ("v6_mor_log_only", 8),
    ("v6_mor_log_compaction", 9),
    ("v6_mor_payload_partial", 9),
    ("v8_cow_archived", 6),
    ("v8_cow_clustering_pending", 6),
    ("v8_mor_compaction_pending", 6),
    ("v8_mor_payload_partial", 9),
    ("v9_cow_insert_overwrite", 6),
    ("v9_cdc_mor_data_before", 6),
    ("v9_mor_archived", 6),
    ("v9_mor_merge_partial", 6),
    ("v9_mor_payload_dms", 8),
    ("v9_idx_bucket_partition_level", 6),
]


@pytest.mark.parametrize(
    ("name", "version"), [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in CHANGES]
)
def test_golden_tables_read_in_another_version_as_hudi_read_them(
    tmp_path: Path, name: str, version: int
) -> None:
    table = golden_table(name, tmp_path)
    before = {each.requested: time_of(each) for each in table.timeline.writes()}
    if version > table.config.version:
        table.versions.upgrade(version)
    else:
        table.versions.downgrade(version)
    after = {each.requested: time_of(each) for each in table.timeline.writes()}
    times = {before[requested]: after[requested] for requested in before}
    facts = load_facts(open_storage(tmp_path / name), SystemClock())
    asked = [each for each in cases_of(name) if each.query != "read_optimized"]
    assert asked
    for case in asked:
        result = in_times(case, times).scan(facts).to_arrow()
        shown = [column for column in case.shown(result) if column != MOVED]
        assert in_order(rows_of(result, shown)) == in_order(without_files(case)), case.name


def in_times(case: Case, times: dict[str, str]) -> Case:
    """Return a case whose range is in the times that the table has now."""
    if case.query not in ("incremental", "cdc"):
        return case
    return Case(case.table, case.query, times.get(case.start, case.start), times.get(case.end, case.end))


def without_files(case: Case) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != MOVED} for row in case.rows()]
