"""Run DDL statements: `ALTER TABLE`, `CREATE INDEX`, `DROP INDEX`, `SHOW INDEXES`, and partitions.

`ALTER TABLE` of columns and properties:

| change | how |
|---|---|
| ADD COLUMNS at the end, also of structs; a wider type; DROP NOT NULL | a commit without rows |
| RENAME, DROP, move, TYPE STRING; all changes after one of them | the same, and a version of the schema |
| REPLACE COLUMNS | the drops, additions and moves that lead there, in one commit |
| comments | in the schema of the commit, and in the catalog |
| SET, UNSET TBLPROPERTIES | in the catalog; the storage layout in the table, too |
| RENAME TO | in the catalog, and `hoodie.table.name` in the table |
| defaults of columns | refused: they cannot be stored |

Indexes of a table of the catalog:

| USING | index |
|---|---|
| record_index | of record keys |
| secondary_index, or nothing, with a column | of the values of a column |
| column_stats | with `OPTIONS (expr = ...)`, of an expression |
| bloom_filters | of the values of a column, or of an expression |

Without USING, an index that is named record_index, column_stats or bloom_filters is the whole table's.

Partitions in statements: values of partition columns as Spark has them, and partition paths.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.lazy import cached_property
from drawstring.config.options.write_options import WriteOptions, options_of
from drawstring.config.table.storage_layout import STORAGE_LAYOUT
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import (
    ensure_partition_metadata,
    partition_created,
    rewrite_partition_metadata,
)
from drawstring.filegroups.file_system_view import storage_listing
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.keygen.partition_path import path_values, split_path
from drawstring.keygen.texts import is_moment
from drawstring.metadata.partitions.expression_index import SETTINGS
from drawstring.model.commit import WriteOperation
from drawstring.model.index import TableIndex
from drawstring.model.instant import Action
from drawstring.query.table_state import TableFacts
from drawstring.schema.fields import constants_of
from drawstring.schema.internal_schema import ChangeKind, ColumnChange, changed, commented, replacement
from drawstring.services.alter import alter_columns, check_names, rename
from drawstring.services.indexing import index_settings
from drawstring.spark.sql.options import (
    check_reads,
    is_stored,
    session_options,
    table_options,
)
from drawstring.spark.sql.statement import StatementTable
from drawstring.spark.workers.rows import commented_schema, without_lengths
from drawstring.table import Table
from drawstring.timeline.timeline import instant_time
from drawstring.write.delete_partition import matching
from drawstring.write.executor import write_source
from drawstring.write.facts import named_like_folders
from drawstring.write.plan import VERBS
from drawstring.write.source import InputRows

_ON_READ: Final = "hoodie.schema.on.read.enable"
_PROPERTIES: Final = ("SetProperty", "RemoveProperty")
_KINDS: Final[Mapping[str, ChangeKind]] = {
    "AddColumn": ChangeKind.ADD,
    "UpdateColumnType": ChangeKind.TYPE,
    "UpdateColumnNullability": ChangeKind.NULLABLE,
    "RenameColumn": ChangeKind.RENAME,
    "DeleteColumn": ChangeKind.DROP,
    "UpdateColumnPosition": ChangeKind.MOVE,
    "UpdateColumnComment": ChangeKind.COMMENT,
}
_BY_VERSIONS: Final = ("RenameColumn", "DeleteColumn", "UpdateColumnPosition")
_DONE: Final[Mapping[str, str]] = {
    "RenameColumn": "Renaming columns",
    "DeleteColumn": "Dropping columns",
    "UpdateColumnPosition": "Moving columns",
    "AddColumn": "Adding columns elsewhere than at the end",
    "UpdateColumnType": "Making texts of a column",
}


def check_alter(table: StatementTable, changes: Sequence[Mapping[str, Any]]) -> None:
    """Check that changes of a table can be carried out.

    Args:
        table: the table.
        changes: `kind` of each by Spark's name, `name` of the column or property; of a column its `path`, and
            `type`, `place` (empty for the first one), `value` (its new name), `comment` or `has_default`.

    Raises:
        InvalidError: a property describes the table, or there is no such option.
        UnsupportedError: columns are to be changed in a way that files or readers do not know.
    """
    if _is_replacement(changes) and not _has_versions(table):
        raise _needs_schema_on_read("REPLACE COLUMNS", table)
    for change in changes:
        kind, name = change["kind"], change["name"]
        if kind in _PROPERTIES:
            _check_property(table, name, change.get("value") or "")
        elif kind not in _KINDS or change.get("has_default"):
            raise UnsupportedError(
                f"Column {name} cannot have a default value: the table does not store it, and stored rows"
                " have null in a new column. Leave it out.",
                table=table.path,
            )
        elif _needs_versions(change) and not _has_versions(table):
            raise _needs_schema_on_read(f"{_DONE[kind]} ({name})", table)


def _needs_schema_on_read(what: str, table: StatementTable) -> UnsupportedError:
    return UnsupportedError(
        f"{what} needs Hudi's schema on read, with which readers find columns in old files by their ids. SET"
        f" {_ON_READ}=true, also where Apache Hudi reads the table from then on, or write the rows to a new"
        " table.",
        table=table.path,
    )


def _is_replacement(changes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the changes are those of REPLACE COLUMNS: Spark drops all columns, and adds others."""
    return {"DeleteColumn", "AddColumn"} <= {each["kind"] for each in changes}


