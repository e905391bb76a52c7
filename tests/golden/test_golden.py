"""Every query that real Hudi answered on the golden tables gets the same answer here."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import TableFacts
from drawstring.timeline.archive.reader import open_archive
from tests.support.combinations import others_long
from tests.support.golden import (
    ENCODED_IN_INCREMENTAL,
    NAMES,
    NULL_IN_INCREMENTAL,
    Case,
    cases_of,
    chosen,
    expected,
    of_each_kind,
    unpack,
    wanted,
)
from tests.support.golden_rows import in_order, rows_of

ARCHIVED = [name for name in NAMES if expected(name)["archived"]]
FactsOf = Callable[[str], TableFacts]
CASES = [case for name in NAMES for case in others_long(cases_of(name), chosen(name))]
SAVED = {
    (name, each["requested"])
    for name in NAMES
    for each in expected(name)["instants"]
    if each["action"] == "savepoint"
}
REFUSED = [
    (name, key.removeprefix("time_travel_"))
    for name in NAMES
    for key in expected(name).get("errors", ())
    if key.startswith("time_travel_")
]
CLEANED = [each for each in REFUSED if each not in SAVED]
KEPT = [each for each in REFUSED if each in SAVED]
"""Real Hudi refuses these too, though their savepoints keep the files."""


def equals(column: str, value: pa.Scalar) -> pc.Expression:
    return pc.field(column) == value if value.is_valid else pc.field(column).is_null()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.table} {case.name}")
def test_a_query_returns_what_real_hudi_returned(case: Case, facts_of: FactsOf) -> None:
    table = case.scan(facts_of(case.table)).to_arrow()
    assert in_order(rows_of(table, case.shown(table))) == in_order(wanted(case))


@pytest.mark.parametrize("name", NAMES)
def test_the_columns_are_those_that_real_hudi_shows(name: str, facts_of: FactsOf) -> None:
    names = [column for column, _ in expected(name)["schema"]]
    assert snapshot_scan(facts_of(name)).schema.names == names


@pytest.mark.parametrize("name", NAMES)
def test_the_timeline_has_the_completed_instants(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    found = {(i.requested, str(i.action)) for i in facts.timeline.instants if i.is_completed}
    assert found == {(each["requested"], each["action"]) for each in expected(name)["instants"]}


@pytest.mark.parametrize("name", ARCHIVED)
def test_the_archived_timeline_has_the_archived_instants(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    archive = open_archive(facts.storage, facts.config)
    found = archive.completed("000")
    known = [each for each in expected(name)["archived"] if each["state"] == "COMPLETED"]
    assert [(i.requested, str(i.action)) for i in found] == [(k["requested"], k["action"]) for k in known]
    if facts.config.layout.has_completion_times:
        assert [i.completed for i in found] == [each["completed"] for each in known]
    first = next(instant for instant in found if instant.is_write)
    assert archive.commit_metadata(first).operation == "UPSERT"
    assert archive.commit_metadata(first).schema_json


@pytest.mark.parametrize(("name", "time"), CLEANED)
def test_a_time_whose_files_were_cleaned_is_refused(name: str, time: str, facts_of: FactsOf) -> None:
    with pytest.raises(InvalidError, match="cleaned away"):
        snapshot_scan(facts_of(name), as_of=time)


@pytest.mark.parametrize(("name", "time"), KEPT)
def test_an_instant_is_read_whose_savepoint_keeps_the_files(name: str, time: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    found = snapshot_scan(facts, as_of=time).to_arrow()
    until = [each.requested for each in facts.timeline.writes() if each.requested <= time]
    assert found.num_rows and max(found.column("_hoodie_commit_time").to_pylist()) == until[-1]
    keys = found.column("_hoodie_record_key").to_pylist()
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", ["v9_mor_event_time", "v6_mor_compaction_pending"])
def test_tasks_travel_to_other_processes(name: str, facts_of: FactsOf) -> None:
    scan = snapshot_scan(facts_of(name), columns=["id", "ts"], where="ts > 0")
    here = [row for task in scan.tasks() for batch in read_slice(task) for row in batch.to_pylist()]
    moved = pickle.loads(pickle.dumps(scan.tasks()))
    assert [row for task in moved for batch in read_slice(task) for row in batch.to_pylist()] == here


@pytest.mark.parametrize("name", others_long(NAMES, of_each_kind(NAMES)))
def test_partition_pruning_loses_nothing(name: str, facts_of: FactsOf) -> None:
    """Ask for each partition value alone: together they are the table."""
    facts = facts_of(name)
    everything = snapshot_scan(facts).to_arrow()
    for column in facts.config.partition_fields:
        rows = [
            row
            for value in everything.column(column).unique()
            for row in rows_of(snapshot_scan(facts, where=equals(column, value)).to_arrow())
        ]
        assert in_order(rows) == in_order(rows_of(everything))


@pytest.mark.parametrize("name", [name for name in NAMES if "evo_on_read" in name])
def test_renamed_columns_are_found_alone_and_by_conditions(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    everything = snapshot_scan(facts).to_arrow()
    for column in everything.column_names:
        alone = snapshot_scan(facts, columns=[column]).to_arrow()
        assert in_order(rows_of(alone)) == in_order(rows_of(everything.select([column])))
    wanted_rows = everything.filter(pc.field("number") <= 50)
    found = snapshot_scan(facts, where="number <= 50").to_arrow()
    assert 0 < found.num_rows < everything.num_rows
    assert in_order(rows_of(found)) == in_order(rows_of(wanted_rows))


def test_a_lost_schema_history_stops_queries_on_older_files_only(tmp_path: Path) -> None:
    name = "v9_evo_on_read_mor"
    root = unpack(name, tmp_path)
    shutil.rmtree(root / ".hoodie/.schema")
    table = drawstring.open(root)
    with pytest.raises(CorruptTableError, match="schema history begins after the file"):
        table.scan().to_arrow()
    first = next(iter(expected(name)["time_travel"]))
    assert table.scan(as_of=first).to_arrow().num_rows == len(expected(name)["time_travel"][first])


def test_the_catalogue_names_every_table() -> None:
    lines = (Path(__file__).parent / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| v")]
    status = {row[0]: row[2] for row in rows}
    ranges = {row[0]: row[3] for row in rows}
    assert sorted(status) == NAMES
    assert {name for name, text in status.items() if text != "all queries"} == {
        *ENCODED_IN_INCREMENTAL,
        *NULL_IN_INCREMENTAL,
    }
    assert {name for name, text in ranges.items() if text} == {n for n in NAMES if "cdc" in expected(n)}
