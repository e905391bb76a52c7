"""Statistics in which Apache Hudi says more than it knows skip nothing; see `metadata.column_ranges`.

The table was written by Hudi 1.2.0: texts of 4 and 5,000 letters in column `l`. parquet-mr keeps no bounds of
longer texts than 4 KiB, of which Hudi then says that all of them are null.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import drawstring

DATA = Path(__file__).parent / "data"


def test_rows_with_long_texts_are_found_though_hudi_counts_them_as_null(tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "v9_long_texts.zip") as file:
        file.extractall(tmp_path)
    table = drawstring.open(tmp_path / "v9_long_texts")
    told = {row["column"]: row for row in table.inspect.metadata("column_stats").to_pylist()}
    assert (told["l"]["values"], told["l"]["nulls"], told["l"]["min"]) == (2, 2, None)

    def ids(where: str) -> list[int]:
        return sorted(table.scan(["id"], where=where).to_arrow()["id"].to_pylist())

    assert ids("l = 'tiny'") == [2]
    assert ids("l is not null") == ids("l > 'a'") == [1, 2]
    assert ids("l is null") == []
    assert table.scan(["id"], where="s > 'z'").tasks() == []  # bounds that Hudi knows are used
