"""The suite of layouts: it runs, and tells the peaks of merging and of compaction."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench import layouts, peers, run
from bench.results import Measured, Results


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
    names = ",".join(f"layout-{name}" for name in peers.LAYOUTS)
    words = ["--suite", "lsm", "--peers", names, "--work", str(tmp_path)]
    has_pictures = find_spec("matplotlib") is not None  # which only the environment of the benchmarks has
    if has_pictures:
        words += ["--markdown", str(tmp_path / "page.md")]
    assert run.main(words) == 0
    shown = capsys.readouterr().out
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert {"upsert", "lookup", "log_compact", "compact_group", "peak of compact_group, MB"} <= {*told}
    assert {"12 upserts with services", "written, MB", "most log files"} <= {*told}
    if has_pictures:
        assert "layout-lsm" in (tmp_path / "layouts.svg").read_text()


def test_a_peer_that_merges_wrongly_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": "300", "COLUMNS": "2", "UPSERTS": "2", "LIFE": "3"}.items():
        monkeypatch.setenv(f"BENCH_LSM_{name}", value)
    expected = layouts.make(tmp_path)
    rows, newest, values = expected["merged_totals"]
    files = [pq.read_table(tmp_path / f"layouts_{number}.parquet") for number in range(3)]
    merged = {row["id"]: row for file in files for row in file.to_pylist()}
    assert (rows, newest) == (len(merged), sum(row["ts"] for row in merged.values()))
    assert values == pytest.approx(sum(row["v000"] for row in merged.values()), abs=0.01)
    for found, wrong in (([rows, newest, values], 0), ([rows, newest - 1, values], 1)):
        measured = Measured("layout-paimon", "merged_totals", 0.1, 1, found)
        assert len(Results(expected, [measured]).wrong("layout-paimon")) == wrong


def test_pypaimon_runs_in_an_environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = peers.BY_NAME["layout-pypaimon"]
    monkeypatch.setenv(peers.PYPAIMON_PYTHON, str(tmp_path / "python"))
    lacking = peers.command(peer, tmp_path, tmp_path)
    assert isinstance(lacking, peers.Missing)
    assert "make setup-pypaimon" in lacking.why
    (tmp_path / "python").touch()
    command = peers.command(peer, tmp_path, tmp_path)
    assert isinstance(command, peers.Command)
    assert command.words[0] == str(tmp_path / "python")
