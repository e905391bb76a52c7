"""The suite of writers: several processes on one table, what they told, and whether the aims are met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import aims, report, run, writers
from bench.results import Measured, Results


def told(processes: int, median_s: float, worst_s: float, **counts: int) -> dict[str, Any]:
    counted = {"again": 0, "errors": 0, "commits": 10 * processes, "rows": 1000 * processes, **counts}
    return {"processes": processes, "median_s": median_s, "worst_s": worst_s, **counted}


def results_of(*steps: tuple[str, float, dict[str, Any]], peer: str = "writers-cow") -> Results:
    return Results({}, [Measured(peer, step, seconds, 500, result, 1.5) for step, seconds, result in steps])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.long
@pytest.mark.parametrize("peer", ["writers-mor", "writers-nbcc"])
def test_processes_write_to_one_table_and_are_told(
    peer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_WRITERS_PROCESSES", "2")
    monkeypatch.setenv("BENCH_WRITERS_ROUNDS", "1")
    monkeypatch.setattr(run, "WRITERS_COMMITS", 2)
    words = ["--suite", "writers", "--rows", "2000", "--batches", "1", "--work", str(tmp_path)]
    code = run.main([*words, "--peers", peer])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert [line.split("|")[1].strip() for line in shown.splitlines() if ", 2 processes " in line][:3] == [
        "disjoint, 2 processes",
        "apart, 2 processes",
        "overlap, 2 processes",
    ]
    assert not (tmp_path / "tables" / peer).exists()


def test_a_row_tells_rates_waits_and_lost_work() -> None:
    shown = report.text(results_of(("overlap_4", 8.0, told(4, 0.5, 2.0, again=7, errors=1))))
    row = next(line for line in shown.splitlines() if "overlap, 4" in line)
    assert cells(row) == ["overlap, 4 processes", "5.00", "500", "0.500", "2.000", "4.0", "7", "1", "1.5"]


def test_of_several_rounds_the_median_one_counts() -> None:
    rounds = [("overlap_4", seconds, told(4, 0.5, seconds)) for seconds in (8.0, 2.0, 4.0)]
    rows = [line for line in report.text(results_of(*rounds)).splitlines() if "overlap, 4" in line]
    assert [cells(row)[1:5] for row in rows] == [["10.00", "1,000", "0.500", "4.000"]]


def test_a_peer_that_takes_too_long_is_stopped_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_WRITERS_PROCESSES", "1")
    monkeypatch.setenv("BENCH_WRITERS_SECONDS", "0")
    monkeypatch.setattr(run, "WRITERS_COMMITS", 2)
    words = ["--suite", "writers", "--rows", "2000", "--batches", "1", "--work", str(tmp_path)]
    code = run.main([*words, "--peers", "writers-cow"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    rows = [cells(line) for line in shown.splitlines() if "1 process (stopped" in line]
    assert [row[0] for row in rows] == [
        f"{name}, 1 process (stopped after 0 s, 0 commits)" for name in ("alone", "disjoint", "overlap")
    ]
    assert {tuple(row[3:6]) for row in rows} == {("", "", "")}


def test_the_aims_of_several_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    shown = writers.aims(
        results_of(
            ("alone_1", 2.0, told(1, 0.2, 0.3)),
            ("disjoint_1", 2.4, told(1, 0.2, 0.3)),
            ("disjoint_2", 3.0, told(2, 0.3, 0.4)),
            ("overlap_2", 9.0, told(2, 0.5, 6.0)),
            ("overlap_4", 60.0, told(4, 0.5, 9.0, stopped_s=60)),
        )
    )
    assert [cells(line) for line in shown.splitlines()[2:]] == [
        ["writers-cow: worst/median, overlap, 2 processes", "12.00", "at most 10.0", "no"],
        ["writers-cow: commits/s, disjoint, 2 processes against 1", "1.60", "at least 1.4", "yes"],
        ["writers-cow: seconds, optimistic against alone", "1.20", "at most 1.1", "no"],
    ]


def test_disjoint_writers_are_compared_with_what_the_machine_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    steps = (
        ("disjoint_1", 2.0, told(1, 0.2, 0.3)),
        ("disjoint_2", 4.0, told(2, 0.3, 0.4)),
        ("apart_2", 3.2, told(2, 0.3, 0.4)),
    )
    shown = writers.aims(results_of(*steps))
    assert [cells(line) for line in shown.splitlines()[2:]] == [
        ["writers-cow: commits/s, disjoint, 2 processes against 1", "1.00", "at least 1.4", "no"],
        ["writers-cow: commits/s, apart, 2 processes against 1", "1.25", "", ""],
        ["writers-cow: commits/s, disjoint, 2 processes against apart", "0.80", "", ""],
    ]


def test_the_same_commits_are_compared_with_delta_rs() -> None:
    ours = results_of(("disjoint_2", 3.0, told(2, 0.3, 0.4)))
    theirs = results_of(("disjoint_2", 9.0, told(2, 0.9, 1.4)), peer="writers-delta-rs")
    both = Results({}, [*ours.steps, *theirs.steps])
    assert "| writers-cow against writers-delta-rs | disjoint_2 |       3.00 |  9.00 |   3.0 |" in (
        aims.text(both)
    )
    assert writers.aims(theirs) == ""
    stopped = results_of(("disjoint_2", 9.0, told(2, 0.9, 1.4, stopped_s=9)), peer="writers-delta-rs")
    assert "disjoint_2" not in aims.text(Results({}, [*ours.steps, *stopped.steps]))
