"""Names of properties in CREATE TABLE."""

from __future__ import annotations

import pytest

from drawstring.base.errors import InvalidError
from drawstring.spark.sql.options import check_names, table_options


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("primary_key", "primaryKey"),
        ("primaryKeys", "primaryKey"),
        ("option.primaryKy", "primaryKey"),
        ("orderingField", "orderingFields"),
        ("preCombinedField", "preCombineField"),
        ("precombine_field", "preCombineField"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_right_one(given: str, meant: str) -> None:
    with pytest.raises(InvalidError, match=f"{given}.*Did you mean '{meant}'"):
        check_names({"type": "mor", given: "id"})


def test_names_of_hudi_in_any_case_and_those_of_the_user_are_taken() -> None:
    given = {"primarykey": "id", "option.orderingFields": "ts", "owner": "me", "key": "1", "a.primaryKy": "x"}
    check_names(given)
    assert table_options(given) == {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
    }
