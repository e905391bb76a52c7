"""Search for the vectors that are nearest to given ones, by comparing with all.

| function | rows |
|---|---|
| hudi_vector_search(table, column, vector, k[, metric, ...]) | the nearest of the table |
| hudi_vector_search_batch(table, column, table, column, k[, metric, ...]) | those of each row of the second |

After the metric may follow the algorithm (`brute_force`), a condition and the largest distance. Rows have
the columns of the table without the vectors, and `_hudi_distance`, the least first. Metrics are cosine (the
default: 1 less the cosine of the angle), l2 and dot_product (negative).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.base.errors import InvalidError
from drawstring.schema.logical_types import HUDI_TYPE, described_type, is_vector
from drawstring.spark import functions
from drawstring.spark.sql.tables import NamedTable, location_of

_DISTANCE: Final = "_hudi_distance"
_QUERY: Final = "_hudi_query_index"
_QUERY_VECTOR: Final = "_hudi_query_emb"
_QUERY_PREFIX: Final = "_hudi_query_"
_RANK: Final = "_hudi_rank"
_METRICS: Final[Mapping[str, str]] = {
    "cosine": "cosine",
    "l2": "l2",
    "euclidean": "l2",
    "dot_product": "dot_product",
    "inner_product": "dot_product",
}
_ALGORITHM: Final = "brute_force"
_ELEMENTS: Final = (T.FloatType(), T.DoubleType(), T.ByteType())
_BYTE_MIN, _BYTE_MAX = -128, 127


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which vectors are wanted.

    Attributes:
        count: how many, of each vector that is asked for.
        metric: how distances are measured.
        where: a condition of the rows; None for all.
        distance_max: the largest distance; None for any.
    """

    count: int
    metric: str
    where: str | None
    distance_max: float | None

    @staticmethod
    def of(values: Sequence[str | None]) -> _Wanted:
        """Parse the arguments from `k` on.

        Raises:
            InvalidError: one of them has no meaning.
        """
        count, metric, algorithm, where, distance_max = [*values, None, None, None, None][:5]
        if count is None or not count.isdigit() or not int(count):
            raise InvalidError(f"k is how many vectors are wanted, a number from 1 on, not {count}.")
        chosen = _METRICS.get((metric or "cosine").lower())
        if chosen is None:
            raise InvalidError(f"There is no metric {metric!r}. Use cosine, l2 or dot_product.")
        if (algorithm or _ALGORITHM).lower() != _ALGORITHM:
            raise InvalidError(f"There is no algorithm {algorithm!r}. Use {_ALGORITHM}.")
        try:
            limit = None if distance_max is None else float(distance_max)
        except ValueError as error:
            raise InvalidError(f"The greatest distance is a number, not {distance_max!r}.") from error
        return _Wanted(int(count), chosen, (where or "").strip() or None, limit)


