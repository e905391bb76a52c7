"""Writers that die between the statistics and the data: the statistics stay those of the files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions.column_stats import ColumnStatsMaintainer, PartitionStatsMaintainer
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.built_statistics import built, kept
from tests.support.copies import copied
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.rows import held, rides
from tests.support.storages import files_of, stored
from tests.support.tables import COW, MOR, create

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
STATISTICS = {**QUIET, "hoodie.metadata.index.column.stats.enable": "true"}
ROWS = rides(*((key, "rome", 1, 1.0) for key in "abcd"), *((key, "oslo", 1, 1.0) for key in "efgh"))
CHANGES = rides(("a", "rome", 2, 7.5), ("f", "oslo", 2, 3.0), ("new", "bern", 2, float("nan")))
OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(CHANGES, options=STATISTICS),
    "cluster": lambda table: table.services.cluster(),
    "delete_partition": lambda table: table.delete_partition("rome", options=QUIET),
}


def opened(storage: Storage, start_ms: int = START_MS) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=True))


@copied
def made(table_type: str, *, with_statistics: bool) -> Table:
    """Create a table with a metadata table and two commits, with or without statistics.

    By type of the table, the log files of its metadata table are native or not.
    """
    version = 10 if table_type == MOR else 9
    table = opened(context_of(create(table_type=table_type, version=version)).storage, START_MS - HOUR_MS)
    options = STATISTICS if with_statistics else QUIET
    table.upsert(ROWS, options=options)
    table.upsert(rides(("c", "rome", 1, 2.0)), options=options)
    return table


@pytest.mark.parametrize(
    ("table_type", "operation", "with_statistics"),
    [
        (MOR, "upsert", True),
        (COW, "upsert", False),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (COW, "upsert", True),
                (MOR, "upsert", False),
                (MOR, "cluster", True),
                (COW, "delete_partition", True),
            )
        ),
    ],
)
@pytest.mark.scaled
def test_whatever_step_a_writer_dies_at_the_statistics_are_those_of_the_files(
    table_type: str, operation: str, with_statistics: bool
) -> None:
    table = made(table_type, with_statistics=with_statistics)
    files, before = files_of(context_of(table).storage), str(held(table))
    OPERATIONS[operation](table)
    after = str(held(table))
    for steps in range(1, STEPS_MAX, 3 * stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            OPERATIONS[operation](opened(faulty))
        survivor = opened(storage, START_MS + HOUR_MS)
        assert str(held(survivor)) in (before, after), f"after {steps} changes"
        survivor.upsert(rides(("next", "rome", 99, 9.0)), options=STATISTICS)
        assert kept(survivor, "column_stats") == built(survivor, ColumnStatsMaintainer()), steps
        assert kept(survivor, "partition_stats") == built(survivor, PartitionStatsMaintainer()), steps
        if faulty.changes < steps:
            assert steps > 12
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")
