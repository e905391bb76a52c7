"""The suite of lineitem: peers agree with results computed from the files, and a wrong one is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import run, tpch
from bench.peers import TPCH_MOR
from bench.results import Measured, Results
from tests.support.tpch_files import small_tables

ROWS = 3000


@pytest.mark.parametrize("kind", ["mor", pytest.param("cow", marks=pytest.mark.long)])
def test_both_kinds_of_table_answer_as_the_files_do(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpch, "_generate", small_tables)
    monkeypatch.setenv("BENCH_READS", "1")
    words = ["--suite", "tpch", "--rows", str(ROWS), "--work", str(tmp_path)]
    code = run.main([*words, "--peers", f"lineitem-{kind}"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    told = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    compacted = {"compact", "compacted_3_columns", "compacted_q1", "compacted_q6"}
    assert {"upsert", "columns_3", "q1", "q3", "q6", "key", "range"} <= {*told}
    assert (compacted <= {*told}) == (kind == "mor")


def test_changes_show_in_every_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch, "_generate", small_tables)
    expected = tpch.make(tmp_path, ROWS)
    changed, new = ROWS // tpch.ONE_CHANGED_IN, ROWS // tpch.ONE_NEW_IN
    assert expected["base_3_columns"][0] == ROWS
    assert expected["columns_3"][0] == expected["columns_all"] == ROWS + new
    assert expected["columns_3"][3] == changed + new
    assert all(len(expected[name]) > 0 for name in ("q1", "q3", "q6"))
    assert expected["range"][0] == pytest.approx(ROWS / tpch.FOUND_BETWEEN_IN, abs=8)


def test_an_answer_from_stale_rows_is_wrong() -> None:
    expected = {"lineitem": {"columns_3": [11, 2.5], "q6": [4.5]}}
    right = Measured(TPCH_MOR, "columns_3_0", 1.0, 100, [11, 2.5])
    stale = Measured(TPCH_MOR, "q6_2", 1.0, 100, [4.0])
    assert Results(expected, [right, stale]).wrong(TPCH_MOR) == [f"{TPCH_MOR} q6_2: [4.0] instead of [4.5]"]
