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
    words = ["--peers", "metadata,metadata-keys", "--rows", "2000", "--batches", "1"]
    code = run.main([*words, "--work", str(tmp_path)])
    shown = capsys.readouterr().out
    assert code == 0, shown
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    steps = {"plan_named", "point_named", "load_indexes", "keys_record_index", "calls_files", "points_files"}
    assert {*steps, "look_keys_up"} <= {*told}
    assert re.search(r"narrow_unsorted +\| +metadata +\| +\d+ rows, \d of 8 files", shown)
    assert re.search(r"s3_named +\| +metadata +\| +20, \d requests", shown)
    assert re.search(r"build_index +\| +metadata-keys +\| +20,000 keys, \d+\.\d bytes a key", shown)
