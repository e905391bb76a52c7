"""What tests of file groups share."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.formats.parquet import ParquetSink, RowGroups
from tests.support.limits import SetLimits


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch, limit: SetLimits) -> None:
    def small(*args: Any, **how: Any) -> ParquetSink:
        return ParquetSink(*args, **(how | {"row_groups": RowGroups(50)}))

    monkeypatch.setattr("drawstring.formats.data_file.ParquetSink", small)
    limit(read_ahead_bytes=10_000)
