"""What must come out, by plain computations over the source rows; and the comparison with what did."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from demo import landing
from demo.tables import DELAY_SCHEMA, GROUP, TableSpec


def flights_at(flights: pa.Table, time: int) -> pa.Table:
    """Return each flight as its newest event before a moment (microseconds) left it."""
    has_departed = pc.fill_null(pc.less(flights["departed_at"], time), False)
    has_landed = pc.fill_null(pc.less(flights["landed_at"], time), False)
    return pa.concat_tables(
        [
            landing.scheduled(flights.filter(pc.invert(has_departed))),
            landing.departed(flights.filter(pc.and_not(has_departed, has_landed))),
            landing.landed(flights.filter(has_landed)),
        ]
    )


def flights_at_last(flights: pa.Table) -> pa.Table:
    """Return each flight that was not cancelled, after its last event."""
    flown = flights.filter(pc.is_valid(flights["departed_at"]))
    has_landed = pc.is_valid(flown["landed_at"])
    still_out = flown.filter(pc.invert(has_landed))
    return pa.concat_tables([landing.departed(still_out), landing.landed(flown.filter(has_landed))])


def delays_at_last(flights: pa.Table) -> pa.Table:
    """Return the delays by carrier and day of the flights that were not cancelled."""
    flown = flights.filter(pc.is_valid(flights["departed_at"]))
    return delays_of(flown)


def delays_of(flights: pa.Table) -> pa.Table:
    """Group flights by carrier and day."""
    grouped = flights.group_by(list(GROUP)).aggregate(
        [
            ([], "count_all"),
            ("dep_delay", "count"),
            ("arr_time", "count"),
            ("dep_delay", "sum"),
            ("arr_delay", "sum"),
            ("arr_delay", "max"),
        ]
    )
    values = [grouped[name] for name in GROUP]
    values += [grouped["count_all"], grouped["dep_delay_count"], grouped["arr_time_count"]]
    values += [pc.fill_null(grouped["dep_delay_sum"], 0), pc.fill_null(grouped["arr_delay_sum"], 0)]
    values += [grouped["arr_delay_max"]]
    return pa.table(values, names=DELAY_SCHEMA.names).cast(DELAY_SCHEMA)


def difference(spec: TableSpec, actual: pa.Table, expected: pa.Table) -> str | None:
    """Compare two tables row by row; None when they are equal, else what differs first.

    Args:
        spec: names the key columns and the columns to compare; others (the meta columns) are left out.
        actual: as read from the table, in any order.
        expected: as computed from the source rows, in any order.
    """
    keys = list(spec.record_key)
    actual = actual.select(spec.schema.names).cast(spec.schema)
    twice = actual.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if twice.num_rows:
        return f"keys with several rows: {twice.num_rows}, such as {twice.slice(0, 1).to_pylist()[0]}"
    for text, one, other in (("rows missing", expected, actual), ("rows too many", actual, expected)):
        rest = one.join(other.select(keys), keys, join_type="left anti")
        if rest.num_rows:
            return f"{text}: {rest.num_rows}, such as {rest.slice(0, 1).to_pylist()[0]}"
    order = [(key, "ascending") for key in keys]
    return _first_cell(actual.sort_by(order), expected.sort_by(order), keys)


def _first_cell(actual: pa.Table, expected: pa.Table, keys: list[str]) -> str | None:
    for name in expected.column_names:
        same = pc.fill_null(pc.equal(actual[name], expected[name]), False)
        both_null = pc.and_(pc.is_null(actual[name]), pc.is_null(expected[name]))
        wrong = pc.invert(pc.or_(same, both_null))
        count = pc.sum(wrong).as_py() or 0
        if count:
            at = pc.index(wrong, True).as_py()
            key = expected.select(keys).slice(at, 1).to_pylist()[0]
            got, want = actual[name][at].as_py(), expected[name][at].as_py()
            return f"{name} differs, rows: {count}, such as {got!r} instead of {want!r} at {key}"
    return None
