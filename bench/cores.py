"""The table of the suite `cores`: what a second core is good for, step by step."""

from __future__ import annotations

from bench.peers import on_cores
from bench.results import Results
from bench.tables import markdown

HEAD = (
    "step",
    "1 core, s",
    "2 cores, s",
    "of cpu",
    "times",
    "one thread, %",
    "4 cores, times",
    "8 cores, times",
)
STEPS = (
    "bulk_insert", "upsert", "base_3_columns", "columns_3", "columns_all", "q1", "q3", "q6", "key", "range",
    "compact",
)  # fmt: skip


def table(results: Results, kind: str) -> str:
    """Return the table of a kind of table; empty when it was not measured on one core and on two."""
    one, two = on_cores(kind, 1), on_cores(kind, 2)
    rows = [row for step in STEPS if (row := _row(results, one, two, step))]
    return markdown((f"Lineitem, {kind}", *HEAD[1:]), rows) if rows else ""


def _row(results: Results, one: str, two: str, step: str) -> tuple[str, ...] | None:
    alone, seconds = results.seconds(one, step), results.seconds(two, step)
    used = results.processor_seconds(two, step)
    if alone is None or not seconds or used is None:
        return None
    single = single_thread_share(seconds, used)
    return (
        step,
        f"{alone:.2f}",
        f"{seconds:.2f}",
        f"{used:.2f}",
        f"{alone / seconds:.1f}",
        f"{100 * single:.0f}",
        *(f"{times(single, cores):.1f}" for cores in (4, 8)),
    )


def single_thread_share(seconds: float, used: float) -> float:
    """Return the share of a step's time on two cores in which one thread or none runs.

    Of the time t in which two run and the time s in which one does, t + s are the seconds by the clock and
    2t + s those of the processor. What waits for the disk counts as one.
    """
    return min(1.0, max(0.0, (2 * seconds - used) / seconds))


def times(single: float, cores: int) -> float:
    """Return how many times as fast as one core some would be, if all but the single thread's work spread.

    Args:
        single: share of the time on two cores in which one thread runs.
        cores: how many there are.
    """
    both = 1 - single
    return (single + 2 * both) / (single + 2 * both / cores)
