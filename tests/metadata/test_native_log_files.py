"""A metadata table whose log files are HFiles of their own, as Apache Hudi's master writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.formats.log_files import log_blocks
from drawstring.formats.log_inline import BlockType, read_content
from drawstring.model.files import FileStatus, LogFile
from drawstring.table import Table
from tests.support.metadata_tables import listed
from tests.support.rows import held, rides
from tests.support.tables import MOR, WITHOUT_SERVICES, create


def made_native(folder: Path) -> int:
    """Give each block of records in the log files of a folder a file of its own; return their number."""
    count = 0
    for path in sorted(folder.glob(".*.log.*")):
        log = LogFile.parse(FileStatus(path.name, path.stat().st_size))
        assert log is not None
        file = pa.BufferReader(path.read_bytes())
        for block in log_blocks(file, log):
            if block.kind is BlockType.HFILE_DATA:
                name = f"{log.file_id}_{log.write_token}_{log.instant}_{log.version}.log.hfile"
                (folder / name).write_bytes(read_content(file, block))
                count += 1
        path.unlink()
    return count


@pytest.mark.parametrize("version", [9, 10])
def test_native_log_files_of_a_metadata_table_are_read(tmp_path: Path, version: int) -> None:
    made = create(path=tmp_path / "t", table_type=MOR, version=version)
    table = Table(replace(made._context, uses_metadata=True))
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    rows, paths = held(table), listed(table)
    assert len(paths) == 3

    assert made_native(tmp_path / "t/.hoodie/metadata/files") > 0

    table = drawstring.open(tmp_path / "t", options={"hoodie.metadata.enable": "true"})
    assert listed(table) == paths
    assert held(table) == rows
    table.upsert(rides(("b", "oslo", 3, 3.0)), options=WITHOUT_SERVICES)
    assert listed(table) > paths
