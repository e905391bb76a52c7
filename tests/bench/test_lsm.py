"""The suite of layouts: it runs, and tells the peaks of merging and of compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import run


@pytest.mark.long
def test_the_suite_compares_the_layouts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {
        "BENCH_LSM_ROWS": "2000",
        "BENCH_LSM_COLUMNS": "4",
        "BENCH_LSM_UPSERTS": "2",
        "BENCH_LSM_LIFE": "12",
    }
    for name, value in small.items():
        monkeypatch.setenv(name, value)
    page = tmp_path / "page.md"
    assert run.main(["--suite", "lsm", "--work", str(tmp_path), "--markdown", str(page)]) == 0
    shown = capsys.readouterr().out
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert {"upsert", "lookup", "merge_3_columns", "compact_group", "peak of compact_group, MB"} <= {*told}
    assert {"12 upserts with services", "written, MB", "most log files"} <= {*told}
    assert "layout-lsm" in (tmp_path / "layouts.svg").read_text()
