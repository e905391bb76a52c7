"""The suite of the metadata table: it runs, and tells what was skipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import run


@pytest.mark.long
def test_the_suite_tells_what_each_step_took_and_what_was_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_METADATA_GROUPS", "20")
    words = ["--suite", "metadata", "--rows", "2000", "--batches", "1", "--work", str(tmp_path)]
    code = run.main(words)
    shown = capsys.readouterr().out
    assert code == 0, shown
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    steps = {"plan_named", "point_named", "load_indexes", "keys_record_index", "calls_files", "points_files"}
    assert steps <= {*told}
    assert re.search(r"narrow_unsorted +\| +\d+ rows, \d of 8 files", shown)
