"""The suite of LakeLoader's workloads: peers agree with results computed from the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bench import lakeloader, report, run
from bench.peers import LOADS_MOR
from bench.results import Measured, Results

ROWS = 3200


@pytest.mark.parametrize("kind", ["mor", pytest.param("cow", marks=pytest.mark.long)])
def test_rounds_of_both_workloads_come_out_as_computed(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakeloader, "ROUNDS", 1 if kind == "mor" else 2)
    monkeypatch.setenv("BENCH_READS", "1")
    words = ["--suite", "lakeloader", "--rows", str(ROWS), "--work", str(tmp_path)]
    code = run.main([*words, "--peers", f"loads-{kind}"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert {*lakeloader.STEPS, "fact: written, MB (of the change)", "dim: cpu for 4 times the rows"} <= {
        *told
    }
    assert f"loads-{kind}: dim, cpu for 4 times the rows" in told
    assert not (tmp_path / f"tables/loads-{kind}").exists()


@pytest.mark.parametrize("name", lakeloader.WORKLOADS)
def test_expected_sums_are_those_of_the_newest_values(name: str, tmp_path: Path) -> None:
    expected = lakeloader.make(tmp_path, ROWS)
    for size in lakeloader.SIZES:
        rows: dict[str, dict[str, Any]] = {}
        for number in range(lakeloader.ROUNDS + 1):
            for row in pq.read_table(tmp_path / f"{name}_{size}_{number}.parquet").to_pylist():
                rows.setdefault(row["id"], {}).update(row)
        assert {len(row) for row in rows.values()} == {39 if name == "fact" else 100}
        sums = [sum(row[column] for row in rows.values()) for column in lakeloader.WORKLOADS[name].sums]
        assert expected[f"{name}_{size}"]["sums"] == pytest.approx([len(rows), *sums])


def test_rounds_are_as_large_whatever_the_table_has_and_are_skewed(tmp_path: Path) -> None:
    lakeloader.make(tmp_path, ROWS)
    for name, columns in (("fact", 39), ("dim", 22)):
        changes = [pq.read_table(tmp_path / f"{name}_{size}_1.parquet") for size in lakeloader.SIZES]
        assert {change.num_columns for change in changes} == {columns}
        assert len({change.num_rows for change in changes}) == 1
    days = pq.read_table(tmp_path / "fact_large_1.parquet")["day"].value_counts().to_pylist()
    by_day = {each["values"]: each["counts"] for each in days}
    assert by_day["day-31"] > sum(by_day.values()) / 3
    assert len(by_day) > 3


def test_what_four_times_the_rows_cost_is_told_and_a_lost_column_is_wrong() -> None:
    expected = {"lakeloader": {"dim_large": {"sums": [100, 7, 2.5], "change_mb": 0.5}}}
    rounds = [
        Measured(LOADS_MOR, f"dim_large_upsert_{n}", 1.0, 90, None, cpu)
        for n, cpu in enumerate((2.0, 3.0, 7.0))
    ]
    small = Measured(LOADS_MOR, "dim_small_upsert_1", 1.0, 90, None, 1.0)
    written = Measured(LOADS_MOR, "dim_large_written_1", 0.0, 90, 1.25)
    read = Measured(LOADS_MOR, "dim_large_read_0", 1.0, 90, [100, 7, 2.0])
    results = Results(expected, [*rounds, small, written, read])
    assert results.wrong(LOADS_MOR) == [
        f"{LOADS_MOR} dim_large_read_0: [100, 7, 2.0] instead of [100, 7, 2.5]"
    ]
    shown = report.text(results)
    assert "1.25 (2.5x)" in shown
    assert "3.0x" in shown
    assert "| 3.0 |          no |" in lakeloader.aims(results)
