"""Tables that drawstring and real Apache Hudi both write to: their kinds, their options, single steps."""

from __future__ import annotations

import pytest

import drawstring
from tests.support.consistent_buckets import CONSISTENT
from tests.support.histories import CASES, Case, History, Row, create, plain, row, table_of
from tests.support.referee import Referee

SPLIT = {
    "hoodie.parquet.max.file.size": "2000",
    "hoodie.bucket.index.split.threshold": "1.0",
    "hoodie.bucket.index.max.num.buckets": "8",
}
_HUDI = "org.apache.hudi.client.clustering."
HUDI_STRATEGIES = {
    "hoodie.clustering.plan.strategy.class": (
        f"{_HUDI}plan.strategy.SparkConsistentBucketClusteringPlanStrategy"
    ),
    "hoodie.clustering.execution.strategy.class": (
        f"{_HUDI}run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.clustering.updates.strategy": (
        f"{_HUDI}update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
    ),
}
SHORT = {
    "v6-mor-avro-event-time",
    "v8-mor-parquet-event-time",
    "v9-cow-event-time",
    "v9-mor-parquet-event-time",
    "v9-mor-parquet-commit-time",
}
WITHOUT_8 = {name for name in SHORT if not name.startswith("v8")}
"""For tests of what is alike in versions 8 and 9: all but the names of properties is."""


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


def consistent_table(path: str, case: Case) -> History:
    """Write a table with consistent hashing: two buckets a partition, no log files."""
    history = create(path, case, properties=CONSISTENT)
    history.upsert([row(number, 100) for number in range(60)])
    history.table.services.compact()
    return history


def _cases(short: set[str], *, only_mor: bool = False) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=str(case), marks=[] if str(case) in short else [pytest.mark.long])
            for case in CASES
            if case.is_mor or not only_mor
        ],
    )


all_cases = _cases(SHORT)


merge_on_read_cases = _cases(SHORT, only_mor=True)


all_cases_8_long = _cases(WITHOUT_8)


merge_on_read_cases_8_long = _cases(WITHOUT_8, only_mor=True)
