"""The statistics that drawstring keeps in the metadata table: after each step those of a new build."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.metadata.maintained.column_stats import ColumnStatsMaintainer
from tests.support.built_statistics import built, kept
from tests.support.golden import unpack
from tests.support.index_histories import History


def check(table: drawstring.Table, taken: object = None) -> None:
    assert kept(table, "column_stats") == built(table, ColumnStatsMaintainer()), taken


def play(table: drawstring.Table, seed: int, steps: int) -> None:
    history = History(table, "SIMPLE", seed)
    check(table)
    taken = []
    for _ in range(steps):
        taken.append(history.step())
        check(table, taken)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["v8_idx_record_level", "v9_mdt_cow", "v9_mdt_compacted"])
def test_statistics_of_real_hudi_are_right_after_each_step_of_any_history(
    tmp_path: Path, name: str, seed: int
) -> None:
    play(drawstring.open(unpack(name, tmp_path)), seed, 10)
