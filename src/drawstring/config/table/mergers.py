"""A user's own mergers, by the name that tables ask for them.

Looked up by the process that opens a table; the table's configuration carries what was found to the
tasks, so workers need no registration of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from drawstring.base.errors import InvalidError

RecordMerger: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
"""Given the older and the newer versions of some records, returns what they become."""

_mergers: dict[str, RecordMerger] = {}


def register_merger(name: str, merger: RecordMerger) -> None:
    """Let tables with merge mode CUSTOM be merged by a function of one's own.

    Register before the table is opened. A second registration of a name takes the place of the first.

    Args:
        name: what the table asks for: its merge strategy id (`hoodie.record.merge.strategy.id`), or
            its payload class (`hoodie.compaction.payload.class`) in full or without the package.
        merger: called with two tables of all columns: the older versions and the newer ones. Meta
            columns are there, but for what has no commit time yet (duplicates within a batch, rewrites).
            Row by row the versions belong to the same key, so both have the same length. Returns a table
            with one row for each, in the same order; `_hoodie_is_deleted` true deletes a record.
            Versions of one key are laid over each other oldest first, the log records among themselves
            before the result is laid over the base file; so `merger(merger(a, b), c)` should be
            `merger(a, merger(b, c))`. It is not asked about deletes: a delete wins over all before it.
            On Spark it is pickled to the workers.

    Raises:
        InvalidError: the name is empty, or the merger cannot be called.

    Example:
        >>> import pyarrow.compute as pc
        >>> def add_fares(older, newer):
        ...     fares = pc.add(older["fare"], newer["fare"])
        ...     return newer.set_column(newer.schema.get_field_index("fare"), "fare", fares)
        >>> drawstring.register_merger("com.example.AddFares", add_fares)
        >>> drawstring.open("/lake/trips").compact()  # doctest: +SKIP
    """
    given: Any = name
    if not isinstance(given, str) or not given.strip():
        raise InvalidError("a merger needs a name: the merge strategy id or payload class of the tables")
    if not callable(merger):
        raise InvalidError(f"the merger of {name!r} is a {type(merger).__name__}, which cannot be called")
    _mergers[name.strip()] = merger


def registered_merger(*names: str | None) -> RecordMerger | None:
    """Return the merger that is registered by one of the names, the first that has one."""
    return next((_mergers[name] for name in names if name in _mergers), None)
