"""The suite of cores: its table tells what a second core is good for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cores, run, tpch
from bench.peers import on_cores
from bench.results import Measured, Results
from tests.support.tpch_files import small_tables

ROWS = 3000


@pytest.mark.parametrize(
    ("seconds", "used", "single"),
    [
        pytest.param(2.0, 2.0, 1.0, id="one thread at a time"),
        pytest.param(2.0, 4.0, 0.0, id="two threads all the time"),
        pytest.param(2.0, 3.0, 0.5, id="half of the time two"),
        pytest.param(2.0, 1.0, 1.0, id="waiting for the disk"),
        pytest.param(1.0, 2.1, 0.0, id="measured a little later"),
    ],
)
def test_seconds_and_processor_seconds_tell_how_long_one_thread_runs(
    seconds: float, used: float, single: float
) -> None:
    assert cores.single_thread_share(seconds, used) == pytest.approx(single)


def test_only_what_two_threads_do_spreads_over_more_cores() -> None:
    assert cores.times(1.0, 8) == pytest.approx(1.0)
    assert cores.times(0.0, 8) == pytest.approx(8.0)
    assert cores.times(0.5, 2) == pytest.approx(1.5)


def test_steps_stand_beside_each_other() -> None:
    measured = [
        Measured(on_cores("mor", 1), "bulk_insert", 3.0, 100, None, 3.0),
        Measured(on_cores("mor", 2), "bulk_insert", 2.0, 100, None, 3.0),
    ]
    lines = cores.table(Results({}, measured), "mor").splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == [
        "bulk_insert", "3.00", "2.00", "3.00", "1.5", "50", "2.0", "2.4",
    ]  # fmt: skip
    assert cores.table(Results({}, measured), "cow") == ""


@pytest.mark.long
def test_both_numbers_of_cores_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpch, "_generate", small_tables)
    monkeypatch.setenv("BENCH_READS", "1")
    peers = f"{on_cores('cow', 1)},{on_cores('cow', 2)}"
    code = run.main(["--suite", "cores", "--rows", str(ROWS), "--work", str(tmp_path), "--peers", peers])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "Lineitem, cow" in shown
