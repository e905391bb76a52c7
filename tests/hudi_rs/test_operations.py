"""hudi-rs reads the same rows after every operation, with every index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.contract.cells import Cell
from tests.support.contract.matrix import cells, step_of
from tests.support.contract.model import Model
from tests.support.contract.steps import FIRST, Both
from tests.support.hudi_rs import read_with_hudi_rs


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_hudi_rs_reads_the_table_after_every_operation(tmp_path: Path, cell: Cell) -> None:
    path = str(tmp_path / "rides")
    both = Both(cell.kind, cell.kind.create(path), Model(cell.kind))
    both.take(FIRST)
    for number, operation in enumerate(cell.operations):
        both.take(step_of(operation, number))
        assert both.plain(read_with_hudi_rs(path)) == both.expected(), operation
