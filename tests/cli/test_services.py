"""Services on the command line: what they would do, and what they did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.cli import app
from drawstring.cli.commands import repair
from drawstring.cli.output import StepStarted
from drawstring.testing import context_of
from drawstring.txn.transaction import lock_table
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import create, locking

MANUAL = {"hoodie.clean.automatic": "false"}
UNLISTED = {**MANUAL, "hoodie.metadata.enable": "false"}
"""With a metadata table nothing is archived before that is compacted."""


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    made = create(path=tmp_path / "rides", version=9)
    for number in range(4):
        made.upsert(rides(("a", "rome", number, float(number))), options=UNLISTED)
    return made


def test_clean_shows_what_it_would_delete_and_deletes_it(text: Any, table: drawstring.Table) -> None:
    keep_1 = ("--option", "hoodie.clean.commits.retained=1")
    shown = text("services", "clean", table.uri, "--dry-run", *keep_1)
    assert "2 files in 1 partition" in shown
    assert shown.count(".parquet") == 2
    planned = json.loads(text("services", "clean", table.uri, "--dry-run", "--json", *keep_1))
    assert len(list((Path(table.uri) / "rome").glob("*.parquet"))) == 4
    assert "deleted 2 files in 1 partition" in text("services", "clean", table.uri, *keep_1)
    left = {path.name for path in (Path(table.uri) / "rome").glob("*.parquet")}
    assert len(left) == 2
    assert not left & {path.rpartition("/")[2] for path in planned["files"]["rome"]}
    assert held(table) == [("a", "rome", 3, 3.0)]
    nothing = "nothing to clean; --dry-run tells why files stay"
    assert text("services", "clean", table.uri).strip() == nothing
    assert json.loads(text("services", "clean", table.uri, "--json"))["changed"] is False


def test_a_dry_run_of_a_clean_tells_why_files_stay(text: Any, table: drawstring.Table) -> None:
    call = ("services", "clean", table.uri, "--dry-run")
    shown = text(*call).splitlines()
    assert shown[0] == "nothing to clean"
    assert [line.split()[:1] + line.split()[-3:-2] for line in shown[2:]] == [
        ["policy", "3"],
        ["latest", "1"],
    ]
    newest = table.timeline.writes()[-1].requested
    found = json.loads(text(*call, "--retain-commits", "1", "--kept", "--json"))
    assert len(found["files"]["rome"]) == 2
    policy = {"reason": "policy", "instant": newest, "name": "KEEP_LATEST_COMMITS"}
    assert found["kept_by"][0].items() >= (policy | {"files": 1}).items()
    assert found["kept"][0].items() >= (policy | {"partition": "rome"}).items()
    by_file = text(*call, "--retain-commits", "1", "--kept")
    assert found["kept"][0]["file"] in by_file.replace("\n", "")
    assert app.run([*call[:3], "--kept"]) == 2


def test_a_setting_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], table: drawstring.Table
) -> None:
    assert app.run(["services", "clean", table.uri, "--option", "retain"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_archive_shows_what_it_would_move_and_moves_it(text: Any, table: drawstring.Table) -> None:
    short = ("--option", "hoodie.keep.min.commits=2", "--option", "hoodie.keep.max.commits=3")
    keep_1 = ("--option", "hoodie.clean.commits.retained=1")
    for number in range(2):
        table.upsert(rides(("b", "rome", number, 1.0)), options=UNLISTED)
    assert "nothing was archived" in text("services", "archive", table.uri, "--dry-run")
    shown = text("services", "archive", table.uri, "--dry-run", *short, *keep_1)
    first = table.timeline.writes()[0].requested
    assert first in shown and "3 instants" in shown
    listed = json.loads(text("services", "archive", table.uri, "--dry-run", "--json", *short, *keep_1))
    assert listed[0] == {"requested": first, "action": "commit"}
    assert "archived 3 instants" in text("services", "archive", table.uri, *short, *keep_1)
    assert len(table.timeline.writes()) == 3
    assert text("services", "archive", table.uri).strip() == "nothing to archive"


def test_holds_are_placed_shown_and_released(text: Any, table: drawstring.Table) -> None:
    times = [write.completed or "" for write in table.timeline.writes()]
    assert json.loads(text("holds", "list", table.uri, "--json")) == []
    placed = json.loads(text("holds", "add", table.uri, "p7", "--position", times[-2], "--json"))
    assert [(each["name"], each["position"]) for each in placed] == [("p7", times[-2])]
    assert json.loads(text("show", table.uri, "--json"))["holds"] == placed
    assert "p7" in text("holds", "list", table.uri)
    assert json.loads(text("holds", "release", table.uri, "p7", "--json")) == []
    assert app.run(["holds", "release", table.uri, "p7"]) == 2
    assert app.run(["holds", "add", table.uri, "--position", times[-2]]) == 2


def test_savepoint_and_restore_show_what_they_do(
    text: Any, table: drawstring.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [each.requested for each in table.timeline.writes()]
    assert (
        text("savepoints", "create", table.uri, "--instant", times[1], "--comments", "x")
        == f"saved {times[1]}\n"
    )
    assert json.loads(text("savepoints", "list", table.uri, "--json")) == [times[1]]
    assert times[1] in text("savepoints", "list", table.uri)
    shown = text("savepoints", "restore", table.uri, times[1], "--dry-run")
    assert times[2] in shown and times[3] in shown and "nothing was undone" in shown
    planned = json.loads(text("savepoints", "restore", table.uri, times[1], "--dry-run", "--json"))
    assert planned["instants"] == [[times[3], "commit"], [times[2], "commit"]]
    assert held(table) == [("a", "rome", 3, 3.0)]
    assert "undid 2 instants, deleted 2 files" in text("savepoints", "restore", table.uri, times[1])
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert text("savepoints", "restore", table.uri, times[1]) == "nothing to undo\n"
    assert app.run(["savepoints", "delete", table.uri]) == 2
    assert "INSTANT" in capsys.readouterr().err
    assert text("savepoints", "delete", table.uri, times[1]).startswith("deleted")
    assert json.loads(text("savepoints", "create", table.uri, "--json")) == {"instant": times[1]}


def test_expire_shows_and_drops_partitions_whose_time_is_over(
    text: Any, table: drawstring.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    expire, today = ("services", "expire-partitions", table.uri), ("--retain-days", "0", "--dry-run")
    assert text(*expire, "--retain-days", "3") == "no partition is that old\n"
    assert json.loads(text(*expire, *today, "--json")) == ["rome"]
    assert "1 partition; nothing was dropped" in text(
        "services", "expire-partitions", table.uri, "--retain-days", "0", "--dry-run"
    )
    retained = "hoodie.partition.ttl.strategy.days.retain=0"
    assert "1 partition" in text(
        "services", "expire-partitions", table.uri, "--dry-run", "--option", retained
    )
    assert app.run(["services", "expire-partitions", table.uri, "--dry-run"]) == 2
    assert "--retain-days" in capsys.readouterr().err
    assert "dropped old partitions" in text("services", "expire-partitions", table.uri, "--retain-days", "0")
    assert held(table) == []


def test_upgrade_and_downgrade_show_what_they_would_change_and_change_it(text: Any, tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "old", SCHEMA, record_key="id", ordering="ts", version=6)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    shown = text("versions", "upgrade", table.uri, "--dry-run")
    assert "hoodie.record.merge.mode" in shown and "nothing was changed" in shown
    planned = json.loads(text("versions", "upgrade", table.uri, "--to", "8", "--dry-run", "--json"))
    assert planned["properties"]["hoodie.table.version"] == ["6", "8"]
    assert table.config.version == 6
    assert "version 6 is 9 now, 1 instant moved" in text("versions", "upgrade", table.uri)
    assert "version 9 already" in text("versions", "upgrade", table.uri)
    done = json.loads(text("versions", "downgrade", table.uri, "--to", "8", "--json"))
    assert (done["old"], done["new"], table.config.version) == (9, 8, 8)
    assert app.run(["versions", "downgrade", table.uri, "--to", "7"]) == 2
    assert held(table) == [("a", "rome", 1, 1.0)]


def test_small_base_files_are_compacted_at_once_or_as_planned(
    text: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = drawstring.create(tmp_path / "appended", SCHEMA, record_key="id", ordering="ts")
    for number in range(3):
        table.append(rides((f"a{number}", "rome", number, 1.0)))
    planned = json.loads(text("services", "compact-base-files", table.uri, "--schedule", "--json"))["instant"]
    assert "compacted 3 rows into 1 base file" in text(
        "services", "compact-base-files", table.uri, "--instant", planned
    )
    assert len(table.inspect.files()) == 1
    assert text("services", "compact-base-files", table.uri) == "nothing to compact\n"
    table.append(rides(("b", "rome", 1, 1.0)))
    assert json.loads(text("services", "compact-base-files", table.uri, "--json"))["files"] == 1
    assert len(held(table)) == 4
    assert app.run(["services", "compact-base-files", table.uri, "--schedule", "--instant", planned]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert app.run(["services", "compact-base-files", table.uri, "--instant", "20200101000000000"]) == 2
    assert "no base-file compaction" in capsys.readouterr().err


def test_flags_say_what_keywords_say(text: Any, tmp_path: Path, table: drawstring.Table) -> None:
    assert "2 files in 1 partition" in text(
        "services", "clean", table.uri, "--dry-run", "--retain-versions", "2"
    )
    assert app.run(["services", "clean", table.uri, "--retain-versions", "2", "--retain-hours", "3"]) == 2
    few = ("--min-commits", "2", "--max-commits", "3", "--option", "hoodie.clean.commits.retained=1")
    assert "nothing was archived" in text("services", "archive", table.uri, "--dry-run", *few)
    by = ("--sort-by", "fare,ts", "--sort-by", "id", "--layout", "ZORDER", "--partitions", "rome")
    done = json.loads(text("services", "cluster", table.uri, *by, "--target-file-bytes", "1000000", "--json"))
    assert (done["changed"], done["operation"]) == (True, "cluster")
    assert (
        json.loads(text("services", "cluster", table.uri, "--partitions", "oslo", "--json"))["changed"]
        is False
    )


def test_log_files_are_compacted_by_a_command_of_its_own(text: Any, tmp_path: Path) -> None:
    table = drawstring.create(
        tmp_path / "logs", SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )
    for number in range(3):
        table.upsert(rides(("a", "rome", number, 1.0)))
    assert text("services", "log-compact", table.uri) == "nothing to compact\n"
    planned = json.loads(
        text("services", "log-compact", table.uri, "--min-blocks", "2", "--schedule", "--json")
    )
    done = json.loads(text("services", "log-compact", table.uri, "--instant", planned["instant"], "--json"))
    assert (done["operation"], done["instant"]) == ("log_compact", planned["instant"])
    assert app.run(["services", "compact", table.uri, "--strategy", "SlowestFirst"]) == 2
    assert "base file" in text("services", "compact", table.uri, "--strategy", "LogFileNumBased")


@pytest.mark.parametrize("command", ["savepoint", "delete", "restore", "repair", "rollback"])
def test_commands_that_take_the_table_wait_for_it_as_long_as_they_are_told(
    command: str, table: drawstring.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    first = table.timeline.writes()[0].requested
    words = {
        "savepoint": ["savepoints", "create", table.uri],
        "delete": ["savepoints", "delete", table.uri, first],
        "restore": ["savepoints", "restore", table.uri, first],
        "repair": ["services", "repair", table.uri, "--apply"],
        "rollback": ["services", "rollback", table.uri],
    }[command]
    with lock_table(context_of(table), locking(0)):
        at_once = ("--option", "hoodie.write.lock.wait_time_ms=0")
        assert app.run([*words, *at_once]) == 2
    assert "another writer holds" in capsys.readouterr().err.lower()


def test_a_change_of_version_tells_how_far_its_compaction_is(
    text: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = drawstring.create(
        tmp_path / "old", SCHEMA, record_key="id", ordering="ts", version=6, table_type="MERGE_ON_READ"
    )
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    told: list[tuple[int, int]] = []

    @contextmanager
    def counted(title: str) -> Iterator[StepStarted]:
        yield lambda what: lambda done, total: told.append((done, total))

    monkeypatch.setattr(repair, "progress_bar", counted)
    assert "compacted at" in text("versions", "upgrade", table.uri)
    assert told[-1] == (1, 1)
    table.upsert(rides(("a", "rome", 3, 3.0)))
    assert "compacted at" in text("versions", "downgrade", table.uri, "--to", "6")
    assert len(told) >= 2
