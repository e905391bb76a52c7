"""Partitions in statements: values of partition columns as Spark has them, and partition paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from drawstring.base.cached import cached_property
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import listing_of
from drawstring.filegroups.write.base_writer import ensure_partition, partition_created, renew_partition
from drawstring.formats.partition_match import typed
from drawstring.keygen.keys import KeyGenerator
from drawstring.keygen.path_values import path_values
from drawstring.keygen.paths import split_path
from drawstring.keygen.texts import is_moment
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action
from drawstring.query.facts import TableFacts
from drawstring.table import Table
from drawstring.timeline.instants import instant_time
from drawstring.write.delete_partition import matching
from drawstring.write.facts import named_like_folders

_ANY: Final = "*"
_EQUAL: Final = ("=", "<=>")
_AND: Final = "AND"
_IS_NULL: Final = "IS_NULL"
_STORED: Final[dict[pa.DataType, pa.DataType]] = {
    pa.date32(): pa.int32(),
    pa.timestamp("us", "UTC"): pa.int64(),
    pa.timestamp("us"): pa.int64(),
}
"""Types whose values Spark stores as numbers."""


def partitions_last(columns: StructType, by: Sequence[str]) -> tuple[StructType, list[str]]:
    """Return columns in the order of SQL: those of PARTITIONED BY come last, in its order.

    Args:
        columns: columns of a table.
        by: its partition columns, in any case; those that are no columns are left out.

    Returns:
        The columns, and the names of the partition columns as the columns spell them.
    """
    of_name = {each.name.lower(): each for each in columns}
    last = [of_name[name.lower()] for name in by if name.lower() in of_name]
    return StructType([each for each in columns if each not in last] + last), [each.name for each in last]


def value_of(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """Return a value of Spark as one of Arrow.

    Args:
        text: the value as text: of dates the days, of timestamps the microseconds since 1970.
        kind: type of the column.
    """
    if text is None:
        return pa.scalar(None, kind)
    stored = pa.array([text], pa.string()).cast(_STORED.get(kind, kind))
    return stored.cast(kind)[0]


def static_values(where: Sequence[Mapping[str, Any]], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of the partition columns that an overwrite names.

    Args:
        where: what it overwrites, as trees of columns, values and operators.
        schema: columns of the table.

    Raises:
        UnsupportedError: it is no conjunction of equalities of columns.
    """
    values: dict[str, pa.Scalar] = {}
    for each in where:
        operands = each.get("of", ())
        if each.get("name") == _AND:
            values |= static_values(operands, schema)
            continue
        column = next((".".join(one["column"]) for one in operands if "column" in one), None)
        literal = next((one for one in operands if "value" in one), None)
        is_null = each.get("name") == _IS_NULL
        if column is None or not (is_null or (each.get("name") in _EQUAL and literal is not None)):
            raise UnsupportedError(
                "An overwrite replaces whole partitions, named by equalities such as city = 'oslo'. Use"
                " DELETE and INSERT for other conditions."
            )
        field = schema.field(next(name for name in schema.names if name.lower() == column.lower()))
        values[field.name] = value_of(None if literal is None else literal["value"], field.type)
    return values


def path_of_values(config: TableConfig, values: Mapping[str, pa.Scalar], schema: pa.Schema) -> str:
    """Return the partition path of values of the partition columns, or of the first ones of them.

    Args:
        config: the table.
        values: values by column, of all partition columns or of the first ones.
        schema: columns of the table.
    """
    fields = config.partition_fields
    named = fields[: len(values)]
    row = pa.RecordBatch.from_arrays(
        [
            pa.array([values[name]], schema.field(name).type)
            if name in values
            else pa.nulls(1, schema.field(name).type)
            for name in fields
        ],
        names=list(fields),
    )
    whole = KeyGenerator(config).partition_paths(row)[0].as_py()
    return "/".join(str(whole).split("/")[: len(named)]) if len(named) < len(fields) else str(whole)


