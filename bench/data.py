"""The ride workload: the files that every peer gets, and the results that every peer must have.

base.parquet      rows with ts 1, one eighth in each of 8 cities (the partition column)
batch_I.parquet   updates of rows that are there, most of them recent ones, and new rows; ts I + 1
late.parquet      rows with ts 0, older than all that is there: they must lose
deletes.parquet   1 % of the rows of the base
facts.json        sizes, the key to look up, and the results expected
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Ids = npt.NDArray[np.int64]

CITIES = ("antwerp", "bogota", "cairo", "delhi", "essen", "fortaleza", "graz", "houston")
PROJECT_CITY = "delhi"
NOTES = 4096
GROUPS = (10, 100, 1000)
ROWS_OF_A_GROUP = 1000
ROWS_OF_A_SMALL_BATCH = 1000
PARTITIONS_TOUCHED = 4
SMALL_BATCHES = 500
WIDE_PARTITIONS = 8
WIDE_ROWS_AT_ONCE = 50_000
PAYLOAD_BYTES = 960
ZIPF_EXPONENT = 1.05
"""The larger, the more an update goes to the rows that came last."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the workload is."""

    rows: int = 1_000_000
    updates: int = 100_000
    inserts: int = 20_000
    batches: int = 5

    @staticmethod
    def of(rows: int, batches: int) -> Size:
        """Return a workload in the proportions of the full one."""
        return Size(rows, max(1, rows // 10), max(1, rows // 50), batches)


def make(folder: Path, size: Size) -> dict[str, Any]:
    """Write the workload unless it is there; return its facts."""
    facts_file = folder / "facts.json"
    if facts_file.exists():
        facts: dict[str, Any] = json.loads(facts_file.read_text())
        if facts["size"] == asdict(size):
            return facts
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20_250_101)
    for name, ids, ts in _plan(rng, size):
        pq.write_table(_rides(rng, ids, ts), folder / f"{name}.parquet", row_group_size=128_000)
    facts = {
        "size": asdict(size),
        "project_city": PROJECT_CITY,
        "point": _key(np.array([size.rows // 8]))[0],
        "expected": _expected(folder, size),
    }
    facts_file.write_text(json.dumps(facts, indent=2))
    return facts


def _plan(rng: np.random.Generator, size: Size) -> Iterator[tuple[str, Ids, int]]:
    """Yield each file's name, ids and ts."""
    yield "base", np.arange(size.rows), 1
    top = size.rows
    for number in range(1, size.batches + 1):
        new = np.arange(top, top + size.inserts)
        yield f"batch_{number}", np.concatenate([_recent(rng, top, size), new]), number + 1
        top += size.inserts
    yield "late", rng.choice(size.rows, size.updates, replace=False), 0
    gone = rng.choice(size.rows, max(1, size.rows // 100), replace=False)
    yield "deletes", gone, size.batches + 5


def _recent(rng: np.random.Generator, top: int, size: Size) -> Ids:
    """Choose distinct ids below `top` to update, half of the draws skewed towards it."""
    age = rng.zipf(ZIPF_EXPONENT, size.updates * 3)
    skewed = top - age[age <= size.rows]
    drawn = np.unique(np.concatenate([skewed, rng.integers(0, size.rows, size.updates)]))
    return rng.permutation(drawn)[: size.updates]


def _key(ids: Ids) -> npt.NDArray[np.str_]:
    return np.char.add("ride-", np.char.zfill(ids.astype(str), 12))


def _rides(rng: np.random.Generator, ids: Ids, ts: int) -> pa.Table:
    """Return a row of 14 columns for each id; what follows from the id never changes."""
    count = len(ids)
    notes = np.array([f"note {number:032x}" for number in rng.integers(0, 1 << 62, NOTES)])
    degrees = {
        name: rng.uniform(-limit, limit, count)
        for name, limit in (("begin_lat", 90), ("begin_lon", 180), ("end_lat", 90), ("end_lon", 180))
    }
    columns = {
        "ride_id": _key(ids),
        "city": np.array(CITIES)[ids % len(CITIES)],
        "ts": np.full(count, ts, "int64"),
        "driver_id": ids * 7919 % 50_000,
        "rider": np.char.add("rider-", (ids * 104_729 % 200_000).astype(str)),
        "fare": rng.gamma(2.0, 9.0, count).round(2),
        "distance": rng.gamma(2.0, 3.0, count).astype("float32"),
        **degrees,
        "started": pa.array(1_700_000_000_000_000 + ids * 1_000_000, pa.timestamp("us", "UTC")),
        "paid": rng.integers(0, 2, count).astype(bool),
        "note": notes[rng.integers(0, NOTES, count)],
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _expected(folder: Path, size: Size) -> dict[str, Any]:
    """Compute the results of the steps from the files."""
    names = ["ride_id", "city", "ts", "driver_id", "fare", "distance"]
    base = pq.read_table(folder / "base.parquet", columns=names)
    batches = [
        pq.read_table(folder / f"batch_{n}.parquet", columns=names) for n in range(1, size.batches + 1)
    ]
    everything = _newest(pa.concat_tables([base, *batches]))
    gone = pq.read_table(folder / "deletes.parquet", columns=["ride_id"])
    left = _without(everything, gone)
    late = pq.read_table(folder / "late.parquet", columns=names)
    dear = left.filter((pc.field("city") == PROJECT_CITY) & (pc.field("fare") > 30))
    return {
        "scan_base": _totals(base),
        "flat": base.num_rows + size.batches * (size.updates + size.inserts),
        "snapshot": _totals(left),
        "snapshot_undeleted": _totals(everything),
        "project": round(pc.sum(dear["distance"]).as_py() or 0.0, 1),
        "point": pc.sum(pc.equal(left["ride_id"], _key(np.array([size.rows // 8]))[0])).as_py(),
        "incremental_cow": pc.sum(pc.greater(left["ts"], 1)).as_py(),
        # Increments of merge on read weigh late rows against log files only, not against base files.
        "incremental_mor": _without(_newest(pa.concat_tables([late, *batches])), gone).num_rows,
    }


def _without(rows: pa.Table, gone: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["ride_id"], gone["ride_id"].combine_chunks())))


def _newest(rows: pa.Table) -> pa.Table:
    """Keep the last row of each key; files are in the order of their ts."""
    codes = rows["ride_id"].combine_chunks().dictionary_encode()
    last = np.zeros(len(codes.dictionary), "int64")
    np.maximum.at(last, codes.indices.to_numpy(), np.arange(rows.num_rows))
    return rows.take(last)


def _totals(rows: pa.Table) -> list[float]:
    drivers = pc.count_distinct(rows["driver_id"]).as_py()
    return [rows.num_rows, round(pc.sum(rows["fare"]).as_py(), 2), pc.max(rows["ts"]).as_py(), drivers]


def tell_keys(folder: Path, keys: int) -> None:
    """Tell how many keys the large record index shall have."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "keys.json").write_text(json.dumps({"keys": keys}))


def make_small_batches(folder: Path) -> None:
    """Write what the scaling suite reads, unless it is there: see `bench/scripts/scaling.py`.

    groups_N.parquet   1,000 rows in each of N partitions
    small_I.parquet    the I-th upsert: 250 rows in each of the first four partitions
    """
    folder.mkdir(parents=True, exist_ok=True)
    each = ROWS_OF_A_SMALL_BATCH // PARTITIONS_TOUCHED
    starts = np.arange(PARTITIONS_TOUCHED)[:, None] * ROWS_OF_A_GROUP
    for groups in GROUPS:
        _write_once(folder / f"groups_{groups}.parquet", np.arange(groups * ROWS_OF_A_GROUP), 0)
    for number in range(1, SMALL_BATCHES + 1):
        ids = starts + (np.arange(each) + number * each) % ROWS_OF_A_GROUP
        _write_once(folder / f"small_{number}.parquet", ids.ravel(), number)


def make_new_rides(folder: Path, size: Size) -> None:
    """Write `new_I.parquet` for the suite of indexes: rides with keys that no other file has."""
    first = size.rows + size.batches * size.inserts
    for number in range(1, size.batches + 1):
        file = folder / f"new_{number}.parquet"
        start = first + (number - 1) * size.inserts
        rows = _rides(np.random.default_rng(number), np.arange(start, start + size.inserts), size.batches + 2)
        pq.write_table(rows, file)


def make_writers(folder: Path, size: Size, commits: int) -> None:
    """Write what the suite of writers reads besides `base.parquet`, batches in a folder `writers`.

    city_C_I.parquet   the I-th batch for one city
    all_P_I.parquet    the I-th batch of process P, for all cities
    facts.json         how many batches there are of each, and how many of the rows of each are new

    A batch is a thousandth of the rides, nine of ten of them updates; new rides have keys that no other
    file has.
    """
    folder = folder / "writers"
    folder.mkdir(parents=True, exist_ok=True)
    count, every = max(10, size.rows // 1000), len(CITIES)
    new = count // 10
    first = 10 * size.rows // every * every
    rng = np.random.default_rng(size.rows)
    for number in range(commits):
        for at in range(every):
            old = rng.choice(size.rows // every, count - new, replace=False)
            cities = rng.integers(0, every, len(old))
            for name, city, step in (("city", at, every), ("all", cities, 1)):
                ids = np.concatenate([old * every + city, first + at + np.arange(new) * step])
                pq.write_table(_rides(rng, ids, number + 2), folder / f"{name}_{at}_{number}.parquet")
                first += every * (new + 1)
    (folder / "facts.json").write_text(json.dumps({"commits": commits, "new": new}))


def make_wide(folder: Path, rows: int) -> None:
    """Write what the suite of memory reads, rows of about 1,000 bytes that no codec shortens.

    wide.parquet           as many as are asked for, in 8 partitions
    wide_changes.parquet   one in a hundred of them
    hot.parquet            a quarter as many, nine of ten in partition p0
    hot_new.parquet        the same with other keys
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids = np.arange(rows)
    hot = np.arange(rows // 4)
    hot_parts = np.where(hot % 10 == 9, hot // 10 % 7 + 1, 0)
    _write_wide(folder / "wide.parquet", ids, ids % WIDE_PARTITIONS)
    _write_wide(folder / "wide_changes.parquet", ids[::100], ids[::100] % WIDE_PARTITIONS)
    _write_wide(folder / "hot.parquet", hot, hot_parts)
    _write_wide(folder / "hot_new.parquet", hot + rows, hot_parts)


def _write_wide(file: Path, ids: Ids, parts: Ids) -> None:
    schema = pa.schema([("id", "string"), ("part", "string"), ("ts", "int64"), ("payload", "binary")])
    if file.exists() and pq.read_metadata(file).num_rows == len(ids):
        return
    rng = np.random.default_rng(len(ids))
    with pq.ParquetWriter(file, schema, use_dictionary=False) as writer:
        for start in range(0, len(ids), WIDE_ROWS_AT_ONCE):
            some = ids[start : start + WIDE_ROWS_AT_ONCE]
            names = [f"p{part}" for part in parts[start : start + WIDE_ROWS_AT_ONCE]]
            ends = np.arange(len(some) + 1, dtype="int32") * PAYLOAD_BYTES
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(rng.bytes(len(some) * PAYLOAD_BYTES))]
            payload = pa.Array.from_buffers(pa.binary(), len(some), buffers)
            keys = [f"id-{number:012d}" for number in some]
            writer.write_batch(
                pa.record_batch([keys, names, np.ones(len(some), "int64"), payload], schema=schema)
            )


def _write_once(file: Path, ids: Ids, ts: int) -> None:
    if file.exists():
        return
    columns = {
        "id": [f"id-{number:09d}" for number in ids],
        "part": [f"p{number // ROWS_OF_A_GROUP:04d}" for number in ids],
        "ts": np.full(len(ids), ts),
        "amount": np.random.default_rng(ts).random(len(ids)),
        "note": [f"note {number} of {ts}" for number in ids],
    }
    pq.write_table(pa.table(columns), file)
