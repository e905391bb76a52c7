"""Incremental queries of some paths, by patterns of Hadoop's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("year", pa.string()), ("month", pa.string())])
PLACES = {1: ("2016", "01"), 2: ("2016", "02"), 3: ("2017", "01")}


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Table:
    path: Path = tmp_path_factory.mktemp("globs")
    kind = {"table_type": request.param, "hive_style": False}
    made = drawstring.create(path / "t", SCHEMA, record_key="id", partition_by=["year", "month"], **kind)
    rows = [{"id": id, "year": year, "month": month} for id, (year, month) in PLACES.items()]
    made.insert(pa.Table.from_pylist(rows, SCHEMA))
    made.upsert(pa.Table.from_pylist(rows[:1], SCHEMA))
    return made


@pytest.mark.parametrize(
    ("glob", "ids"),
    [
        ("", [1, 2, 3]),
        ("/2016/*/*", [1, 2]),
        ("/2016/*", [1, 2]),
        ("2016/*", [1, 2]),
        ("/*/01/*", [1, 3]),
        ("/201[67]/01/*", [1, 3]),
        ("/201[!7]/01/*", [1]),
        ("/201[^7]/01/*", [1]),
        ("/{2016/02,2017/01}/*", [2, 3]),
        ("/201?/02/*", [2]),
        ("/2016/0\\1/*", [1]),
        ("/2016", []),
        ("/2018/*", []),
    ],
)
def test_files_whose_paths_end_like_a_pattern_are_read(table: Table, glob: str, ids: list[int]) -> None:
    found = table.incremental("earliest", columns="id", path_glob=glob).to_arrow()
    assert sorted(found.column("id").to_pylist()) == ids


def test_a_pattern_that_is_none_is_refused(table: Table) -> None:
    with pytest.raises(InvalidError, match=r"incr.path.glob='/201\[6/\*' is no pattern of paths"):
        table.incremental("earliest", path_glob="/201[6/*").to_arrow()


@pytest.mark.parametrize("glob", [0, 2016, Path("/2016/*"), ["/2016/*"]])
def test_a_pattern_that_is_no_text_is_refused(table: Table, glob: Any) -> None:
    with pytest.raises(InvalidError, match=r"path_glob is .* Give a pattern of paths as text"):
        table.incremental("earliest", path_glob=glob).to_arrow()


def test_a_pattern_is_matched_with_whole_addresses_as_in_hudi(table: Table) -> None:
    above = Path(table.uri).parent.name
    found = table.incremental("earliest", columns="id", path_glob=f"/{above}/*").to_arrow()
    assert sorted(found.column("id").to_pylist()) == [1, 2, 3]
