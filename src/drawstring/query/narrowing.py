"""Column pruning and predicate pushdown into a planned query, for an engine's optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow.compute as pc

from drawstring.filegroups.read.tasks import ReadTask
from drawstring.formats.partition_match import partitions_that_match
from drawstring.metadata.column_ranges import PARTITION_STATS
from drawstring.model.explanation import SLICES, Step
from drawstring.query.candidates import Candidate
from drawstring.query.found_buckets import found_buckets
from drawstring.query.pruning import BucketFacts, Partition, bucket_pruning, stored_keys
from drawstring.query.replanning import Skips, Task
from drawstring.query.skipping import DataSkipping
from drawstring.storage import open_spec


def narrowed(tasks: Sequence[Task], columns: Sequence[str], where: pc.Expression | None) -> list[Task]:
    """Return the tasks that are still needed, with fewer columns and a stricter condition.

    The tasks of change queries are returned unchanged.

    Args:
        tasks: tasks of one query.
        columns: columns of the query to yield, in order.
        where: condition that rows must fulfil besides that of the query; None for none.
    """
    slices = [task for task in tasks if isinstance(task, ReadTask)]
    if not slices or len(slices) < len(tasks):
        return list(tasks)
    if where is None:
        return [replace(task, columns=tuple(columns)) for task in slices]
    both = where if slices[0].where is None else slices[0].where & where
    keys = stored_keys(both, slices[0].config, slices[0].schema)
    left = _matching(slices, where, keys)
    return [replace(task, columns=tuple(columns), where=both, keys=keys) for task in left]


def without_skipped(
    tasks: Sequence[Task], skips: Skips | None, where: pc.Expression | None, sql: str | None
) -> tuple[list[Task], list[Step]]:
    """Return the tasks that can hold rows of a condition by the metadata table, and what was left out.

    Args:
        tasks: tasks of one query.
        skips: of this query; None if nothing can be left out.
        where: condition that rows must fulfil besides that of the query; None for none that is known.
        sql: conditions in SQL that rows must fulfil, for expression indexes; None for none.
    """
    left = [task for task in tasks if isinstance(task, ReadTask)]
    if skips is None or not left or len(left) < len(tasks) or (where is None and sql is None):
        return list(tasks), []
    skipping = skips(pc.scalar(True) if where is None else where, sql)
    if skipping is None:
        return list(tasks), []
    candidates = {id(task): _candidate(task) for task in left}
    steps: list[Step] = []
    rules: dict[str, Callable[[Sequence[Candidate]], Any]] = {
        PARTITION_STATS: partial(_in_partitions, skipping),
        **skipping.rules(),
    }
    for name, rule in rules.items():
        matches = rule([candidates[id(task)] for task in left])
        kept = [task for task, is_match in zip(left, matches, strict=True) if is_match]
        steps.append(Step(SLICES, name, len(left) - len(kept), len(kept)))
        left = kept
    steps += [Step(SLICES, name, 0, len(left), why) for name, why in skipping.unused.items()]
    return list(left), [step for step in steps if step.skipped or step.note]


def _in_partitions(skipping: DataSkipping, candidates: Sequence[Candidate]) -> Sequence[bool]:
    """Return for each of some file slices whether its partition may match, by `partition_stats`."""
    if not skipping.is_current:
        return [True] * len(candidates)
    by_path = {each.partition.path: each.partition for each in candidates}
    kept = {each.path for each in skipping.partitions(list(by_path.values()))}
    return [each.partition.path in kept for each in candidates]


def _candidate(task: ReadTask) -> Candidate:
    also = None if task.whole_slice is None else task.whole_slice.file_slice
    return Candidate(Partition(task.file_slice.partition, dict(task.partition_values)), task.file_slice, also)


def _matching(
    tasks: Sequence[ReadTask], where: pc.Expression, keys: tuple[str, ...] | None
) -> list[ReadTask]:
    first, schema = tasks[0], tasks[0].schema
    table = BucketFacts(open_spec(first.storage), first.config, first.instants)
    buckets = bucket_pruning(where, schema, table) or found_buckets(
        keys,
        table,
        [(task.file_slice.partition, task.file_slice.file_id) for task in tasks],
        lambda place: tasks[place].file_slice,
    )
    matches = partitions_that_match(where, schema, [task.partition_values for task in tasks])
    return [
        task
        for task, matches_partition in zip(tasks, matches, strict=True)
        if matches_partition
        and (buckets is None or buckets.may_hold(task.file_slice.partition, task.file_slice.file_id))
    ]
