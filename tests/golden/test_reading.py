"""What a reader does with single columns, conditions, threads and damaged tables, on golden tables."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.query.incremental import RangeSpec, incremental_scan
from drawstring.query.planner import snapshot_scan
from drawstring.query.scan import Scan
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.schema.fields import RECORD_KEY
from drawstring.storage import open_storage
from tests.support.golden import CLEANED_BY_VERSIONS, NAMES
from tests.support.golden_rows import in_order, rows_of

FactsOf = Callable[[str], TableFacts]
LOGGED = "v9_mor_event_time"


@pytest.fixture
def copy_of(facts_of: FactsOf, tmp_path: Path) -> Callable[[str], Path]:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(facts_of(name).storage.spec.uri, tmp_path / name))

    return copied


def reopened(root: Path) -> TableFacts:
    return load_facts(open_storage(root), SteppingClock())


@pytest.mark.parametrize(
    "name", [LOGGED, "v6_mor_event_time", "v9_cow_ops", "v9_mor_log_only", "v9_types_cow"]
)
def test_each_column_alone_is_the_same_as_among_all(name: str, facts_of: FactsOf) -> None:
    everything = snapshot_scan(facts_of(name)).to_arrow()
    for column in everything.column_names:
        alone = snapshot_scan(facts_of(name), columns=[column]).to_arrow()
        assert in_order(rows_of(alone)) == in_order(rows_of(everything, [column]))


@pytest.mark.parametrize("name", [name for name in NAMES if "_cow_" in name])
def test_rows_are_found_by_their_keys(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    everything = snapshot_scan(facts).to_arrow()
    told_by = [
        each for each in (RECORD_KEY, *facts.config.record_key_fields) if each in everything.column_names
    ]
    for column in told_by:
        for value in everything[column].drop_null().to_pylist()[::7]:
            alone = pc.field(column) == value
            found = snapshot_scan(facts, where=alone).to_arrow()
            assert in_order(rows_of(found)) == in_order(rows_of(everything.filter(alone)))


@pytest.mark.parametrize("name", [LOGGED, "v9_cow_ops"])
def test_columns_come_in_the_order_asked_for(name: str, facts_of: FactsOf) -> None:
    scan = snapshot_scan(facts_of(name), columns=["price", "id"])
    assert scan.schema.names == ["price", "id"]
    assert scan.to_arrow().column_names == ["price", "id"]


@pytest.mark.parametrize("name", [LOGGED, "v9_cow_ops", "v9_mor_log_only"])
def test_no_columns_still_count_the_rows(name: str, facts_of: FactsOf) -> None:
    rows = sum(batch.num_rows for batch in snapshot_scan(facts_of(name), columns=[]).to_batches())
    assert rows == snapshot_scan(facts_of(name)).to_arrow().num_rows


def test_a_condition_is_on_the_merged_rows(facts_of: FactsOf) -> None:
    """Key 6 was raised from ts 1005 to 1007 by a log record."""
    facts = facts_of(LOGGED)
    assert snapshot_scan(facts, columns=["id"], where="id = 6 AND ts = 1005").to_arrow().num_rows == 0
    assert snapshot_scan(facts, columns=["id"], where="id = 6 AND ts = 1007").to_arrow().num_rows == 1


def test_a_condition_narrows_an_incremental_query(facts_of: FactsOf) -> None:
    rows = incremental_scan(
        facts_of("v9_cow_ops"), RangeSpec("earliest"), columns=["id"], where="id < 3"
    ).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == [0, 1, 2]


def test_a_date_is_a_time(facts_of: FactsOf) -> None:
    facts = facts_of(LOGGED)
    assert snapshot_scan(facts, as_of="2026-11-22").to_arrow().num_rows == 10
    assert snapshot_scan(facts, as_of="2026-11-21 09:17:46").to_arrow().num_rows == 12
    with pytest.raises(InvalidError, match="Its first one is 2026112"):
        snapshot_scan(facts, as_of="2020-01-01")


def test_other_libraries_take_a_scan_as_a_stream(facts_of: FactsOf) -> None:
    scan = snapshot_scan(facts_of(LOGGED))
    assert pa.table(scan).equals(scan.to_arrow())
    assert pa.RecordBatchReader.from_stream(scan).schema == scan.schema


def test_an_unknown_column_is_refused_before_anything_is_read(facts_of: FactsOf) -> None:
    with pytest.raises(InvalidError, match=r"no column prcie\. Did you mean price"):
        snapshot_scan(facts_of(LOGGED), columns=["prcie"])


def test_the_order_does_not_depend_on_the_number_of_threads(facts_of: FactsOf) -> None:
    tables = [snapshot_scan(facts_of(LOGGED), threads=threads).to_arrow() for threads in (1, 2, 5)]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_a_scan_given_up_leaves_no_thread_behind(facts_of: FactsOf) -> None:
    batches = snapshot_scan(facts_of(LOGGED), threads=2).to_batches()
    next(batches)
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "drawstring-read"]


def first(root: Path, pattern: str) -> Path:
    return sorted(path for path in root.rglob(pattern) if not path.name.endswith(".crc"))[0]


def test_a_missing_base_file_is_named(copy_of: Callable[[str], Path]) -> None:
    root = copy_of(LOGGED)
    scan = snapshot_scan(reopened(root))
    scan.tasks()
    gone = first(root, "*.parquet")
    gone.unlink()
    with pytest.raises(CorruptTableError, match=gone.name):
        scan.to_arrow()


def test_a_missing_log_file_is_named(copy_of: Callable[[str], Path]) -> None:
    root = copy_of(LOGGED)
    scan = snapshot_scan(reopened(root))
    scan.tasks()
    gone = first(root, ".*.log.1_*")
    gone.unlink()
    with pytest.raises(CorruptTableError, match="log file"):
        scan.to_arrow()


@pytest.mark.parametrize("name", ["v9_mor_log_only", "v6_mor_log_only"])
@pytest.mark.parametrize("left", [-10, 0])
def test_a_truncated_log_file_is_named(name: str, left: int, copy_of: Callable[[str], Path]) -> None:
    root = copy_of(name)
    torn = first(root, ".*.log.1_*")
    torn.write_bytes(torn.read_bytes()[:left])
    with pytest.raises(CorruptTableError, match=torn.name):
        snapshot_scan(reopened(root)).to_arrow()


def test_a_torn_block_of_a_dead_write_is_passed_over(copy_of: Callable[[str], Path]) -> None:
    root = copy_of("v6_mor_inflight")
    whole = snapshot_scan(reopened(root)).to_arrow()
    for path in root.rglob(".*.log.2_*"):
        path.write_bytes(path.read_bytes()[:-10])
    assert snapshot_scan(reopened(root)).to_arrow().equals(whole)


def test_a_damaged_base_file_is_named(copy_of: Callable[[str], Path]) -> None:
    root = copy_of("v9_cow_ops")
    for path in root.rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CorruptTableError, match=r"\.parquet"):
        snapshot_scan(reopened(root)).to_arrow()


def test_a_scan_is_planned_once(facts_of: FactsOf) -> None:
    plans = []
    whole = snapshot_scan(facts_of(LOGGED))
    scan = Scan(whole.schema, lambda: plans.append(1) or whole.tasks())
    assert not plans
    scan.to_arrow()
    scan.to_arrow()
    assert plans == [1]


@pytest.mark.parametrize(("name", "time"), sorted(CLEANED_BY_VERSIONS))
def test_a_time_that_a_clean_by_versions_took_slices_of_is_refused(
    name: str, time: str, facts_of: FactsOf
) -> None:
    with pytest.raises(
        InvalidError, match=f"as of {time} were cleaned away. Query the table as of (\\d+) or later"
    ) as caught:
        snapshot_scan(facts_of(name), as_of=time).to_arrow()
    earliest = caught.value.message.partition("Query the table as of ")[2].partition(" ")[0]
    assert snapshot_scan(facts_of(name), as_of=earliest).to_arrow().num_rows
