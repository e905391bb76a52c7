"""A planned query made narrower: an engine's optimizer has found out that fewer columns and rows will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from drawstring.filegroups.tasks import ReadTask
from drawstring.formats.partition_match import partitions_that_match
from drawstring.query.buckets import buckets_to_read, is_among
from drawstring.query.scan import Task


def narrowed(tasks: Sequence[Task], columns: Sequence[str], where: pc.Expression | None) -> list[Task]:
    """Return the tasks that are left, reading less; those of change queries stay what they are.

    Args:
        tasks: of one query.
        columns: those of its columns to yield, in order.
        where: which of its rows may be left out: those that this is not true for; None for none.
    """
    slices = [task for task in tasks if isinstance(task, ReadTask)]
    if not slices or len(slices) < len(tasks):
        return list(tasks)
    left = slices if where is None else _that_match(slices, where)
    return [replace(task, columns=tuple(columns), where=_both(task.where, where)) for task in left]


def _that_match(tasks: Sequence[ReadTask], where: pc.Expression) -> list[ReadTask]:
    config, schema = tasks[0].config, tasks[0].schema
    buckets = buckets_to_read(where, config, schema)
    kept = partitions_that_match(where, schema, [task.partition_values for task in tasks])
    return [
        task
        for task, keep in zip(tasks, kept, strict=True)
        if keep and is_among(task.file_slice, buckets, config)
    ]


def _both(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    if first is None or second is None:
        return first if second is None else second
    return first & second
