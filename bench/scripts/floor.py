"""pyarrow writes and reads the same rows with no table format: the floor.

usage: floor.py DATA OUT [TABLE]

With TABLE, one that drawstring wrote, the files are like its files: the meta columns too, as many files
a partition, the same codec and row groups. Without, they are what a dataset of pyarrow comes to.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arrow import TOTALS, totals
from ride import Workload, run

INSTANT = "20250101000000000"


class Plain:
    """A partitioned dataset."""

    def __init__(self, work: Workload) -> None:
        self._work = work

    def bulk_insert(self, file: str) -> None:
        ds.write_dataset(pq.read_table(file), self._work.table, format="parquet", partitioning=["city"])

    def totals(self) -> list[float]:
        return totals(self._dataset().to_table(columns=TOTALS))

    def _dataset(self) -> ds.Dataset:
        return ds.dataset(self._work.table, partitioning=["city"])


@dataclass(frozen=True, slots=True)
class Layout:
    """What a table's first base files are like."""

    files_a_partition: int
    codec: str
    group_rows: int
    is_mor: bool

    @staticmethod
    def of(table: str) -> Layout:
        """Look at the files of the first commit."""
        files = [file for file in Path(table).rglob("*.parquet") if ".hoodie" not in file.parts]
        first = min(_instant(file) for file in files)
        loaded = [file for file in files if _instant(file) == first]
        count = Counter(file.parent.name for file in loaded)
        group = pq.read_metadata(loaded[0]).row_group(0)
        is_mor = "MERGE_ON_READ" in Path(table, ".hoodie/hoodie.properties").read_text()
        codecs = Counter(group.column(number).compression for number in range(group.num_columns))
        del codecs["UNCOMPRESSED"]  # of columns that no codec shortens
        codec = max(codecs, key=codecs.__getitem__, default="none")
        return Layout(max(count.values()), codec, group.num_rows, is_mor)


class Same:
    """The same files as a table has, written on all cores."""

    def __init__(self, work: Workload, layout: Layout) -> None:
        self._work = work
        self._layout = layout
        self._writes = 0

    def bulk_insert(self, file: str) -> None:
        self._write(pq.read_table(file), "base")

    def upsert(self, file: str) -> None:
        """Merge on read adds files with the changes; copy on write writes all files anew."""
        self._writes += 1
        if self._layout.is_mor:
            self._write(pq.read_table(file), f"changes-{self._writes}")
            return
        rows = self._dataset("base").to_table()
        shutil.rmtree(f"{self._work.table}/base")
        self._write(rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]), "base")

    def totals(self) -> list[float]:
        """Read the base files only: the floor merges nothing."""
        return totals(self._dataset("base").to_table(columns=TOTALS))

    def _dataset(self, part: str) -> ds.Dataset:
        return ds.dataset(f"{self._work.table}/{part}", format="parquet")

    def _write(self, rows: pa.Table, part: str) -> None:
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            for done in [pool.submit(self._write_file, *args) for args in self._pieces(rows, part)]:
                done.result()

    def _pieces(self, rows: pa.Table, part: str) -> Iterator[tuple[pa.Table, str, Path]]:
        for city in pc.unique(rows["city"]).to_pylist():
            of_city = rows.filter(pc.equal(rows["city"], city))
            count = -(-of_city.num_rows // self._layout.files_a_partition)
            folder = Path(self._work.table, part, city)
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(self._layout.files_a_partition):
                yield of_city.slice(number * count, count), city, folder / f"{number:08}.parquet"

    def _write_file(self, rows: pa.Table, city: str, file: Path) -> None:
        stamped = _with_meta(rows, city, file.name)
        options = {"compression": self._layout.codec, "row_group_size": self._layout.group_rows}
        pq.write_table(stamped, file, store_schema=False, **options)


def _with_meta(rows: pa.Table, city: str, file_name: str) -> pa.Table:
    """Put Hudi's five columns before the others."""
    count = rows.num_rows
    numbers = pa.array(range(count)).cast(pa.string())
    meta = {
        "_hoodie_commit_time": pa.repeat(INSTANT, count),
        "_hoodie_commit_seqno": pc.binary_join_element_wise(INSTANT, "0", numbers, "_"),
        "_hoodie_record_key": rows["ride_id"],
        "_hoodie_partition_path": pa.repeat(city, count),
        "_hoodie_file_name": pa.repeat(file_name, count),
    }
    return pa.table(meta | {name: rows[name] for name in rows.column_names})


def _instant(file: Path) -> str:
    """Return the requested time in a base file's name: FILEID_TOKEN_INSTANT.parquet."""
    return file.stem.rsplit("_", 1)[-1]


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Same(work, Layout.of(sys.argv[3])) if len(sys.argv) > 3 else Plain(work), work)
