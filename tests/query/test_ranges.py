"""Every way to say a range of commits, and ranges that reach into the archived timeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.query.scan import Scan
from drawstring.testing import context_of
from tests.support.histories import Case, History, create, row, table_of
from tests.support.timelines import archive


@pytest.fixture(params=[8, 9])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    found = create(str(tmp_path / "t"), Case(request.param, "MERGE_ON_READ"))
    for step in range(5):
        found.upsert([row(step, step), row(step + 1, step)])
    return found


@pytest.fixture
def table(history: History) -> drawstring.Table:
    return history.table


@pytest.fixture
def times(table: drawstring.Table) -> list[str]:
    return [str(instant.completed) for instant in table.timeline.writes()]


def ids(scan: Scan) -> list[str]:
    return sorted(scan.to_arrow().column("id").to_pylist())


def names(*numbers: int) -> list[str]:
    return [f"r{number:03}" for number in numbers]


@pytest.mark.parametrize("earliest", ["earliest", "000", "0", "Earliest"])
def test_earliest_is_before_every_commit(table: drawstring.Table, earliest: str) -> None:
    assert ids(table.incremental(earliest)) == names(0, 1, 2, 3, 4, 5)


def test_the_start_is_exclusive_unless_it_is_included(table: drawstring.Table, times: list[str]) -> None:
    assert ids(table.incremental(times[1], times[2])) == names(2, 3)
    assert ids(table.incremental(times[1], times[2], include_start=True)) == names(1, 2, 3)
    assert ids(table.incremental(times[1], times[1])) == []
    assert ids(table.incremental(times[1], times[1], include_start=True)) == names(1, 2)


def test_an_end_before_the_start_is_told(table: drawstring.Table, times: list[str]) -> None:
    with pytest.raises(InvalidError, match=f"ends at {times[1]}, before its start {times[2]}"):
        table.incremental(times[2], times[1])


def test_without_a_start_it_is_the_newest_commit_up_to_the_end(
    table: drawstring.Table, times: list[str]
) -> None:
    assert ids(table.incremental()) == names(4, 5)
    assert ids(table.incremental(end=times[2])) == names(2, 3)
    assert ids(table.incremental(end="2001-01-01")) == []


@pytest.mark.parametrize("version", [6, 9])
def test_queries_go_on_from_what_a_write_returned(version: int, tmp_path: Path) -> None:
    table = create(str(tmp_path / "rides"), Case(version, "MERGE_ON_READ")).table
    results = [table.upsert(table_of([row(step, step)])) for step in range(3)]
    assert ids(table.incremental(results[0].completed)) == ids(table.scan())[1:]
    assert table.changes(results[0].completed).to_arrow().num_rows == 2
    assert ids(table.incremental()) == ids(table.incremental("newest")) == ids(table.scan())[2:]


@pytest.mark.parametrize("version", [6, 9])
def test_a_start_that_is_no_time_is_refused(version: int, tmp_path: Path) -> None:
    table = create(str(tmp_path / "rides"), Case(version, "MERGE_ON_READ")).table
    table.upsert(table_of([row(1, 1)]))
    nothing = table.delete(table_of([row(1, 1)]).slice(0, 0), options={"hoodie.allow.empty.commit": "false"})
    for read in (table.incremental, table.changes):
        with pytest.raises(InvalidError, match="leave the start out for the newest commit alone"):
            read(nothing.completed)


def test_compaction_and_clustering_are_no_newest_commit(table: drawstring.Table) -> None:
    table.services.compact()
    assert ids(table.incremental()) == names(4, 5)
    table.services.cluster()
    assert ids(table.incremental()) == names(4, 5)


def test_dates_are_times(table: drawstring.Table, times: list[str]) -> None:
    moment = datetime.strptime(times[1], "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    assert ids(table.incremental(moment, "2199-12-31")) == names(2, 3, 4, 5)
    assert ids(table.incremental("2001-01-01", moment)) == names(0, 1, 2)
    assert ids(table.incremental("2199-12-31 10:00:00")) == []


def test_a_replaced_file_group_shows_until_it_was_replaced(table: drawstring.Table, times: list[str]) -> None:
    table.insert_overwrite_table(table.scan(where="id = 'r000'").to_arrow().select(table.schema.names))
    assert ids(table.incremental(times[0], times[-1])) == names(1, 2, 3, 4, 5)
    assert ids(table.incremental(times[0])) == names(0)


def test_a_range_that_cuts_the_archive_is_read_from_the_history(
    table: drawstring.Table, times: list[str]
) -> None:
    """Archived commits are read from the whole table: a record shows with its last commit alone."""
    archive(table, 2)
    archive(table, 1)
    assert len(table.timeline.writes()) == 2
    assert ids(table.incremental("earliest", times[0])) == names(0)
    assert ids(table.incremental(times[0], times[1])) == names(1)
    assert ids(table.incremental(times[0], times[3])) == names(1, 2, 3)
    assert ids(table.incremental(times[2], times[3])) == names(3, 4)
    assert ids(table.incremental(times[0])) == names(1, 2, 3, 4, 5)


def test_the_whole_table_is_not_read_for_a_caller_who_does_not_want_it(
    table: drawstring.Table, times: list[str]
) -> None:
    archive(table, 2)
    with pytest.raises(InvalidError, match="archived"):
        table.incremental(times[0], full_scan=False).to_arrow()
    assert ids(table.incremental(times[1], full_scan=False)) == names(2, 3, 4, 5)


def test_changes_of_archived_commits_are_refused_with_the_first_start_that_works(
    table: drawstring.Table, times: list[str]
) -> None:
    archive(table, 2)
    with pytest.raises(InvalidError, match=f"Start at {times[2]} with include_start"):
        table.changes("earliest").to_arrow()
    assert table.changes(times[2], include_start=True).to_arrow().num_rows == 6


def test_following_from_an_archived_position_ends_in_an_error_or_takes_the_table(
    table: drawstring.Table, times: list[str]
) -> None:
    position = next(table.follow(poll_seconds=None, max_commits=1)).position
    archive(table, 3)
    with pytest.raises(InvalidError, match=f"Follow from {times[2]}"):
        list(table.follow(position, poll_seconds=None))
    snapshot = list(table.follow(position, poll_seconds=None, on_cleaned="snapshot", max_commits=1))
    assert [ids(batch.rows) for batch in snapshot] == [names(0, 1, 2, 3, 4, 5)]
    left = list(table.follow(position, poll_seconds=None, on_cleaned="earliest"))
    assert [ids(batch.rows) for batch in left] == [names(3, 4, 5)]
    afresh = list(table.follow(poll_seconds=None, max_commits=1))
    assert [ids(batch.rows) for batch in afresh] == [names(0, 1, 2, 3, 4, 5)]


def test_only_archive_files_that_can_have_the_range_are_opened(
    table: drawstring.Table, times: list[str]
) -> None:
    archive(table, 1)
    archive(table, 1)
    archive(table, 1)
    history = Path(table.uri) / ".hoodie" / "timeline" / "history"
    for path in sorted(history.glob("*.parquet"))[1:]:
        path.write_bytes(b"damaged")
    assert ids(table.incremental("earliest", times[0])) == names(0)
    with pytest.raises(CorruptTableError, match="history"):
        table.incremental("earliest", times[1])


def test_a_history_without_a_version_file_has_its_newest_manifest(
    table: drawstring.Table, times: list[str]
) -> None:
    archive(table, 1)
    archive(table, 1)
    history = Path(table.uri) / ".hoodie" / "timeline" / "history"
    (history / "_version_").unlink()
    assert ids(table.incremental("earliest", times[1])) == names(0, 1)
    (history / "manifest_2").write_text('{"files": [{"fileName": "../../x"}]}')
    with pytest.raises(CorruptTableError, match="manifest"):
        table.incremental("earliest", times[1])


def test_a_group_replaced_after_the_end_by_an_instant_of_before_shows_its_rows(tmp_path: Path) -> None:
    """As a clustering does that was requested before the last commit of the range, and completed after it."""
    created = create(str(tmp_path / "t"), Case(9, "COPY_ON_WRITE")).table
    # Five milliseconds a reading leave room for an instant between two commits.
    table = drawstring.Table(replace(context_of(created), clock=SteppingClock(SystemClock().now_ms(), 5)))
    table.upsert(table_of([row(0, 1)]))
    table.upsert(table_of([row(1, 1)]))
    table.insert_overwrite(table_of([row(3, 1)]))
    first, second, overwrite = table.timeline.writes()
    between = str(int(first.completed or "0") + 1)
    assert between < second.requested
    for path in sorted((tmp_path / "t").rglob(f"*{overwrite.requested}*")):
        content = path.read_bytes()
        if path.suffix != ".parquet":
            content = content.replace(overwrite.requested.encode(), between.encode())
        path.with_name(path.name.replace(overwrite.requested, between)).write_bytes(content)
        path.unlink()
    assert [write.requested for write in table.timeline.writes()] == [
        first.requested, between, second.requested,
    ]  # fmt: skip
    assert ids(table.incremental("earliest", second.completed)) == names(0, 1)
    assert ids(table.scan()) == names(1, 3)
