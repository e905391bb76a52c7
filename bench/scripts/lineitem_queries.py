"""The queries of the suite `tpch`: by DuckDB over what a peer without Spark hands it, or by Spark.

Q3 is TPC-H's without customers: in place of one market segment in five it picks one order priority in five.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NARROW = ["l_extendedprice", "l_discount", "l_version"]
TOTALS = "select count(*), sum(l_extendedprice), sum(l_discount), sum(l_version) from lineitem"
BETWEEN = "select count(*), sum(l_quantity), sum(l_version) from lineitem"
Q1 = """
select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
       sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
       avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
from lineitem where l_shipdate <= date '1998-09-02'
group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus
"""
Q3 = """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_shippriority
from orders join lineitem on l_orderkey = o_orderkey
where o_orderpriority = '1-URGENT' and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
group by l_orderkey, o_shippriority order by revenue desc, l_orderkey limit 10
"""
Q6 = """
select sum(l_extendedprice * l_discount) from lineitem
where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
  and l_discount between 0.05 and 0.07 and l_quantity < 24
"""


def numbers(rows: Iterable[Iterable[Any]]) -> list[float]:
    """Return the numbers of a query's rows, one after the other."""
    return [float(value) for row in rows for value in row if not isinstance(value, str)]


def answer(query: str, **tables: Any) -> list[float]:
    """Return the numbers of a query's rows.

    Args:
        query: one of those above.
        tables: tables or datasets of Arrow by the names that the query uses.
    """
    import duckdb  # Spark answers where there is none

    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        return numbers(connection.sql(query).fetchall())