def paths_of_values(facts: TableFacts, values: Mapping[str, pa.Scalar]) -> tuple[str, ...]:
    """Return the partition paths of values of any partition columns, for what is at them and below them.

    Raises:
        UnsupportedError: a column is no partition column, or its folders have rows with several values.
    """
    config, schema = facts.config, facts.schema
    fields = config.partition_fields
    if formatted := sorted({*values} & {*config.formatted_partition_fields}):
        raise UnsupportedError(
            f"A folder has the rows of many values of {', '.join(formatted)}, which the key generator"
            " formats, so a value does not name what an overwrite replaces. SET"
            " hoodie.datasource.write.operation = insert_overwrite and INSERT INTO, which replaces the"
            " folders of the rows; or DELETE and INSERT."
        )
    if not set(values) <= set(fields):
        raise UnsupportedError(
            f"The partition columns are {', '.join(fields) or 'none'}, but the statement names"
            f" {', '.join(values)}. Name partition columns only."
        )
    if set(fields[: len(values)]) == set(values):
        return (path_of_values(_naming(facts), values, schema),)
    wanted = {name: text_of(value) for name, value in values.items()}
    return tuple(
        path for path, texts in _texts_of(facts) if all(texts[name] == text for name, text in wanted.items())
    )


def _naming(facts: TableFacts) -> TableConfig:
    """Return a configuration that names partition folders like those that the table has."""
    config, schema = facts.config, facts.schema
    named = (name for name in config.partition_fields if name in schema.names)
    if not any(is_moment(schema.field(name).type) for name in named):
        return config
    return named_like_folders(config, schema, listing_of(facts.storage).partitions())


def _texts_of(facts: TableFacts) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the stored partitions, with the texts of their values by column."""
    for path in listing_of(facts.storage).partitions():
        values = typed(path_values(path, facts.config, facts.schema), facts.schema)
        fields = facts.config.partition_fields
        yield path, {name: text_of(values[name]) if name in values else None for name in fields}


def partitions_of(table: Table, wanted: Mapping[str, str | None]) -> list[list[str | None]]:
    """Return the partitions of a table that have rows or are empty folders, by their values.

    The storage is listed: a partition that was added and has no rows yet is in no metadata table.

    Args:
        table: the table.
        wanted: values by column that partitions must have, as texts.

    Returns:
        The texts of the values of the partition columns, which Spark reads.
    """
    facts = table._facts()
    present = _Present(facts)
    return [
        list(texts.values())
        for path, texts in _texts_of(facts)
        if all(texts[name] == text for name, text in wanted.items()) and present.has(path)
    ]


def shown_partitions(table: Table, wanted: Mapping[str, str | None], timezone: str) -> list[str]:
    """Return the partitions of a table as `SHOW PARTITIONS` names them: by the paths of their folders.

    As in Hudi, folders yyyy/mm/dd of dates are named by column and date.

    Args:
        table: the table; without partition columns it has no partitions.
        wanted: values by column that partitions must have, as texts; null is None.
        timezone: name of the time zone of timestamps in texts.

    Raises:
        InvalidError: a column is no partition column.
    """
    facts = table._facts()
    fields = facts.config.partition_fields
    if not fields:
        return []
    spelled = {field.lower(): field for field in fields}
    if unknown := [name for name in wanted if name.lower() not in spelled]:
        raise InvalidError(
            f"{', '.join(unknown)} is no partition column. The partition columns are {', '.join(fields)}."
        )
    values = {spelled[name.lower()]: text for name, text in wanted.items()}
    paths, present = listing_of(facts.storage).partitions(), _Present(facts)
    shown = [path for path in paths if _has_values(facts, path, values, timezone) and present.has(path)]
    if facts.config.has_slashed_dates:
        return [f"{fields[0]}={path.replace('/', '-')}" for path in shown]
    return shown


def _has_values(facts: TableFacts, path: str, wanted: Mapping[str, str | None], timezone: str) -> bool:
    """Return whether a partition has values, by the texts in its path or by what these mean."""
    config, schema = facts.config, facts.schema
    fields = config.partition_fields
    plain = path.replace("/", "-") if config.has_slashed_dates else path
    texts = split_path(plain, fields, hive_style=config.hive_style, url_encode=config.url_encode)
    named = dict(zip(fields, texts or (), strict=False))
    values = typed(path_values(path, config, schema), schema) if wanted else {}
    return all(
        (name in named and named[name] == text)
        or (text is not None and name in values and _means(text, values[name], timezone))
        for name, text in wanted.items()
    )


def _means(text: str, value: pa.Scalar, timezone: str) -> bool:
    """Return whether a text of a statement is a value of a partition column."""
    kind = value.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            local = pa.scalar(text).cast(pa.timestamp(kind.unit))
            return bool(pc.assume_timezone(local, timezone).cast(kind) == value)
        return bool(pa.scalar(text).cast(kind) == value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


class _Present:
    """The partitions that a table has, among those that are stored.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts

    def has(self, path: str) -> bool:
        """Return whether a partition has file groups, or was added and has never had any."""
        view = self._facts.view
        return bool(view.slices(path)) or not (view.stored_groups(path) or self.was_dropped(path))

    def was_dropped(self, path: str) -> bool:
        """Return whether an empty partition was dropped, and not added again since."""
        dropped = self._drops.get(path)
        return dropped is not None and partition_created(self._facts.storage, path) < dropped

    @cached_property
    def _drops(self) -> Mapping[str, str]:
        """Time of the newest drop of each partition that was dropped."""
        drops: dict[str, str] = {}
        for each in self._facts.timeline.completed_of(Action.REPLACE_COMMIT):
            commit = self._facts.store.commit_metadata(each)
            if commit.operation == WriteOperation.DELETE_PARTITION:
                for path in commit.replaced:
                    drops[path] = max(each.requested, drops.get(path, ""))
        return drops


