"""What insert does with rows whose key the table has."""

from __future__ import annotations

import pytest

from drawstring.base.errors import InvalidError
from tests.support.rows import A1, A2, B1, held, rides
from tests.support.tables import BUCKETS, create, table_types


@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
@table_types
def test_insert_drops_rows_whose_key_is_there_when_told_to(table_type: str, index: dict[str, str]) -> None:
    table = create(table_type=table_type, properties=index)
    table.insert(rides(A1, ("c", "rome", 1, 1.0)))
    table.delete(rides(("c", "rome", 1, 1.0)))
    new = rides(A2, B1, ("b", "rome", 0, 9.0), ("c", "rome", 5, 5.0))
    table.insert(new, options={"hoodie.datasource.write.insert.drop.duplicates": "true"})
    kept = [A1, B1, ("c", "rome", 5, 5.0)]
    assert held(table) == kept
    table.insert(rides(A2, ("d", "rome", 1, 1.0)), options={"hoodie.datasource.insert.dup.policy": "drop"})
    assert held(table) == [*kept, ("d", "rome", 1, 1.0)]
    with pytest.raises(
        InvalidError, match=r"^The rows to insert have keys that the table already has, for example 'd'"
    ):
        table.insert(
            rides(("d", "rome", 2, 1.0), ("e", "rome", 2, 1.0)),
            options={"hoodie.datasource.insert.dup.policy": "fail"},
        )
    assert held(table) == [*kept, ("d", "rome", 1, 1.0)]
    table.upsert(rides(A2), options={"hoodie.datasource.insert.dup.policy": "fail"})
    assert held(table)[0] == A2
