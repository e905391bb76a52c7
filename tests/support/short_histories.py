"""Tables with a short history: cleaned and archived after few writes."""

from __future__ import annotations

from tests.support.histories import Case, History, row, table_of

SHORT = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline.max.delta.commits": "1",
}
CASES = [
    Case(6, "COPY_ON_WRITE"),
    Case(9, "COPY_ON_WRITE"),
    Case(6, "MERGE_ON_READ", "avro"),
    Case(8, "MERGE_ON_READ", "avro"),
]


def upsert(history: History, number: int, **options: str) -> None:
    """Write every other row, a little further on with every number."""
    rows = [row(key, 100 * number) for key in range(number % 3, 12, 2)]
    history.table.upsert(table_of(rows), options={**history.case.write_options, **options})
    history.model.upsert(rows)
