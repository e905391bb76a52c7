"""`drawstring services rollback`: what it shows, does and refuses."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from drawstring.cli import app
from drawstring.testing import context_of
from tests.support.faults import dead_write
from tests.support.rows import rides
from tests.support.tables import create


def test_the_command_shows_and_rolls_back(
    tmp_path: Path, text: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = create(path=tmp_path)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    assert text("services", "rollback", table.uri) == "no write is pending\n"
    assert json.loads(text("services", "rollback", table.uri, "--json"))["changed"] is False
    dead = dead_write(table)
    shown = text("services", "rollback", table.uri, "--dry-run")
    assert f"rome/f9-0_0-1-0_{dead.requested}.parquet" in shown and "nothing was rolled back" in shown
    planned = json.loads(text("services", "rollback", table.uri, dead.requested, "--dry-run", "--json"))
    assert (planned["instant"], planned["action"], len(planned["files"])) == (dead.requested, "commit", 1)
    assert text("services", "rollback", table.uri, dead.requested) == (
        f"rolled back the commit {dead.requested}: 1 file\n"
    )
    table.upsert(rides(("b", "rome", 1, 1.0)), options={"hoodie.parquet.small.file.limit": "0"})
    plan = table.services.schedule_clustering() or ""
    assert text("services", "rollback", table.uri, "--dry-run") == (
        f"no write is pending\nalso pending, to be rolled back by name: the clustering {plan}\n"
    )
    context_of(table).storage.put(f".hoodie/.heartbeat/{plan}", b"")
    assert app.run(["services", "rollback", table.uri, plan, "--dry-run"]) != 0
    assert "Another process or engine" in capsys.readouterr().err
    age = time.time() - 5
    os.utime(tmp_path / ".hoodie/.heartbeat" / plan, (age, age))
    briefly = ("--option", "hoodie.client.heartbeat.interval_in_ms=1000")
    assert "nothing was rolled back" in text("services", "rollback", table.uri, plan, "--dry-run", *briefly)
    done = table.timeline.writes()[-1].requested
    assert app.run(["services", "rollback", table.uri, done]) == 2
    assert "is completed" in capsys.readouterr().err
