"""Mistakes of people on the command line: what happened, what to do, exit code 2, no traceback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.cli import app
from tests.support.rows import rides
from tests.support.tables import create

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    made = create(path=tmp_path / "lake/rides")
    made.insert(rides(("a", "rome", 1, 1.0)))
    return made


def told(capsys: Shown, *words: object) -> str:
    """Run a command that fails by a mistake, and return what it says."""
    assert app.run([str(each) for each in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("drawstring: ") and said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("none", "There is no folder at this path"),
        ("note.txt", "A file is at this path. Give the folder of a table."),
        ("lake", "There are tables below, such as rides."),
        (".", "Check the path, or create a table."),
    ],
)
def test_a_path_without_a_table_is_told_with_the_table_near_it(
    capsys: Shown, tmp_path: Path, table: drawstring.Table, place: str, says: str
) -> None:
    (tmp_path / "note.txt").write_text("a note")
    said = told(capsys, "show", tmp_path / place)
    assert "This is not a Hudi table (no .hoodie/hoodie.properties)." in said
    assert says in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show",), "The command needs PATH. See: drawstring show --help"),
        (("savepoints", "restore", "here"), "The command needs INSTANT."),
        (("ingest", "here"), "The command needs --source."),
        (("versions", "downgrade", "here"), "The command needs --to."),
        (("show", "here", "a", "b"), "does not take arguments a b. Remove them."),
        (("ingest", "here", "--source", "csv", "--max-wait", "-1"), "Must be >= 0"),
        (("ingest", "here", "--source", "csv", "--props", "{0}"), "is no file of properties"),
        (("ingest", "here", "--source", "csv", "--props", "{0}/bytes"), "is no file of properties"),
        (("inspect", "report", "{0}/lake/rides", "-o", "{0}"), "Is a directory: {0}. Give a file."),
        (("inspect", "report", "{0}/lake/rides", "-o", "{0}/no/a.html"), "No such file or directory"),
        (
            ("services", "repair", "{0}/lake/rides", "--only", "all"),
            "There is no repair 'all'. Choose among metadata,",
        ),
        (
            ("versions", "upgrade", "{0}/lake/rides", "--to", "6"),
            "so upgrade does not lead to 6. Use downgrade.",
        ),
        (
            ("services", "clean", "{0}/lake/rides", "--retain-hours", "1", "--retain-commits", "2"),
            "--retain-commits and --retain-hours exclude each other. Give one of them.",
        ),
    ],
)
def test_a_mistaken_call_says_what_to_give(
    capsys: Shown, tmp_path: Path, table: drawstring.Table, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x88")
    assert says.format(tmp_path) in told(capsys, *(each.format(tmp_path) for each in words))


def test_what_there_is_none_of_is_said_in_words(text: Any, tmp_path: Path) -> None:
    made = create(path=tmp_path / "rides")
    assert text("inspect", "timeline", made.uri) == "no instant\n"
    assert text("holds", "list", made.uri) == "no reader holds a position\n"
    assert text("indexes", "list", made.uri) == "no index\n"
    assert text("indexes", "run", made.uri) == "no index is planned\n"
    assert text("savepoints", "list", made.uri) == "no savepoint\n"
    assert text("inspect", "report", made.uri).startswith("no service is due\n")


@pytest.mark.parametrize("replacement", ["nothing", "a file"])
def test_files_of_a_table_that_lost_its_timeline_are_not_taken_for_leftovers(
    capsys: Shown, tmp_path: Path, table: drawstring.Table, replacement: str
) -> None:
    folder = tmp_path / "lake/rides/.hoodie/timeline"
    shutil.rmtree(folder)
    if replacement == "a file":
        folder.write_text("")
    assert app.run(["services", "validate", table.uri]) == 2
    shown = capsys.readouterr().out
    assert "1 data file, but no instant: its timeline was deleted" in shown and "orphan" not in shown
    before = sorted((tmp_path / "lake/rides/rome").iterdir())
    for call in (lambda: table.scan().to_arrow(), lambda: table.upsert(rides(("z", "rome", 1, 1.0)))):
        with pytest.raises(CorruptTableError, match="its timeline was deleted"):
            call()
    drawstring.open(table.uri).services.repair(apply=True)
    assert sorted((tmp_path / "lake/rides/rome").iterdir()) == before


@pytest.mark.parametrize("argument", ["interval_seconds", "max_wait_seconds"])
def test_seconds_of_an_ingestion_are_not_negative(tmp_path: Path, argument: str) -> None:
    with pytest.raises(InvalidError, match=f"{argument} is -1. Give a number of seconds"):
        drawstring.ingest(tmp_path / "t", "parquet", **{argument: -1})


def test_helps_show_the_defaults_that_say_something(text: Any) -> None:
    shown = text("ingest", "--help")
    assert "[default: 60.0]" in shown and "[default: embedded]" in shown
    assert not any(f"[default: {each}]" in shown for each in ("()", "False", "None", ""))


def test_an_ingestion_takes_the_operations_of_python_by_either_name(text: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    command = ["ingest", str(tmp_path / "t"), "--source", "csv"]
    command += ["--option", f"hoodie.streamer.source.dfs.root={tmp_path}/in"]
    command += ["--option", "hoodie.datasource.write.recordkey.field=id"]
    command += ["--option", "hoodie.streamer.csv.header=true"]
    for number, flag in enumerate(("--op", "--operation")):
        file = tmp_path / f"in/{number}.csv"
        file.write_text(f"id\n{number}\n")
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
        assert "ingested 1 row" in text(*command, flag, "insert_overwrite_table")
        assert drawstring.open(tmp_path / "t").scan(["id"]).to_arrow().to_pylist() == [{"id": number}]
