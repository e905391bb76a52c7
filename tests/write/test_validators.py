"""Validators see what a write is about to commit; one that fails leaves the table as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.keys import ingest
from drawstring.filegroups.write.markers import Markers
from drawstring.model.commit import CommitMetadata
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import Transaction
from drawstring.write import validation
from drawstring.write.validation import staged_tables
from tests.support.late_files import DetachedEngine
from tests.support.rows import held, rides
from tests.support.storages import files_below
from tests.support.tables import MOR, A, B, C, create, filled, listing, table_types, versions

pytest.importorskip("duckdb")

NAMES = "hoodie.precommit.validators"
PACKAGE = "org.apache.hudi.client.validator."
POLICY = f"{NAMES}.failure.policy"
QUERIES = {
    "Equality": f"{NAMES}.equality.sql.queries",
    "Inequality": f"{NAMES}.inequality.sql.queries",
    "Single": f"{NAMES}.single.value.sql.queries",
}
CLASSES = {
    "Equality": f"{PACKAGE}SqlQueryEqualityPreCommitValidator",
    "Inequality": f"{PACKAGE}SqlQueryInequalityPreCommitValidator",
    "Single": f"{PACKAGE}SqlQuerySingleResultPreCommitValidator",
}
COUNT = "select count(*) from <TABLE_NAME>"


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ingest, "_validators", {})
    yield


def asking(kind: str, queries: str, **more: str) -> dict[str, str]:
    return {NAMES: CLASSES[kind], QUERIES[kind]: queries, **more}


def own(function: Any) -> dict[str, str]:
    drawstring.register_validator("com.example.Own", function)
    return {NAMES: "com.example.Own"}


def refused(table: Table, write: Any, message: str) -> None:
    """Check that a write is refused, and that nothing of it is left."""
    rows, instants = held(table), table.timeline.instants
    with pytest.raises(InvalidError, match=message) as caught:
        write()
    assert "Nothing was committed" in str(caught.value) and caught.value.instant
    assert held(table) == rows
    assert [each for each in table.timeline.instants if each.is_write] == [
        each for each in instants if each.is_write
    ]
    assert table.timeline.pending() == ()
    assert table.services.validate().is_sound


@versions
@table_types
def test_rows_that_fit_are_committed_and_others_rolled_back(table_type: str, version: int) -> None:
    table = filled(table_type=table_type, version=version)
    no_negative = asking("Single", "select count(*) from <TABLE_NAME> where fare < 0#0")
    assert table.upsert(rides(("a", "rome", 2, 5.0)), options=no_negative).updates == 1
    refused(
        table,
        lambda: table.upsert(rides(("b", "rome", 2, -1.0), ("d", "bari", 1, 1.0)), options=no_negative),
        "SqlQuerySingleResultPreCommitValidator fails: the result of .* is 1, not 0",
    )
    assert held(table) == [("a", "rome", 2, 5.0), B, C]


@table_types
def test_a_query_sees_the_merged_rows_of_the_changed_partitions_alone(table_type: str) -> None:
    table = filled(table_type=table_type)
    sums = asking("Single", f"select sum(fare) from <TABLE_NAME>#9.0; {COUNT}#2")
    assert table.upsert(rides(("a", "rome", 2, 7.0)), options=sums)


def test_files_of_a_listed_storage_are_seen_as_well() -> None:
    table = listing(create(table_type=MOR))
    table.upsert(rides(A, B, C))
    assert table.upsert(rides(("a", "rome", 2, 7.0)), options=asking("Single", f"{COUNT}#2"))


def test_a_first_write_is_checked() -> None:
    table = create()
    refused(table, lambda: table.insert(rides(A), options=asking("Single", f"{COUNT}#2")), "is 1, not 2")
    assert table.insert(rides(A), options=asking("Single", f"{COUNT}#1")).inserts == 1


def test_results_have_to_stay_or_to_change() -> None:
    table = filled()
    stays, changes = asking("Equality", COUNT), asking("Inequality", COUNT)
    update, insert = rides(("a", "rome", 2, 7.0)), rides(("d", "rome", 1, 1.0))
    refused(table, lambda: table.upsert(insert, options=stays), "is 3 after the commit and 2 before it")
    refused(table, lambda: table.upsert(update, options=changes), "stays 2")
    assert table.upsert(update, options=stays)
    assert table.upsert(insert, options=changes)


def test_a_query_may_read_the_table_twice_and_its_meta_columns() -> None:
    table = filled()
    twice = "select count(*) from <TABLE_NAME> x join <TABLE_NAME> y on x._hoodie_record_key = y.id#2"
    assert table.upsert(rides(("a", "rome", 2, 7.0)), options=asking("Single", twice))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", "true"), ("1.50", "1.5"), ("'oslo'", "oslo"), ("1e7::double", "1.0E7"), ("7", "7")],
)
def test_values_are_written_as_java_writes_them(value: str, expected: str) -> None:
    assert filled().upsert(rides(A), options=asking("Single", f"select {value}#{expected}"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select null#0", "is None, not 0"),
        ("select id from <TABLE_NAME>#a", "a, b, and not a single value"),
        ("select 1", "has no value behind #"),
        ("select 'x'#1", "is x, not 1"),
    ],
)
def test_what_is_no_single_value_fails(query: str, message: str) -> None:
    table = filled()
    refused(table, lambda: table.upsert(rides(A), options=asking("Single", query)), message)


@pytest.mark.parametrize(
    "write",
    [
        lambda table, options: table.delete(where="id = 'a'", options=options),
        lambda table, options: table.update("id = 'a'", {"fare": "0.0", "ts": "9"}, options=options),
        lambda table, options: table.delete_partition("rome", options=options),
        lambda table, options: table.insert_overwrite(rides(A), options=options),
        lambda table, options: table.bulk_insert(rides(("d", "rome", 1, 1.0)), options=options),
        lambda table, options: (
            table.merge(rides(("a", "rome", 2, 0.0)), ["id"], options=options).when_matched_delete().execute()
        ),
    ],
    ids=["delete", "update", "delete_partition", "insert_overwrite", "bulk_insert", "merge"],
)
def test_every_verb_asks(write: Any) -> None:
    table = filled()
    sums = asking("Equality", "select coalesce(sum(fare), 0) from <TABLE_NAME> where city = 'rome'")
    refused(table, lambda: write(table, sums), "after the commit and 3.0 before it")


def test_services_after_the_commit_are_not_asked() -> None:
    seen: list[int] = []

    def note(before: Any, after: Any) -> None:
        seen.append(after.to_arrow().num_rows)

    table = filled(table_type=MOR)
    options = {**own(note), "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    table.upsert(rides(("a", "rome", 2, 7.0)), options=options)
    assert seen == [2]


def test_a_warning_lets_the_commit_go_on(caplog: pytest.LogCaptureFixture) -> None:
    table = filled()
    options = asking("Single", f"{COUNT}#7", **{POLICY: "warn_log"})
    with caplog.at_level(logging.WARNING, "drawstring"):
        table.upsert(rides(("d", "rome", 1, 1.0)), options=options)
    assert len(held(table)) == 4
    assert "is 3, not 7" in caplog.text


def test_a_function_gets_the_rows_before_and_after() -> None:
    seen: list[tuple[pa.Table, pa.Table]] = []

    def growing(before: drawstring.Scan, after: drawstring.Scan) -> str | None:
        seen.append((before.to_arrow(), after.to_arrow()))
        return None if seen[-1][1].num_rows > seen[-1][0].num_rows else "no row is new"

    table, options = filled(), own(growing)
    refused(
        table, lambda: table.upsert(rides(("a", "rome", 2, 7.0)), options=options), "fails: no row is new"
    )
    assert table.upsert(rides(("d", "rome", 1, 1.0)), options=options).inserts == 1
    assert [(before.num_rows, after.num_rows) for before, after in seen] == [(2, 2), (2, 3)]
    assert "fare" in seen[0][0].schema.names


def test_an_exception_of_a_function_is_a_failure() -> None:
    def broken(before: Any, after: Any) -> None:
        raise ValueError("fares are odd")

    table = filled()
    refused(table, lambda: table.upsert(rides(A), options=own(broken)), "ValueError: fares are odd")


def test_several_validators_are_asked() -> None:
    table = filled()
    options = {**asking("Single", f"{COUNT}#2"), **own(lambda before, after: "it is Sunday")}
    options[NAMES] = f"{CLASSES['Single']}, com.example.Own"
    refused(table, lambda: table.upsert(rides(A), options=options), "it is Sunday")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({NAMES: "com.example.Mine"}, UnsupportedError, "no validator com.example.Mine.*register_validator"),
        ({NAMES: CLASSES["Equality"]}, InvalidError, "has no query.*equality.sql.queries"),
        (asking("Single", "select x from <TABLE_NAME>#1"), InvalidError, "fails: .*x.*runs in DuckDB"),
        (asking("Single", "select 1#1", **{POLICY: "hope"}), InvalidError, "failure.policy is 'hope'"),
    ],
)
def test_wrong_settings_are_refused(
    options: dict[str, str], kind: type[DrawstringError], message: str
) -> None:
    table = filled()
    with pytest.raises(kind, match=message):
        table.upsert(rides(("d", "rome", 1, 1.0)), options=options)
    assert held(table) == [A, B, C]


def test_what_is_no_function_or_name_is_refused() -> None:
    untyped: Any = drawstring.register_validator
    for name, function, message in (("", print, "cannot be named"), ("x", 3, "not callable")):
        with pytest.raises(InvalidError, match=message):
            untyped(name, function)


def test_sql_without_duckdb_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled()
    monkeypatch.setattr("drawstring.engine.local.find_spec", lambda name: None)
    with pytest.raises(InvalidError, match=r"pip install 'drawstring\[duckdb\]'"):
        table.upsert(rides(A), options=asking("Single", f"{COUNT}#2"))
    assert table.timeline.pending() == ()


def test_no_file_of_a_refused_write_stays(tmp_path: Any) -> None:
    table = filled(path=tmp_path / "t")
    before = {name for name in files_below(tmp_path) if name.endswith((".parquet", ".log"))}
    with pytest.raises(InvalidError):
        table.upsert(rides(("a", "rome", 2, 7.0)), options=asking("Single", f"{COUNT}#7"))
    assert {name for name in files_below(tmp_path) if name.endswith((".parquet", ".log"))} == before


def test_files_of_failed_attempts_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    table = listing(create(engine=DetachedEngine()))
    storage, left = context_of(table).storage, []

    def staged(transaction: Transaction, timeline: Any, metadata: CommitMetadata) -> Any:
        """Leave a file of a dead task on the storage, with the rows of one that is committed."""
        (stat,) = metadata.stats
        left.append(stat.path.replace(stat.file_id, "00000000-0000-0000-0000-000000000000-0"))
        Markers(storage, transaction.instant.requested).create(left[0], "CREATE")
        storage.put(left[0], storage.read(stat.path))
        return staged_tables(transaction, timeline, metadata)

    monkeypatch.setattr(validation, "staged_tables", staged)
    assert table.insert(rides(A, B), options=asking("Single", f"{COUNT}#2")).inserts == 2
    assert held(table) == [A, B] and not storage.exists(left[0])


def test_a_validator_sees_what_others_committed_meanwhile() -> None:
    table, counts = filled(), []

    def others_write(before: drawstring.Scan, after: drawstring.Scan) -> None:
        counts.append((before.to_arrow().num_rows, after.to_arrow().num_rows))

    def rows() -> Iterator[pa.RecordBatch]:
        table.insert(rides(("x", "rome", 1, 1.0)), options={"hoodie.parquet.small.file.limit": "0"})
        yield from rides(("y", "rome", 1, 1.0)).to_batches()

    reader = pa.RecordBatchReader.from_batches(rides(A).schema, rows())
    table.append(reader, options=own(others_write))
    assert counts == [(3, 4)]
