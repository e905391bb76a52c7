"""The registry of a user's own record mergers.

The process that opens a table looks up the merger; the table's configuration carries it to the tasks, so
workers need no registration of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from drawstring.base.errors import InvalidError

RecordMerger: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
"""A function of the older and the newer versions of records that returns the merged records."""

_mergers: dict[str, RecordMerger] = {}


def register_merger(name: str, merger: RecordMerger) -> None:
    """Register a function as a record merger, so that tables with merge mode CUSTOM can be merged.

    Register it before opening the table. Registering a name again replaces the function.

    Args:
        name: the table's merge strategy id (`hoodie.record.merge.strategy.id`), or its payload class
            (`hoodie.compaction.payload.class`) in full or without the package.
        merger: called with two tables of all columns, the older versions and the newer ones, which have the
            same length and the same key in each row. Meta columns are included, except for records without
            a commit time yet (duplicates within a batch, rewrites). It returns a table with one merged row
            for each pair, in the same order; a row with `_hoodie_is_deleted` true deletes the record.
            Versions of a key are merged oldest first: the log records among themselves, and the result with
            the base file; therefore `merger(merger(a, b), c)` should equal `merger(a, merger(b, c))`. It is
            not called for deletes: a delete wins over everything before it. On Spark it is pickled to the
            workers.

    Raises:
        InvalidError: the name is empty, or the merger is not callable.

    Example:
        >>> import pyarrow.compute as pc
        >>> def add_fares(older, newer):
        ...     fares = pc.add(older["fare"], newer["fare"])
        ...     return newer.set_column(newer.schema.get_field_index("fare"), "fare", fares)
        >>> drawstring.register_merger("com.example.AddFares", add_fares)
        >>> drawstring.open("/lake/trips").compact()  # doctest: +SKIP
    """
    untyped_name: Any = name
    if not isinstance(untyped_name, str) or not untyped_name.strip():
        raise InvalidError(
            "The name of the merger is empty. Give the tables' merge strategy id or payload class."
        )
    if not callable(merger):
        raise InvalidError(
            f"The merger {name!r} is a {type(merger).__name__}, which is not callable. Give a function."
        )
    _mergers[name.strip()] = merger


def registered_merger(*names: str | None) -> RecordMerger | None:
    """Return the merger registered under the first of the names that has one, None if none has."""
    return next((_mergers[name] for name in names if name in _mergers), None)