def _needs_versions(change: Mapping[str, Any]) -> bool:
    becomes_text = change["kind"] == "UpdateColumnType" and pt.is_string(_type(change))
    return change["kind"] in _BY_VERSIONS or change.get("place") is not None or becomes_text


def _has_versions(table: StatementTable) -> bool:
    """Return whether schema on read is switched on, or was used already."""
    given = {**table_options(table.properties), **session_options(table.spark)}
    is_on = given.get(_ON_READ, "").strip().lower() == "true"
    return is_on or table.open()._calls.facts().config.history is not None


def rename_table(table: StatementTable, name: str) -> None:
    """Store the new name of a table in its properties, as Hudi does.

    Raises:
        ConflictError: another writer holds the table.
    """
    target = table.for_writes()
    with target._errors():
        rename(target._context, name, options_of("insert", table.write_options({})))


def prepare_alter(table: StatementTable, changes: Sequence[Mapping[str, Any]]) -> None:
    """Check changes as `check_alter`, and make those of properties that the table itself stores.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: as of `check_alter`; or the layout of the files cannot become the one asked for.
        UnsupportedError: as of `check_alter`.
    """
    check_alter(table, changes)
    for change in changes:
        if change["name"] == STORAGE_LAYOUT and change["kind"] == "SetProperty":
            table.for_writes().versions.set_storage_layout(change["value"])


def _check_property(table: StatementTable, name: str, value: str) -> None:
    if name == STORAGE_LAYOUT and value:
        return
    for key in table_options({name: value or "cow"}):
        if is_stored(key):
            raise InvalidError(
                f"Property {name} describes the table, which was created with a value of its own. Create"
                " another table to change it.",
                table=table.path,
            )
        if value:
            WriteOptions.parse({key: value})
            check_reads({key: value})


def alter(table: StatementTable, given: Mapping[str, Any]) -> None:
    """Change the columns of a table, by a commit without rows. As in Hudi, no table service follows it.

    Args:
        table: the table.
        given: `changes` as of `check_alter`, and `schema`, all columns after them as Spark's JSON.

    Raises:
        InvalidError: there is no such column, or its type cannot become the new one.
    """
    target, changes = table.for_writes(), given["changes"]
    options = table.write_options({"hoodie.allow.empty.commit": "true"})
    parsed = options_of("insert", options)
    with target._errors():
        of_columns = [each for each in _changes(target, changes) if not _is_nullable_already(target, each)]
        if not of_columns:
            return
        for change in of_columns:
            check_names(change)
        by_versions = any(map(_needs_versions, changes))
        if by_versions or target._calls.facts().config.history is not None or _has_comment(of_columns):
            alter_columns(target._context, of_columns, parsed, by_versions=by_versions)
            return
        rows = commented_schema(
            StructType.fromJson(json.loads(without_lengths(given["schema"])))
        ).empty_table()
        context, source = target._rows_of(rows)
        write_source(context, InputRows(source), VERBS["insert"], parsed)


