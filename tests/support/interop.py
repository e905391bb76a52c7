"""Steps of tests in which drawstring and real Apache Hudi write to one table."""

from __future__ import annotations

import drawstring
from tests.support.histories import Case, History, Row, plain, table_of
from tests.support.referee import Referee


def hudi_options(case: Case, operation: str = "upsert") -> dict[str, str]:
    """Return what a user of real Hudi sets to write to this kind of table, its version left alone."""
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": case.table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": operation,
        "hoodie.write.table.version": str(case.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.logfile.data.block.format": case.log_format,
    }
    if case.ordering:
        options["hoodie.datasource.write.precombine.field"] = case.ordering
    return options


def assert_both_read(referee: Referee, history: History) -> None:
    expected = history.model.sorted()
    assert plain(drawstring.open(history.path).scan().to_arrow()) == expected
    assert plain(referee.read(history.path)) == expected


def hudi_writes(referee: Referee, history: History, operation: str, rows: list[Row], **extra: str) -> None:
    options = {**hudi_options(history.case, operation), **extra}
    referee.write(history.path, table_of(rows), options)
    getattr(history.model, operation)(rows)
