"""Log files that are too large to hold are read twice: for the keys that win, then for these records."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.filegroups import log_merge as reader
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.rows import held, rides
from tests.support.tables import MOR, create

AS_AVRO, AS_PARQUET = ({"hoodie.logfile.data.block.format": form} for form in ("avro", "parquet"))
NO_META = {"hoodie.populate.meta.fields": "false"}
BY_COMMIT = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch, limit: SetLimits) -> None:
    """Hold no log file, however small."""

    def hold(*_: object) -> None:
        raise AssertionError("the log files are held")

    limit(log_records_bytes_max=0)
    monkeypatch.setattr(reader, "read_log_records", hold)


def with_logs(properties: dict[str, str], **options: str) -> Table:
    """A slice whose log files change, bring back, delete and add records, late ones among them."""
    one_bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = create(table_type=MOR, properties=one_bucket | properties)
    table.upsert(rides(*((key, "rome", 5, 0.0) for key in "abcdef")), options=options)
    table.upsert(rides(("a", "rome", 6, 1.0), ("g", "rome", 6, 1.0), ("b", "rome", 4, 9.0)), options=options)
    table.delete(rides(("c", "rome", 7, 0.0), ("g", "rome", 7, 0.0), ("d", "rome", 7, 0.0)), options=options)
    table.upsert(rides(("d", "rome", 8, 2.0), ("h", "rome", 8, 2.0), ("a", "rome", 8, 3.0)), options=options)
    return table


BY_EVENT_ROWS = [("a", 3.0), ("b", 0.0), ("d", 2.0), ("e", 0.0), ("f", 0.0), ("h", 2.0)]
BY_COMMIT_ROWS = [("a", 3.0), ("b", 9.0), ("d", 2.0), ("e", 0.0), ("f", 0.0), ("h", 2.0)]


def fares(table: Table) -> list[Any]:
    return [(row[0], row[3]) for row in held(table)]


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("form", [AS_AVRO, AS_PARQUET], ids=["avro", "parquet"])
@pytest.mark.parametrize(
    ("properties", "expected"),
    [({}, BY_EVENT_ROWS), (NO_META, BY_EVENT_ROWS), (BY_COMMIT, BY_COMMIT_ROWS)],
    ids=["by event time", "without meta columns", "by commit time"],
)
def test_a_slice_is_read_as_if_its_logs_were_held(
    form: dict[str, str], properties: dict[str, str], expected: list[Any]
) -> None:
    table = with_logs(properties, **form)
    assert fares(table) == expected


@pytest.mark.usefixtures("streamed")
def test_a_compaction_writes_what_was_read() -> None:
    table = with_logs({})
    done = table.services.compact()
    assert done
    assert done.records_written == len(BY_EVENT_ROWS)
    assert not any(each.logs for each in table.inspect.files())
    assert fares(table) == BY_EVENT_ROWS


@pytest.mark.usefixtures("streamed")
def test_a_log_of_nothing_but_deletes_leaves_the_other_rows() -> None:
    table = create(table_type=MOR, properties={"hoodie.index.type": "BUCKET"})
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    table.delete(rides(("a", "rome", 2, 0.0)))
    assert fares(table) == [("b", 1.0)]


def test_partial_blocks_are_held(limit: SetLimits) -> None:
    limit(log_records_bytes_max=0)
    table = with_logs({})
    table.update(where="id = 'e'", set={"fare": "7.0"}, options={"drawstring.write.partial_update": "true"})
    assert ("e", 7.0) in fares(table)
