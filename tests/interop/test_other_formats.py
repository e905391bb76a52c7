"""Tables with ORC base files: real Hudi reads those of drawstring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.histories import Case, write
from tests.support.interop import assert_both_read
from tests.support.referee import Referee
from tests.support.tables import COW, MOR


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_hudi_reads_orc_base_files(referee: Referee, tmp_path: Path, table_type: str) -> None:
    properties = {"hoodie.table.base.file.format": "ORC"}
    history = write(str(tmp_path / "rides"), Case(9, table_type), properties=properties)
    assert_both_read(referee, history)
