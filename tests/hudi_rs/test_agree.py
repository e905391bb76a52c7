"""hudi-rs, another implementation of the format, reads the same rows from what drawstring wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

from tests.histories import CASES, Case, plain, write


def read_with_hudi_rs(path: str) -> pa.Table:
    table = HudiTableBuilder.from_base_uri(path).build()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hudi_rs_reads_each_history(tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    assert plain(read_with_hudi_rs(history.path)) == history.after[-1]


@pytest.mark.parametrize("case", [case for case in CASES if case.is_mor], ids=str)
def test_hudi_rs_reads_a_compacted_table(tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    assert history.table.compact()
    assert plain(read_with_hudi_rs(history.path)) == history.after[-1]
