"""Services in threads of a writer: what an unexpected error, or the end of the process, leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drawstring.config.options.write_options import WriteOptions
from drawstring.services.background import run_in_background
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.rows import held
from tests.support.tables import MOR, create

ENDS_AT_ONCE = """
import sys, time
import drawstring
from drawstring.services import compaction
from tests.support.rows import rides

table = drawstring.open(sys.argv[1])
asked = {"hoodie.datasource.compaction.async.enable": "true", "hoodie.compact.inline.max.delta.commits": "1"}
run = compaction.run_pending
def slowly(state, options):
    time.sleep(60)
    return run(state, options)
compaction.run_pending = slowly
table.upsert(rides(("a", "rome", 1, 1.0)), options=asked)
table.upsert(rides(("a", "rome", 2, 2.0)), options=asked)
"""


def test_a_thread_survives_an_error_that_nobody_expected(caplog: pytest.LogCaptureFixture) -> None:
    table = create(table_type=MOR)
    runs: list[str] = []
    first_begun, go_on = threading.Event(), threading.Event()

    def fails_once(context: TableContext, options: WriteOptions) -> None:
        runs.append(threading.current_thread().name)
        if len(runs) == 1:
            first_begun.set()
            assert go_on.wait(30)
            raise ValueError("who would have thought")

    options = WriteOptions.parse({})
    run_in_background(context_of(table), options, fails_once)
    assert first_begun.wait(30)
    run_in_background(context_of(table), options, fails_once)
    go_on.set()
    assert table.services.wait(30)
    assert len(runs) == 2, "the second request was served by the thread whose first round failed"
    assert "ValueError: who would have thought" in caplog.text


def test_a_process_that_ends_says_what_it_leaves(tmp_path: Path) -> None:
    table = create(path=tmp_path / "rides", table_type=MOR)
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_AT_ONCE, table.uri], capture_output=True, text=True, timeout=50
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    assert f"a table service of {table.uri}" in ended.stderr and "table.services.wait()" in ended.stderr
    assert len(table.timeline.pending()) == 1
    assert table.services.compact()
    assert held(table) == [("a", "rome", 2, 2.0)]
