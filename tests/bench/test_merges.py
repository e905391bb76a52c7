"""The suite of micro-merges: peers agree with results computed from the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bench import merges, peers, run
from bench.results import Measured, Results

ROWS = 2000


@pytest.mark.parametrize(
    "peer",
    ["merges-mor", *(pytest.param(f"merges-{name}", marks=pytest.mark.long) for name in ("cow", "lance"))],
)
def test_small_merges_come_out_as_computed(
    peer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merges, "TIMES", 1)
    if peer == "merges-mor":
        monkeypatch.setattr(merges, "SHARES", ("0.0001", "10"))
    words = ["--suite", "merges", "--rows", str(ROWS), "--work", str(tmp_path), "--peers", peer]
    code = run.main(words)
    shown = capsys.readouterr().out
    assert code == 0, shown
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert {"merge_0.0001%", "read_0.0001%", "written_0.0001%, MB", "merge_10%"} <= {*told}
    assert ("read_compacted" in told) == (peer != "merges-cow")


def test_a_merge_changes_rows_and_adds_as_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merges, "TIMES", 2)
    expected = merges.make(tmp_path, ROWS)
    rows: dict[int, dict[str, Any]] = {
        row["id"]: row for row in pq.read_table(tmp_path / "merge_0.parquet").to_pylist()
    }
    for share in merges.SHARES:
        for time in range(2):
            merged = pq.read_table(tmp_path / f"merge_{share}_{time}.parquet").to_pylist()
            there = sum(row["id"] in rows for row in merged)
            assert len(merged) == max(1, round(ROWS * float(share) / 100))
            assert there == len(merged) - len(merged) // 2
            rows |= {row["id"]: row for row in merged}
            sums = [sum(row[name] for row in rows.values()) for name in merges.SUMS]
            assert expected[f"read_{share}%_{time}"] == pytest.approx([len(rows), *sums])


def test_a_merge_that_lost_a_row_is_wrong() -> None:
    expected = {"merges": {"read_1%_0": [2010, 20, 5.5]}}
    found = Measured(peers.MERGES_MOR, "read_1%_0", 0.1, 90, [2009, 20, 5.5])
    assert Results(expected, [found]).wrong(peers.MERGES_MOR) == [
        f"{peers.MERGES_MOR} read_1%_0: [2009, 20, 5.5] instead of [2010, 20, 5.5]"
    ]
