"""Column pruning and predicate pushdown into a planned query, for an engine's optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from drawstring.filegroups.read.tasks import ReadTask
from drawstring.formats.partition_match import partitions_that_match
from drawstring.query.pruning import BucketFacts, bucket_pruning, stored_keys
from drawstring.query.replanning import Task
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
    return [replace(task, columns=tuple(columns), where=both, keys=keys) for task in _matching(slices, where)]


def _matching(tasks: Sequence[ReadTask], where: pc.Expression) -> list[ReadTask]:
    first, schema = tasks[0], tasks[0].schema
    table = BucketFacts(open_spec(first.storage), first.config, first.instants)
    buckets = bucket_pruning(where, schema, table)
    matches = partitions_that_match(where, schema, [task.partition_values for task in tasks])
    return [
        task
        for task, matches_partition in zip(tasks, matches, strict=True)
        if matches_partition
        and (buckets is None or buckets.may_hold(task.file_slice.partition, task.file_slice.file_id))
    ]
