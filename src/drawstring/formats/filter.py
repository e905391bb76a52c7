"""Filter the rows of batches by a predicate, and describe the rows of a file that a reader needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.acero as ac
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import types as pt

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.base.resources import BATCH_ROWS
from drawstring.schema.evolution import conform, widened

_INDEX: Final = "\0row"
_PROBLEM: Final = re.compile(r" (?:fails on a|does not fit) ")
"""What follows the condition in the errors about conditions."""

_NAMES: Final[dict[str, tuple[str, ...]]] = {}
"""The columns of expressions, as Arrow prints these: a query has one for all of its files."""

_NAMES_MAX: Final = 64

_FITTING: Final[dict[tuple[str, pa.Schema], pc.Expression]] = {}
"""Expressions, as Arrow prints them and as they are, by the columns that they fit: those of all files do."""

_NESTED: Final = re.compile(r"FieldRef\.Nested\(((?:FieldRef\.Name\([^()]*\) ?)+)\)")
_FIELD: Final = re.compile(r"FieldRef\.Name\(([^()]*)\)")
_NO_MATCH: Final = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)[ )]")


@dataclass(frozen=True, slots=True)
class ConditionSql:
    """The SQL of a condition, for errors: where a condition is evaluated, only its expression is known.

    Attributes:
        printed: the expression as Arrow prints it.
        sql: the text that it was translated from.
    """

    printed: str
    sql: str

    def of(self, error: DrawstringError) -> DrawstringError:
        """Return an error with the SQL instead of the expression, and of what a query adds to it."""
        _, printed, rest = error.message.partition(self.printed)
        problem = _PROBLEM.search(rest) if printed else None
        if problem is None:
            return error
        message = f"The condition {self.sql}{rest[problem.start() :]}"
        return type(error)(message, table=error.table, instant=error.instant, path=error.path)


def where_columns(where: pc.Expression, types: pa.Schema) -> list[str]:
    """Return the top-level columns of an expression, including those that `types` lacks.

    Arrow has no call for this, but the error of a failed binding names the first missing column: bind to a
    growing schema until the binding succeeds.

    Args:
        where: the expression.
        types: types of the known columns; others count as null.

    Raises:
        InvalidError: the expression does not fit the types.
    """
    return list(bound_columns(where, types).names)


def where_leaves(where: pc.Expression, types: pa.Schema) -> list[str]:
    """Return the columns of an expression, and the fields of structs in it by their names with dots.

    A field whose name has parentheses may be missing.

    Args:
        where: the expression.
        types: types of the known columns.

    Raises:
        InvalidError: the expression does not fit the types.
    """
    nested = (".".join(_FIELD.findall(match[1])) for match in _NESTED.finditer(str(where)))
    columns = where_columns(where, types)
    return [*columns, *sorted(set(nested).difference(types.names))]


def matching_rows(rows: pa.Table, where: pc.Expression) -> pa.Table:
    """Return the rows that match an expression.

    Args:
        rows: rows with the expression's columns.
        where: the expression.

    Raises:
        InvalidError: its evaluation fails on a value, for example because a sum overflows.
    """
    source = ac.Declaration("table_source", ac.TableSourceNodeOptions(rows))
    matching = ac.Declaration("filter", ac.FilterNodeOptions(where))
    try:
        # Slices are read on several threads: handing a batch to others takes longer than the condition.
        return ac.Declaration.from_sequence([source, matching]).to_table(use_threads=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"The condition {where} fails on a row ({' '.join(str(error).split())}). Change it."
        ) from error


def with_table_types(present: pa.Schema, types: pa.Schema | None) -> pa.Schema:
    """Return the file's columns with the table's types, and the table's columns that the file lacks."""
    if types is None:
        return present
    known = {*types.names}
    extra = [field for field in present if field.name not in known]
    return pa.schema([*types, *extra])


