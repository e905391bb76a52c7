"""LakeLoader's two workloads: the files that every peer gets, and the results that each must have.

    fact    events in 32 days, 39 columns; a round updates mostly the newest days, with a long tail to the
            oldest ones, and adds events of the newest day
    dim     100 columns, no partitions; a round sets 20 other columns of random rows

Each comes in two sizes, `large` and `small` with a quarter of its rows, and the rounds of both have as many
rows. Where a write costs what the change is, both take the same; where it costs what the table is, four
times as much.

WORKLOAD_SIZE_ROUND.parquet   the rows; of round 0 those of the load
lakeloader.json               the rounds, the columns to read, and the results expected
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tables import markdown

if TYPE_CHECKING:
    from bench.results import Results

Ids = npt.NDArray[np.int64]

ROUNDS = 3
SIZES = {"small": 4, "large": 1}
"""The tables, and by what the number of their rows is divided."""
DAYS = 32
AGE_EXPONENT = 1.5
"""The larger, the more updates go to the newest days: a day of age n gets 1 / (n + 1) ** 1.5 of them."""
NEW_SHARE = 0.25
TEXTS = 4096
SET = 20
"""Columns that a round sets in `dim`."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload.

    Attributes:
        rows_in: it has one row in so many of those asked for.
        changed_in: a round has one row in so many of the large table's.
        columns: beside the key, the ordering and the day.
        sums: what is read; in `dim` a column of each round and one that no round sets.
    """

    rows_in: int
    changed_in: int
    columns: int
    sums: tuple[str, ...]


WORKLOADS = {
    "fact": Workload(1, 100, 36, ("ts", "v01", "v34")),
    "dim": Workload(4, 100, 98, ("ts", "v01", "v22", "v40", "v97")),
}

UPSERT, READ, WRITTEN = "upsert", "read", "written"
MEDIANS = tuple(f"{name}_{size}_{what}" for name in WORKLOADS for size in SIZES for what in (UPSERT, READ))
STEPS = tuple(
    f"{name}_{step}"
    for name in WORKLOADS
    for step in ("large_load", f"large_{UPSERT}", f"small_{UPSERT}", f"large_{READ}")
)
FOUR_TIMES = "cpu for 4 times the rows"
GROWTH_MAX = 2.0
"""A round whose cost is that of the change takes at most so many times as much with four times the rows."""


def make(folder: Path, rows: int) -> dict[str, Any]:
    """Write the files unless they are there; return the expected results.

    Args:
        folder: where to.
        rows: of the large `fact`; the large `dim` has a quarter of them.
    """
    facts_file = folder / "lakeloader.json"
    if facts_file.exists():
        facts: dict[str, Any] = json.loads(facts_file.read_text())
        if facts["rows"] == rows:
            return dict(facts["expected"])
    folder.mkdir(parents=True, exist_ok=True)
    expected = {
        f"{name}_{size}": _make(folder, name, size, rows // workload.rows_in)
        for name, workload in WORKLOADS.items()
        for size in SIZES
    }
    sums = {name: workload.sums for name, workload in WORKLOADS.items()}
    facts = {"rows": rows, "rounds": ROUNDS, "sums": sums, "expected": expected}
    facts_file.write_text(json.dumps(facts, indent=2))
    return dict(expected)


def _make(folder: Path, name: str, size: str, rows: int) -> dict[str, Any]:
    """Write one table's load and rounds.

    Returns:
        `sums`, what a read has to return after the last round; `change_mb`, the size of a round's file.
    """
    workload, count = WORKLOADS[name], rows // SIZES[size]
    changed = max(4, rows // workload.changed_in)
    rng = np.random.default_rng([rows, count, workload.columns])
    newest: dict[str, npt.NDArray[Any]] = {}
    change_mb = 0.0
    for number, ids in enumerate(_rounds(rng, name, count, changed)):
        columns = _columns(rng, name, number, ids, count)
        file = folder / f"{name}_{size}_{number}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=128_000)
        for column in workload.sums:
            if column in columns:
                old = newest.get(column, np.zeros(0))
                kept = np.concatenate([old, np.zeros(max(0, int(ids.max()) + 1 - len(old)))])
                kept[ids] = columns[column]
                newest[column] = kept
        change_mb = file.stat().st_size / 1e6
    there = len(newest["ts"])
    sums = [there, *(round(float(newest[column].sum()), 2) for column in workload.sums)]
    return {"sums": sums, "change_mb": round(change_mb, 3)}


def _rounds(rng: np.random.Generator, name: str, count: int, changed: int) -> Iterator[Ids]:
    """Yield the ids of the load and of each round."""
    yield np.arange(count)
    top = count
    for _ in range(ROUNDS):
        if name == "dim":
            yield rng.choice(count, min(changed, count // 2), replace=False)
            continue
        new = np.arange(top, top + max(1, int(changed * NEW_SHARE)))
        yield rng.permutation(np.concatenate([_skewed(rng, count, changed - len(new)), new]))
        top += len(new)


def _skewed(rng: np.random.Generator, count: int, changed: int) -> Ids:
    """Choose distinct ids below `count`, most of them of the newest days; days follow each other by ids."""
    weights = 1 / np.arange(1, DAYS + 1) ** AGE_EXPONENT
    ages = rng.choice(DAYS, 2 * changed, p=weights / weights.sum())
    of_a_day = count // DAYS
    drawn = (DAYS - 1 - ages) * of_a_day + rng.integers(0, of_a_day, len(ages))
    _, first = np.unique(drawn, return_index=True)
    return drawn[np.sort(first)][:changed]


def _columns(rng: np.random.Generator, name: str, number: int, ids: Ids, count: int) -> dict[str, Any]:
    """Return the columns of a round's rows; numbers of `dim`'s columns go on from round to round."""
    workload = WORKLOADS[name]
    columns: dict[str, Any] = {"id": np.char.add(f"{name}-", np.char.zfill(ids.astype(str), 12))}
    if name == "fact":
        day = np.minimum(ids // max(1, count // DAYS), DAYS - 1)
        columns["day"] = np.char.add("day-", np.char.zfill(day.astype(str), 2))
    columns["ts"] = np.full(len(ids), number, "int64")
    sets_some = name == "dim" and number > 0
    chosen = range((number - 1) * SET, number * SET) if sets_some else range(workload.columns)
    return columns | {f"v{each:02}": values(rng, each, len(ids)) for each in chosen}


def values(rng: np.random.Generator, column: int, count: int) -> npt.NDArray[Any]:
    """Return the values of a column: whole numbers, amounts and texts by turns."""
    if column % 3 == 0:
        return rng.integers(0, 1 << 40, count)
    if column % 3 == 1:
        return rng.integers(0, 100_000, count) / 100
    texts = np.array([f"text {number:032x}" for number in range(TEXTS)])
    return texts[rng.integers(0, TEXTS, count)]


def expected_of(step: str, expected: dict[str, Any]) -> Any:
    """Return the result that a step must have, None if any will do."""
    table, found, _ = step.partition(f"_{READ}_")
    return expected[table]["sums"] if found else None


def rows(results: Results, ran: Sequence[str]) -> Iterator[list[str]]:
    """Yield rows of a table of the peers: what a round wrote, and what four times the rows cost."""
    for name in WORKLOADS:
        yield [f"{name}: written, MB (of the change)", *(_written(results, peer, name) for peer in ran)]
        growths = (_growth(results, peer, name) for peer in ran)
        yield [f"{name}: {FOUR_TIMES}", *("" if each is None else f"{each:.1f}x" for each in growths)]


def aims(results: Results) -> str:
    """Return whether the cost of a round is bounded by its size; empty if the suite was not run."""
    ours = [peer for peer in results.peers() if peer.startswith("loads-") and peer.endswith(("mor", "cow"))]
    found = [
        (f"{peer}: {name}, {FOUR_TIMES}", f"{growth:.1f}", "yes" if growth <= GROWTH_MAX else "no")
        for peer in ours
        for name in WORKLOADS
        if (growth := _growth(results, peer, name)) is not None
    ]
    return markdown(("bounded by the change", "is", f"at most {GROWTH_MAX:.1f}"), found) if found else ""


def _written(results: Results, peer: str, name: str) -> str:
    """Return what the median round wrote into the large table, and how many times its own file that is."""
    median = median_written(results, peer, f"{name}_large_{WRITTEN}_")
    if median is None:
        return ""
    return f"{median:.2f} ({median / results.expected['lakeloader'][f'{name}_large']['change_mb']:.1f}x)"


def median_written(results: Results, peer: str, start: str) -> float | None:
    """Return the median megabytes of a peer's steps that begin so; None if there are none."""
    mb = [one.result for one in results.steps if one.peer == peer and one.step.startswith(start)]
    return statistics.median(mb) if mb else None


def _growth(results: Results, peer: str, name: str) -> float | None:
    """Return how many times a round in the small table one in the large table takes."""
    large, small = (results.processor_seconds(peer, f"{name}_{size}_{UPSERT}") for size in ("large", "small"))
    return large / max(small, 0.001) if large is not None and small is not None else None
