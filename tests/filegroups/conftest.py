"""What tests of file groups share."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.formats.parquet import ParquetSink, RowGroups


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(*args: Any, **how: Any) -> ParquetSink:
        return ParquetSink(*args, **(how | {"row_groups": RowGroups(50)}))

    monkeypatch.setattr("drawstring.formats.data_file.ParquetSink", small)
    monkeypatch.setattr("drawstring.formats.parquet.reader.READ_AHEAD_BYTES", 10_000)