def search(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    """Return the rows of `hudi_vector_search`; see the module."""
    column, vector, wanted = values[0], _numbers(values[1]), _Wanted.of(values[2:])
    corpus = functions.read(spark, named.path)
    field = _field(corpus, column)
    _check(field, vector)
    rows = _filtered(corpus, field.name, wanted)
    distance = _distance(rows[f"`{field.name}`"], F.lit(vector), wanted.metric)
    scored = rows.withColumn(_DISTANCE, distance).drop(field.name)
    return _nearest(scored, wanted).orderBy(_DISTANCE).limit(wanted.count)


def search_batch(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    """Return the rows of `hudi_vector_search_batch`; see the module."""
    column, asking, asking_column, wanted = values[0], values[1], values[2], _Wanted.of(values[3:])
    corpus, queries = functions.read(spark, named.path), _rows(spark, asking)
    field, asked = _field(corpus, column), _field(queries, asking_column)
    if _element(field) != _element(asked):
        raise InvalidError(
            f"Column {field.name} has numbers of type {_element(field).simpleString()}, and {asked.name}"
            f" {_element(asked).simpleString()}. Use columns of the same type."
        )
    if None not in (sizes := (_dimension(field), _dimension(asked))) and sizes[0] != sizes[1]:
        raise InvalidError(
            f"Vectors of {field.name} have {sizes[0]} numbers, those of {asked.name} {sizes[1]}."
        )
    queries = queries.where(F.col(f"`{asked.name}`").isNotNull())
    queries = queries.withColumnRenamed(asked.name, _QUERY_VECTOR)
    queries = queries.withColumn(_QUERY, F.monotonically_increasing_id())
    taken = {*corpus.columns}
    queries = queries.toDF(*(f"{_QUERY_PREFIX}{each}" if each in taken else each for each in queries.columns))
    pairs = _filtered(corpus, field.name, wanted).crossJoin(F.broadcast(queries))
    distance = _distance(F.col(f"`{field.name}`"), F.col(_QUERY_VECTOR), wanted.metric)
    scored = _nearest(pairs.withColumn(_DISTANCE, distance).drop(field.name, _QUERY_VECTOR), wanted)
    rank = F.row_number().over(Window.partitionBy(_QUERY).orderBy(_DISTANCE))
    ranked = scored.withColumn(_RANK, rank).where(F.col(_RANK) <= wanted.count).drop(_RANK)
    return ranked.orderBy(_QUERY, _DISTANCE)


def _rows(spark: SparkSession, name: str) -> DataFrame:
    path = name if "/" in name else location_of(spark, name)
    return spark.table(name) if path is None else functions.read(spark, path)


def _numbers(text: str | None) -> list[float]:
    try:
        return [float(each) for each in json.loads(text or "")]
    except (ValueError, TypeError) as error:
        raise InvalidError(
            f"The vector to search for is an array of numbers without null: array(1.0, 2.0), not {text}."
        ) from error


def _field(rows: DataFrame, name: str) -> T.StructField:
    found = next((each for each in rows.schema if each.name.lower() == name.lower()), None)
    if found is None:
        raise InvalidError(f"The table has no column {name}. It has {', '.join(rows.columns)}.")
    if _element(found) not in _ELEMENTS:
        raise InvalidError(
            f"Column {name} is {found.dataType.simpleString()}, and vectors are arrays of float, double or"
            " tinyint. Name another column."
        )
    return found


def _element(field: T.StructField) -> T.DataType:
    return field.dataType.elementType if isinstance(field.dataType, T.ArrayType) else field.dataType


def _dimension(field: T.StructField) -> int | None:
    told = field.metadata.get(HUDI_TYPE)
    kind = None if told is None else described_type(told, field.name)
    return int(kind.list_size) if kind is not None and is_vector(kind) else None


def _check(field: T.StructField, vector: Sequence[float]) -> None:
    dimension = _dimension(field)
    if dimension not in (None, len(vector)):
        raise InvalidError(
            f"The vector to search for has {len(vector)} numbers, those of column {field.name} have"
            f" {dimension}."
        )
    if _element(field) == T.ByteType():
        wrong = [each for each in vector if each != int(each) or not _BYTE_MIN <= each <= _BYTE_MAX]
        if wrong:
            raise InvalidError(
                f"Column {field.name} has whole numbers from {_BYTE_MIN} to {_BYTE_MAX}, and {wrong[0]} is"
                " none of them. Search for such numbers."
            )


def _filtered(corpus: DataFrame, column: str, wanted: _Wanted) -> DataFrame:
    rows = corpus.where(corpus[f"`{column}`"].isNotNull())
    if wanted.where is None:
        return rows
    try:
        return rows.where(wanted.where)
    except AnalysisException as error:
        raise InvalidError(f"The condition {wanted.where!r} cannot be used: {error}") from error


def _nearest(scored: DataFrame, wanted: _Wanted) -> DataFrame:
    return scored if wanted.distance_max is None else scored.where(F.col(_DISTANCE) <= wanted.distance_max)


def _distance(first: Column, second: Column, metric: str) -> Column:
    first, second = first.cast("array<double>"), second.cast("array<double>")
    told = F.concat(
        F.lit("Vectors have different numbers of dimensions: "), F.size(first), F.lit(" and "), F.size(second)
    )
    distance = _MEASURES[metric](first, second)
    return F.when(F.size(first) == F.size(second), distance).otherwise(F.raise_error(told).cast("double"))


def _sum(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0.0), lambda total, each: total + each)


def _dot(first: Column, second: Column) -> Column:
    return _sum(F.zip_with(first, second, lambda one, other: one * other))


def _l2(first: Column, second: Column) -> Column:
    return F.sqrt(_sum(F.zip_with(first, second, lambda one, other: (one - other) * (one - other))))


def _cosine(first: Column, second: Column) -> Column:
    lengths = F.sqrt(_dot(first, first)) * F.sqrt(_dot(second, second))
    distance = F.least(F.lit(2.0), F.greatest(F.lit(0.0), 1.0 - _dot(first, second) / lengths))
    return F.when(lengths == 0.0, F.lit(1.0)).otherwise(distance)


_MEASURES: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "cosine": _cosine,
    "l2": _l2,
    "dot_product": lambda first, second: -_dot(first, second),
}