def _changes(target: Table, told: Sequence[Mapping[str, Any]]) -> list[ColumnChange]:
    """Return the changes of columns that a statement asks for."""
    asked = [_change(each) for each in told if each["kind"] in _KINDS]
    comments = [
        commented(each["name"], each["comment"])
        for each in told
        if each["kind"] == "AddColumn" and each.get("comment")
    ]
    if not _is_replacement(told):
        return asked + comments
    wanted = pa.schema(
        [pa.field(each.column, each.type) for each in asked if each.kind is ChangeKind.ADD and each.type]
    )
    return replacement(target.schema, wanted, target.config.partition_fields) + comments


def _is_nullable_already(target: Table, change: ColumnChange) -> bool:
    return change.kind is ChangeKind.NULLABLE and changed(target.schema, change) == target.schema


def _has_comment(changes: Sequence[ColumnChange]) -> bool:
    return any(each.kind is ChangeKind.COMMENT for each in changes)


def _change(told: Mapping[str, Any]) -> ColumnChange:
    kind, place, comment = _KINDS[told["kind"]], told.get("place"), ""
    if kind is ChangeKind.COMMENT:
        comment = told.get("comment") or ""
    return ColumnChange(kind, tuple(told["path"]), told.get("value") or "", _type(told), place, comment)


def _type(told: Mapping[str, Any]) -> pa.DataType | None:
    if "type" not in told:
        return None
    field = {"name": "c", "type": json.loads(without_lengths(told["type"])), "nullable": True, "metadata": {}}
    return commented_schema(StructType.fromJson({"type": "struct", "fields": [field]})).field(0).type


_LOG: Final = logging.getLogger("drawstring")
_TYPE: Final = "type"
_EXPRESSION: Final = "expr"
_IDENTITY: Final = "identity"
_SECONDARY: Final = "secondary_index"
_OF_EXPRESSION: Final = "expr_index"
_RECORD_INDEX: Final = "record_index"
_OF_FILES: Final = (_RECORD_INDEX, "column_stats", "bloom_filters")
_EXPRESSION_TYPES: Final = ("column_stats", "bloom_filters")
_NAME: Final = "name"
_COLUMNS: Final = "columns"
INDEX_COLUMNS: Final = "index_name string, index_type string, col_name string"
"""Columns of `SHOW INDEXES`, as Hudi has them."""


def create_index(table: StatementTable, given: Mapping[str, Any]) -> None:
    """Build an index.

    Args:
        table: the table.
        given: `name`, `type`, `columns` as trees, and options.

    Raises:
        InvalidError: there is such an index, no such column or function, or no record index for a secondary
            index.
        UnsupportedError: there is no such type of index.
    """
    name = given[_NAME]
    kind = (given.get(_TYPE) or (name if name in _OF_FILES else _SECONDARY)).lower()
    columns = [".".join(each["column"]) for each in given[_COLUMNS]]
    if kind not in (_SECONDARY, *_OF_FILES):
        raise UnsupportedError(
            f"There is no index of type {kind}. Use {', '.join((_SECONDARY, *_OF_FILES))}.", table=table.path
        )
    is_of_expression = _EXPRESSION in given or (kind == "bloom_filters" != name)
    if kind == "column_stats" != name and not is_of_expression:
        raise InvalidError(
            f"Index {name} has no expression: the statistics of all columns are one index. Give OPTIONS (expr"
            " = 'year'), or create the whole index with CREATE INDEX column_stats ON the table.",
            table=table.path,
        )
    if is_of_expression and kind not in _EXPRESSION_TYPES:
        raise InvalidError(
            f"An index of an expression is of type {' or '.join(_EXPRESSION_TYPES)}, not {kind}. Name one of"
            " them behind USING.",
            table=table.path,
        )
    if kind == _RECORD_INDEX:
        _check_key(table, columns)
    if (is_of_expression or kind == _SECONDARY) and len(columns) != 1:
        raise InvalidError(
            f"Index {name} is of one column, and {len(columns)} are given. Name one.", table=table.path
        )
    settings, others = index_settings({key: given[key] for key in given.keys() - {_NAME, _TYPE, _COLUMNS}})
    options = table.write_options(table_options(others))
    if is_of_expression:
        _check_settings(table, others)
        settings.setdefault(_EXPRESSION, _IDENTITY)
        table.for_writes().indexes.create(name, columns[0], using=kind, options={**options, **settings})
    elif kind == _SECONDARY:
        table.for_writes().indexes.create(name, columns[0], options=options)
    else:
        table.for_writes().indexes.create(kind, options=options)