def text_of(value: pa.Scalar) -> str | None:
    """Return a value as text that Spark reads; the inverse of `value_of`."""
    if not value.is_valid:
        return None
    return str(value.cast(_STORED.get(value.type, value.type)).cast(pa.string()).as_py())


def has_partition(table: Table, texts: Sequence[str | None]) -> bool:
    """Return whether a table has a partition by the texts of all its values, in which `*` is a pattern."""
    facts = table._facts()
    stored, present = frozenset(listing_of(facts.storage).partitions()), _Present(facts)
    return any(path in stored and present.has(path) for path in paths_like(table, texts))


def paths_like(table: Table, texts: Sequence[str | None]) -> list[str]:
    """Return the path of a partition by the texts of all its values, in which `*` stands for any text."""
    path = path_of_texts(table, texts)
    if not any(text and _ANY in text for text in texts):
        return [path]
    return matching([path], listing_of(table._facts().storage).partitions())


def path_of_texts(table: Table, texts: Sequence[str | None]) -> str:
    """Return the path of a partition by the texts of all its values."""
    fields, schema = table.config.partition_fields, table.schema
    values = {name: value_of(text, schema.field(name).type) for name, text in zip(fields, texts, strict=True)}
    return path_of_values(_naming(table._facts()), values, schema)


def add_partitions(table: Table, partitions: Sequence[Sequence[str | None]]) -> None:
    """Create the folders of partitions that have no rows yet; those of dropped ones may be there already."""
    context, facts = table._context, table._facts()
    present = _Present(facts)
    instant = instant_time(context.clock.now_ms(), table.config.timezone)
    for texts in partitions:
        path = path_of_texts(table, texts)
        add = renew_partition if present.was_dropped(path) else ensure_partition
        add(context.storage, path, instant)
