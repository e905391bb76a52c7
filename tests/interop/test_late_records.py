"""Commits of drawstring without files, because all of their records came late, before real Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.model.instant import time_of
from tests.support.histories import Case, History, create, plain, row
from tests.support.interop import assert_both_read, hudi_writes
from tests.support.referee import Referee

NUMBERS = range(40)
LOGGED = {"hoodie.table.cdc.enabled": "true"}


def late_commits(path: Path, case: Case, **how: Any) -> tuple[History, list[str]]:
    """Write a table, twice late records alone, late ones and one that wins; return the commits' times."""
    history = create(str(path), case, **how)
    history.upsert([row(number, 100) for number in NUMBERS])
    files = history.table.inspect.files()
    history.upsert([row(number, 50) for number in NUMBERS])
    history.upsert([row(number, 60) for number in NUMBERS if number % 3 == 0])
    assert history.table.inspect.files() == files
    history.upsert([*(row(number, 70) for number in NUMBERS), row(7, 200)])
    assert len(set(history.table.inspect.files()) - set(files)) == 1
    return history, [time_of(write) for write in history.table.timeline.writes()]


@pytest.mark.parametrize(
    ("case", "properties"),
    [
        pytest.param(Case(9, "COPY_ON_WRITE"), {}, id="v9"),
        pytest.param(Case(9, "COPY_ON_WRITE"), LOGGED, id="v9 with change logs"),
        pytest.param(Case(6, "COPY_ON_WRITE"), {}, id="v6"),
    ],
)
def test_hudi_reads_commits_without_files_and_goes_on(
    referee: Referee, tmp_path: Path, case: Case, properties: dict[str, str]
) -> None:
    history, commits = late_commits(tmp_path / "rides", case, properties=properties)
    assert_both_read(referee, history)
    for time, expected in zip(
        (write.requested for write in history.table.timeline.writes()), history.after, strict=True
    ):
        assert plain(referee.read(history.path, {"as.of.instant": time})) == expected
    for start in commits[:3]:
        since = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": start,
        }
        assert [found["id"] for found in plain(referee.read(history.path, since))] == ["r007"]

    hudi_writes(referee, history, "upsert", [row(number, 300) for number in range(30, 50)])
    hudi_writes(referee, history, "upsert", [row(number, 10) for number in range(50)])
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    history.upsert([*(row(number, 20) for number in range(50)), row(1, 400), row(60, 1)])
    history.delete([row(99, 500)])
    assert_both_read(referee, history)
