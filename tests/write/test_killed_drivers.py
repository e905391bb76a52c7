"""Drivers that are killed in the middle of a write while their tasks, in other processes, go on.

`spark/test_lost_drivers.py` does the same with the executors of a Spark cluster.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drawstring.table import Table
from tests.support.late_files import FIRST, dead_write, judge, table_options, write_until_rolled_back
from tests.support.lingering import Lingering
from tests.support.processes import running
from tests.support.rows import held, rides
from tests.support.store_server import StoreServer
from tests.support.tables import COW, MOR, create


def outlive(table: Table, options: dict[str, str], folder: Path, kinds: tuple[str, str]) -> None:
    table.upsert(rides(*FIRST))
    tasks = Lingering(folder, kinds)
    with running("tests.write.killed_driver", table.uri, json.dumps(options), str(folder)) as driver:
        tasks.until_they_wait()
        driver.kill()
    dead = dead_write(table)
    assert held(table) == FIRST
    rows = write_until_rolled_back(table, dead)
    judge(table, dead, rows, tasks.let_go())


@pytest.mark.parametrize(
    ("table_type", "kinds"),
    [
        (COW, ("before", "dies")),
        (MOR, ("marked", "dies")),
    ],
)
def test_files_of_tasks_that_outlive_their_driver_never_count(
    table_type: str, kinds: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "told").mkdir()
    outlive(create(path=tmp_path / "t", **table_options(table_type)), {}, tmp_path / "told", kinds)


@pytest.mark.long
def test_nor_in_an_object_store_when_the_heartbeat_has_expired(store: StoreServer, tmp_path: Path) -> None:
    path = store.address(f"killed/{tmp_path.name}")
    table = create(path=path, storage_options=store.options, **table_options(MOR))
    outlive(table, store.options, tmp_path, ("before", "dies"))
