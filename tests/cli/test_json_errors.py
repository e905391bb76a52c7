"""Commands that fail with --json: one document on standard output, one line on standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drawstring.cli import app
from drawstring.testing import context_of
from drawstring.txn.locks.service_lease import service_lease
from tests.support.rows import rides
from tests.support.tables import MOR, create

Shown = pytest.CaptureFixture[str]


def failed(capsys: Shown, *words: str, code: int = 2) -> dict[str, Any]:
    """Run a command that fails, and return the error that it prints as JSON."""
    assert app.run([*words, "--json"]) == code
    shown = capsys.readouterr()
    assert shown.err.startswith("drawstring: ") and shown.err.count("\n") == 1
    document = json.loads(shown.out)
    assert list(document) == ["error"]
    return dict(document["error"])


def test_a_conflict_is_told_with_its_table_and_instant(tmp_path: Path, capsys: Shown) -> None:
    table = create(path=tmp_path / "rides", table_type=MOR)
    for ts in range(2):
        table.upsert(rides(("a", "rome", ts, 1.0)))
    plan = table.services.schedule_compaction() or ""
    context = context_of(table)
    with service_lease(context.storage, context.clock, context.ids, plan):
        error = failed(capsys, "services", "compact", table.uri, "--instant", plan)
    assert (error["kind"], error["table"], error["instant"]) == ("ConflictError", table.uri, plan)
    assert error["message"].startswith("Another process runs this compaction")
    assert error["file"] is None


def test_a_damaged_file_is_told_by_its_path(tmp_path: Path, capsys: Shown) -> None:
    table = create(path=tmp_path / "rides")
    table.upsert(rides(("a", "rome", 1, 1.0)))
    (file,) = (tmp_path / "rides/rome").glob("*.parquet")
    file.write_bytes(b"PAR1")
    error = failed(capsys, "head", table.uri)
    assert (error["kind"], error["file"]) == ("CorruptTableError", f"rome/{file.name}")


def test_mistakes_of_the_call_are_documents_as_well(
    tmp_path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failed(capsys, "show", str(tmp_path / "nothing"))["kind"] == "InvalidError"
    for words in (("show",), ("no-such-command",), ("show", "here", "more"), ("head", "here", "-n", "x")):
        error = failed(capsys, *words)
        assert error["kind"] == "InvalidError" and "--help" in error["message"]
    monkeypatch.setattr("drawstring.cli.commands.inspect.open_table", lambda *given: 1 / 0)
    assert failed(capsys, "show", "here", code=1)["kind"] == "ZeroDivisionError"


def test_a_command_that_told_what_is_wrong_prints_no_second_document(tmp_path: Path, capsys: Shown) -> None:
    table = create(path=tmp_path / "rides")
    table.upsert(rides(("a", "rome", 1, 1.0)))
    (file,) = (tmp_path / "rides/rome").glob("*.parquet")
    file.unlink()
    assert app.run(["services", "validate", table.uri, "--json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["sound"] is False
    assert "The table has" in shown.err