def bound_columns(where: pc.Expression, types: pa.Schema) -> pa.Schema:
    """Return the columns of an expression with their types; columns without a known type have type null."""
    printed = str(where)
    fields = {name: _typed(name, types) for name in _NAMES.get(printed, ())}
    while True:
        schema = pa.schema(fields.values())
        fitting = _FITTING.get((printed, schema))
        if fitting is not None and fitting.equals(where):
            return schema
        try:
            ds.dataset([], schema=schema).scanner(filter=where)
            _remember(printed, where, schema)
            return schema
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            missing = _NO_MATCH.match(str(error))
            if missing is None or missing[1] in fields:
                raise InvalidError(
                    f"The condition {where} does not fit the columns ({error}). Correct it."
                ) from error
            fields[missing[1]] = _typed(missing[1], types)


def _typed(name: str, types: pa.Schema) -> pa.Field:
    return types.field(name) if name in types.names else pa.field(name, pa.null())


def _remember(printed: str, where: pc.Expression, schema: pa.Schema) -> None:
    for known in (_NAMES, _FITTING):
        if len(known) >= _NAMES_MAX:
            known.clear()
    _NAMES[printed] = tuple(schema.names)
    _FITTING[printed, schema] = where


def keep_rows(
    batch: pa.RecordBatch, where: pc.Expression, bound: pa.Schema, constants: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    """Return the rows of a batch that match a predicate, in which missing columns are null."""
    matching = matching_numbers(batch, where, bound, constants)
    return batch if len(matching) == batch.num_rows else batch.take(matching)


def matching_numbers(
    batch: pa.RecordBatch, where: pc.Expression, bound: pa.Schema, constants: Mapping[str, pa.Scalar]
) -> pa.Array:
    """Return the numbers of the rows of a batch that match a predicate, in which missing columns are null.

    Args:
        batch: rows.
        where: the predicate.
        bound: its columns, with their types in its evaluation; see `bound_columns`.
        constants: columns with a known value.

    Raises:
        InvalidError: its evaluation fails on a value.
    """
    columns = [
        pa.repeat(constants[field.name], batch.num_rows)
        if field.name in constants
        else _condition_column(batch, field)
        for field in bound
    ]
    index = pa.array(np.arange(batch.num_rows, dtype=np.int32))
    facts = pa.table([*columns, index], names=[*bound.names, _INDEX])
    numbers = matching_rows(facts, where).column(_INDEX).combine_chunks()
    return numbers if isinstance(numbers, pa.Array) else pa.concat_arrays(numbers.chunks)


def _condition_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if column.type == field.type:
        return column
    if pt.is_nested(field.type):
        return conform(batch.select([field.name]), pa.schema([field.with_nullable(True)])).column(0)
    return widened(column, field.type)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of record keys, as a condition on one column with which all versions of a record agree.

    Attributes:
        column: the column: `_hoodie_record_key`, or the key column of the table.
        condition: the range.
    """

    column: str
    condition: pc.Expression


@dataclass(frozen=True, slots=True)
class LogRowSelection:
    """The rows of a log file to read; others may be left out.

    Attributes:
        keys: the only record keys whose rows are needed, text; None for all.
        key_range: the range of keys whose rows are needed; None for all.
        batch_rows: largest number of rows in a batch.
        ahead_bytes: size of small row groups that are read together; 0 for one at a time, None for what is
            fastest.
    """

    keys: pa.Array | None = None
    key_range: KeyRange | None = None
    batch_rows: int = BATCH_ROWS
    ahead_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Rows to read of a file in a format other than Parquet; others may be among those that are read.

    Attributes:
        columns: top-level columns to yield, in this order, of which those that the file lacks are left out;
            None for all.
        where: condition of the rows; None for all.
        bound: its columns, with their types in its evaluation.
        constants: those of them of which the values in the file do not count.
        keys: the only record keys that rows of `where` can have; None for any.
        batch_rows: largest number of rows in a batch.
    """

    columns: Sequence[str] | None = None
    where: pc.Expression | None = None
    bound: pa.Schema = field(default_factory=lambda: pa.schema([]))
    constants: Collection[str] = ()
    keys: Sequence[str] | None = None
    batch_rows: int = BATCH_ROWS

    @property
    def are_all(self) -> bool:
        """Whether no row may be left out."""
        return self.where is None and self.keys is None


ALL_ROWS: Final = LogRowSelection()
