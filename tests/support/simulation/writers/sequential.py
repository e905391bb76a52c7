"""The sequential model: what an operation makes of the rows of a table, by the kind of the table.

    plain     the last write of a key wins
    ordered   the greatest value of a key wins, however late it comes
    global    a key is in the table once: an upsert moves its row to the partition that it names

Operations come in the order in which they completed. In ordered tables the value is the ordering column as
well, so two versions of a key that tie are the same row, whichever wins.
"""

from __future__ import annotations

from collections.abc import Collection

from tests.support.simulation.writers.history import Rows
from tests.support.simulation.writers.plans import At, Kind


def upserted(kind: Kind, rows: Rows, new: Rows) -> Rows:
    """Return rows after an upsert of some."""
    if kind.is_ordered:
        new = {at: max(value, rows.get(at, value)) for at, value in new.items()}
    return deleted(kind, rows, new) | new


def deleted(kind: Kind, rows: Rows, gone: Collection[At]) -> Rows:
    """Return rows after a delete of some keys."""
    names = set(map(kind.name_of, gone))
    return {at: value for at, value in rows.items() if kind.name_of(at) not in names}


def merged(kind: Kind, rows: Rows, more: Rows, *, inserts: bool) -> Rows:
    """Return rows after a merge that adds to values, and inserts the rows that match none if it should."""
    places = {kind.name_of(at): at for at in rows}
    found = {places[kind.name_of(at)]: value for at, value in more.items() if kind.name_of(at) in places}
    new = {at: value for at, value in more.items() if kind.name_of(at) not in places}
    return rows | (new if inserts else {}) | {at: rows[at] + value for at, value in found.items()}
