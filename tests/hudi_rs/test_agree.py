"""hudi-rs, another implementation of the format, reads the same rows from what drawstring wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.histories import CASES, Case, plain, row, write
from tests.support.hudi_rs import read_with_hudi_rs


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hudi_rs_reads_each_history(tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    assert plain(read_with_hudi_rs(history.path)) == history.after[-1]


@pytest.mark.parametrize("case", [case for case in CASES if case.is_mor], ids=str)
def test_hudi_rs_reads_a_compacted_table(tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    assert history.table.services.compact()
    assert plain(read_with_hudi_rs(history.path)) == history.after[-1]


@pytest.mark.parametrize("case", [Case(9, "MERGE_ON_READ"), Case(6, "MERGE_ON_READ", "avro")], ids=str)
def test_hudi_rs_reads_log_files_that_carry_an_index(tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case, properties={"hoodie.index.log.enable": "true"})
    history.delete([row(number, 600) for number in (3, 4, 5)])
    assert plain(read_with_hudi_rs(history.path)) == history.after[-1]
