"""The two short tables of the README: seconds of the steps that matter most, of the suite `rides`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import peers
from bench.data import Size
from bench.results import Results
from bench.tables import markdown

PEAK = "peak memory"
LOAD = "load {size.rows:,} rows"
UPSERT = "upsert {size.updates:,} updates and {size.inserts:,} inserts"


@dataclass(frozen=True, slots=True)
class Short:
    """One table.

    Attributes:
        head: above the rows.
        columns: for each column its head, the peer, and the peer that has the steps of copy on write.
        rows: for each row its head, with places for sizes, the step, and whether it is one of copy on write.
    """

    head: str
    columns: Mapping[str, tuple[str, str]]
    rows: Sequence[tuple[str, str, bool]]


TABLES = (
    Short(
        "On Spark, merge on read",
        {
            "drawstring": (peers.SPARK_MOR, peers.SPARK_COW),
            "Hudi 1.2.0": ("hudi-mor-bucket", "hudi-cow-bloom"),
            "Delta 3.3": ("delta-dv", ""),
            "Iceberg 1.10": ("iceberg-mor", ""),
            "Paimon 0.9": ("paimon", ""),
        },
        (
            (LOAD, "bulk_insert", False),
            (UPSERT, "upsert", False),
            ("the same, copy on write", "upsert", True),
            ("read 3 columns", "snapshot", False),
            ("one record by its key", "point", False),
            ("what changed since the load", "incremental", False),
            ("compact", "compact", False),
        ),
    ),
    Short(
        "Without Spark",
        {
            "drawstring, merge on read": (peers.LOCAL_MOR, ""),
            "copy on write": (peers.LOCAL_COW, ""),
            "delta-rs": ("delta-rs", ""),
            "hudi-rs 0.5": (peers.READ_ONLY, ""),
        },
        (
            (LOAD, "bulk_insert", False),
            (UPSERT, "upsert", False),
            ("read 3 columns", "snapshot", False),
            ("what changed since the load", "incremental", False),
            ("peak memory, MB", PEAK, False),
        ),
    ),
)


def text(results: Results, size: Size) -> str:
    """Return both tables, as far as their peers took part in a run of that size."""
    return "\n\n".join(filled for table in TABLES if (filled := _filled(results, size, table)))


def _filled(results: Results, size: Size, table: Short) -> str:
    ran = set(results.peers())
    columns = {head: names for head, names in table.columns.items() if ran & set(names)}
    rows = [
        [head.format(size=size), *(_cell(results, names[is_cow], step) for names in columns.values())]
        for head, step, is_cow in table.rows
    ]
    return markdown([table.head, *columns], [row for row in rows if any(row[1:])]) if columns else ""


def _cell(results: Results, peer: str, step: str) -> str:
    if step == PEAK:
        return f"{results.peak_mb(peer) or 0:,}"
    seconds = results.seconds(peer, step)
    return "" if seconds is None else f"{seconds:.{1 if seconds >= 1 else 2}f}"