def _check_settings(table: StatementTable, others: Mapping[str, Any]) -> None:
    """Check that the options of an expression index are settings of functions, or options of the table."""
    unknown = [key for key in others if not key.startswith(("hoodie.", "drawstring."))]
    if unknown:
        raise InvalidError(
            f"An index of an expression has no option {unknown[0]!r}. The options of functions are"
            f" {', '.join(sorted(SETTINGS))}.",
            table=table.path,
        )


def _check_key(table: StatementTable, columns: Sequence[str]) -> None:
    """Check that the columns of a record index are those of the record key, which it is of."""
    key = table.open().config.record_key_fields
    if sorted(map(str.lower, columns)) != sorted(map(str.lower, key)) and key:
        raise InvalidError(
            f"A record index is of the record key ({', '.join(key)}), not of {', '.join(columns)}. Name the"
            " columns of the key, or create a secondary index: CREATE INDEX name ON table (column).",
            table=table.path,
        )


def drop_index(table: StatementTable, name: str) -> None:
    """Delete an index."""
    table.for_writes().indexes.drop(name, options=table.write_options({}))


def has_index(table: StatementTable, name: str) -> bool:
    """Return whether a table has an index of a name, given with or without its prefix."""
    names = (name, f"{_SECONDARY}_{name}", f"{_OF_EXPRESSION}_{name}")
    return any(each.name in names for each in table.open().indexes.list())


def index_row(index: TableIndex) -> tuple[str, str, str]:
    """Return an index as a row of `SHOW INDEXES`; log why queries do not use it, if they do not."""
    if index.unused is not None:
        _LOG.warning("Queries do not use the index %s. %s", index.name, index.unused)
    kind = index.using or index.kind
    return index.name, kind, ",".join(index.columns) if index.name != kind else ""


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
    return named_like_folders(config, schema, storage_listing(facts.storage).partitions())


def _texts_of(facts: TableFacts) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the stored partitions, with the texts of their values by column."""
    for path in storage_listing(facts.storage).partitions():
        values = constants_of(path_values(path, facts.config, facts.schema), facts.schema)
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
    facts = table._calls.facts()
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
    facts = table._calls.facts()
    fields = facts.config.partition_fields
    if not fields:
        return []
    spelled = {field.lower(): field for field in fields}
    if unknown := [name for name in wanted if name.lower() not in spelled]:
        raise InvalidError(
            f"{', '.join(unknown)} is no partition column. The partition columns are {', '.join(fields)}."
        )
    values = {spelled[name.lower()]: text for name, text in wanted.items()}
    paths, present = storage_listing(facts.storage).partitions(), _Present(facts)
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
    values = constants_of(path_values(path, config, schema), schema) if wanted else {}
    return all(
        (name in named and named[name] == text)
        or (text is not None and name in values and _is_value(text, values[name], timezone))
        for name, text in wanted.items()
    )


def _is_value(text: str, value: pa.Scalar, timezone: str) -> bool:
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
    facts = table._calls.facts()
    stored, present = frozenset(storage_listing(facts.storage).partitions()), _Present(facts)
    return any(path in stored and present.has(path) for path in paths_like(table, texts))


def paths_like(table: Table, texts: Sequence[str | None]) -> list[str]:
    """Return the path of a partition by the texts of all its values, in which `*` stands for any text."""
    path = path_of_texts(table, texts)
    if not any(text and _ANY in text for text in texts):
        return [path]
    return matching([path], storage_listing(table._calls.facts().storage).partitions())


def path_of_texts(table: Table, texts: Sequence[str | None]) -> str:
    """Return the path of a partition by the texts of all its values."""
    fields, schema = table.config.partition_fields, table.schema
    values = {name: value_of(text, schema.field(name).type) for name, text in zip(fields, texts, strict=True)}
    return path_of_values(_naming(table._calls.facts()), values, schema)


def add_partitions(table: Table, partitions: Sequence[Sequence[str | None]]) -> None:
    """Create the folders of partitions that have no rows yet; those of dropped ones may be there already."""
    context, facts = table._context, table._calls.facts()
    present = _Present(facts)
    instant = instant_time(context.clock.now_ms(), table.config.timezone)
    for texts in partitions:
        path = path_of_texts(table, texts)
        add = rewrite_partition_metadata if present.was_dropped(path) else ensure_partition_metadata
        add(context.storage, path, instant)
