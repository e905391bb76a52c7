"""Metadata tables that drawstring keeps: real Hudi plans its reads by them, and goes on with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.model.files import parse_data_file
from drawstring.storage.local import LocalStorage
from tests.support.histories import Case, History, create, plain, row
from tests.support.interop import hudi_writes
from tests.support.referee import Referee

KEPT = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
DEFAULT = {"hoodie.metadata.enable": "true"}
CASES = [
    Case(9, "COPY_ON_WRITE"),
    Case(9, "MERGE_ON_READ"),
    Case(6, "MERGE_ON_READ"),
    pytest.param(Case(6, "COPY_ON_WRITE"), marks=pytest.mark.long),
    pytest.param(Case(8, "COPY_ON_WRITE"), marks=pytest.mark.long),
    pytest.param(Case(8, "MERGE_ON_READ", "avro"), marks=pytest.mark.long),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hudi_reads_and_goes_on_with_a_metadata_table(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = begun(str(tmp_path / "rides"), case)
    for number in range(7):
        history.upsert([row(key, 100 + number) for key in range(number, 40 + 3 * number)])
    history.delete([row(number, 300) for number in (1, 2, 20, 21)])
    assert_listed(referee, history)

    serviced(history)
    assert_listed(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in range(30, 80)], **KEPT)
    assert metadata_partitions(history) == {"files"}
    assert_listed(referee, history)

    history.table = drawstring.open(history.path, options=DEFAULT)
    for number in range(6):
        history.upsert([row(key, 700 + number) for key in (0, 31, 59, 90 + number)])
    assert_listed(referee, history)


def test_a_metadata_table_with_statistics_of_hudi_is_kept_as_it_is(referee: Referee, tmp_path: Path) -> None:
    history = begun(str(tmp_path / "rides"), Case(9, "MERGE_ON_READ"))
    history.upsert([row(key, 100) for key in range(40)])
    hudi_writes(referee, history, "upsert", [row(key, 600) for key in range(30, 80)], **DEFAULT)
    kept = metadata_partitions(history)
    assert kept > {"files", "column_stats"}

    history.table = drawstring.open(history.path)
    history.upsert([row(key, 700) for key in (0, 31, 59, 90)])
    assert metadata_partitions(history) == kept
    assert_listed(referee, history)

    hudi_writes(referee, history, "upsert", [row(key, 800) for key in range(20)], **DEFAULT)
    assert metadata_partitions(history) == kept
    assert_listed(referee, history)


def begun(path: str, case: Case) -> History:
    """Create a table whose first write builds a metadata table."""
    history = create(path, case)
    history.table = drawstring.open(path, options=DEFAULT)
    return history


def serviced(history: History) -> None:
    """Run each table service."""
    if history.case.is_mor:
        assert history.table.compact()
    assert history.table.cluster()
    history.upsert([row(number, 400) for number in range(8, 16)])
    assert history.table.clean(options={"hoodie.clean.commits.retained": "1"})


def metadata_partitions(history: History) -> set[str]:
    return set(drawstring.open(history.path).metadata().column("partition").to_pylist())


def assert_listed(referee: Referee, history: History) -> None:
    """Check that Hudi's listing by the metadata table is that of the storage, and that both read the rows."""
    storage = LocalStorage(history.path)
    stored = {
        folder: {
            status.name: status.size_bytes for status in storage.list_files(folder) if parse_data_file(status)
        }
        for folder in storage.list_folders("")
        if folder != ".hoodie"
    }
    assert referee.files(history.path) == stored
    expected = history.model.sorted()
    for options in (DEFAULT, {"hoodie.metadata.enable": "false"}):
        assert plain(drawstring.open(history.path, options=options).scan().to_arrow()) == expected
        assert plain(referee.read(history.path, options)) == expected
    assert not drawstring.open(history.path).validate().findings
