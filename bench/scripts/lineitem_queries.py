"""The queries of the suite `tpch`, which DuckDB answers over what a peer hands it as lineitem."""

from __future__ import annotations

from typing import Any

import duckdb

NARROW = ["l_extendedprice", "l_discount", "l_version"]
TOTALS = "select count(*), sum(l_extendedprice), sum(l_discount), sum(l_version) from lineitem"
Q1 = """
select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
       sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
       avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
from lineitem where l_shipdate <= date '1998-09-02'
group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus
"""
Q6 = """
select sum(l_extendedprice * l_discount) from lineitem
where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
  and l_discount between 0.05 and 0.07 and l_quantity < 24
"""


def answer(lineitem: Any, query: str) -> list[float]:
    """Return the numbers of a query's rows.

    Args:
        lineitem: a table or a dataset of Arrow.
        query: one of those above.
    """
    with duckdb.connect() as connection:
        connection.register("lineitem", lineitem)
        rows = connection.sql(query).fetchall()
    return [float(value) for row in rows for value in row if not isinstance(value, str)]
