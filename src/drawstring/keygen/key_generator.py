"""Make record keys and partition paths from columns (specification: Keys).

| generator | record key | partition path |
|---|---|---|
| SIMPLE | `value` | `value` |
| COMPLEX | `field:value,field:value`, also for one field | values joined by `/` |
| NON_PARTITION | `value`; several fields as COMPLEX | empty |
| GLOBAL_DELETE | as COMPLEX | empty |
| TIMESTAMP | `value` | the value as a date |
| CUSTOM | `value`; several fields as COMPLEX | values and dates joined by `/` |
| AUTO | generated during the write (`filegroups.base_file_writer`) | as the others |
| USER_PROVIDED | result of a registered function | result of the function |

A `PathPart` formats each partition column in the path.

Record keys that name columns of whole numbers, such as `order:4711,line:3` (`number_keys`): all rows with
equal numbers of digits are written at once, as columns of bytes. That takes a quarter of the time of
formatting and joining the numbers as texts.

    order:  4711  ,line:  3
    order:  2815  ,line:  7
      │      └ digits, four at a time from a table of them
      └ the same in all rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import DrawstringError, InvalidError, MissingKeyError, UnsupportedError
from drawstring.base.resources import HFILE_KEY_BYTES_MAX
from drawstring.base.text_format import DIGITS, WIDTH_MAX, pluralize
from drawstring.config.table.key_settings import (
    BARE_SINGLE_KEY,
    SINGLE_KEY_ENCODING,
    SLASHED_DATES,
    TEXTS_OF_TIMESTAMPS,
    PathTimestamps,
    timestamp_settings,
)
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.config.table_types import KeyFunction
from drawstring.keygen.partition_path import DEFAULT_PARTITION, escape
from drawstring.keygen.texts import is_moment, java_text, key_text, map_distinct, sql_text, timestamp_text
from drawstring.keygen.timestamps import TimestampTexts
from drawstring.model.files import HOODIE_FOLDER, PARTITION_METADATA
from drawstring.schema.fields import RECORD_KEY, type_at

Array: TypeAlias = "np.ndarray[Any, Any]"

_ROWS_MIN: Final = 1_024
"""Number of rows from which on this takes less time than joining texts."""

_RUN_ROWS_MIN: Final = 64
"""Average number of rows with equally many digits from which on it does."""

_BYTES_MAX: Final = (1 << 31) - 1
_POWERS: Final = np.array([10**digits for digits in range(1, 19)])
_DIGITS_MAX: Final = 19
_COLUMNS_MAX: Final = 14
"""Number of columns whose widths fit into one whole number of 64 bits."""

_SIGNED: Final = (pt.is_int64, pt.is_int32, pt.is_int16, pt.is_int8)


def number_keys(columns: Sequence[pa.Array], fields: Sequence[str]) -> pa.Array | None:
    """Return the record keys of rows; None if they are to be joined of texts.

    Args:
        columns: the key columns.
        fields: their names.
    """
    rows = len(columns[0])
    if len(columns) > _COLUMNS_MAX or rows < _ROWS_MIN:
        return None
    if any(column.null_count or not _is_signed(column.type) for column in columns):
        return None
    numbers = [column.to_numpy().astype(np.int64, copy=False) for column in columns]
    ends = [(int(each.min()), int(each.max())) for each in numbers]
    size_bytes_max = rows * sum(len(field) * 4 + 2 + _DIGITS_MAX for field in fields)
    if min(low for low, _ in ends) < 0 or size_bytes_max > _BYTES_MAX:
        return None
    names = [f"{',' if at else ''}{field}:".encode() for at, field in enumerate(fields)]
    if all(len(str(low)) == len(str(high)) for low, high in ends):
        return _of_equal_widths(numbers, names, [len(str(high)) for _, high in ends])
    return _of_several_widths(numbers, names)


def _is_signed(kind: pa.DataType) -> bool:
    return any(matches(kind) for matches in _SIGNED)


def _of_several_widths(numbers: Sequence[Array], names: Sequence[bytes]) -> pa.Array | None:
    rows = len(numbers[0])
    widths = [np.searchsorted(_POWERS, each, side="right") + 1 for each in numbers]
    codes = np.zeros(rows, np.int64)
    for each in widths:
        codes = codes * (_DIGITS_MAX + 1) + each
    starts_of = np.unique(codes)
    if len(starts_of) * _RUN_ROWS_MIN > rows:
        return None
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], starts_of)
    runs = []
    for members in np.split(order, starts[1:]):
        run_widths = [int(each[members[0]]) for each in widths]
        runs.append(_of_equal_widths([each[members] for each in numbers], names, run_widths))
    places = np.empty(rows, np.int64)
    places[order] = np.arange(rows)
    return pa.concat_arrays(runs).take(pa.array(places))


def _of_equal_widths(numbers: Sequence[Array], names: Sequence[bytes], widths: Sequence[int]) -> pa.Array:
    rows = len(numbers[0])
    parts: list[Any] = []
    for each, name, width in zip(numbers, names, widths, strict=True):
        parts += [np.void(name), *_digits(each, width)]
    layout = np.dtype([(f"f{at}", part.dtype) for at, part in enumerate(parts)])
    data = pa.allocate_buffer(layout.itemsize * rows)
    texts = np.frombuffer(data, layout, rows)
    for at, part in enumerate(parts):
        texts[f"f{at}"] = part
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(layout.itemsize)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), data)


def _digits(numbers: Array, width: int) -> Iterator[Array]:
    """Yield the digits of numbers of a width, the first ones first."""
    if width > WIDTH_MAX:
        upper = numbers // 10**WIDTH_MAX
        yield from _digits(upper, width - WIDTH_MAX)
        numbers, width = numbers - upper * 10**WIDTH_MAX, WIDTH_MAX
    yield DIGITS[width - 1][numbers]


_RESERVED: Final = frozenset({HOODIE_FOLDER, PARTITION_METADATA})


class PathPart(Protocol):
    """Formats one part of partition paths."""

    @property
    def field(self) -> str:
        """The partition column."""
        ...

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that are not supported in paths; see `KeyGenerator.check_columns`."""
        ...

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        ...


@dataclass(frozen=True, slots=True)
class SimplePart:
    """The text of the value.

    Attributes:
        field: the partition column.
        hive_style, url_encode: the table's path style.
        is_slashed: whether dashes become slashes, so that `2024-01-15` becomes `2024/01/15`.
        timestamps: how timestamps are shown.
    """

    field: str
    hive_style: bool
    url_encode: bool
    is_slashed: bool
    timestamps: PathTimestamps = PathTimestamps.NUMBERS

    @staticmethod
    def of(field: str, config: TableConfig) -> SimplePart:
        """Return the formatter of a table's partition column.

        Raises:
            UnsupportedError: slash-separated dates are combined with hive-style paths or a CUSTOM generator.
        """
        is_slashed = config.has_slashed_dates
        if is_slashed and (config.hive_style or config.key_generator is KeyGeneratorType.CUSTOM):
            raise UnsupportedError(
                f"{SLASHED_DATES} is not supported with hive-style paths or a CUSTOM key generator, since"
                " Hudi's writers and readers interpret the combination differently. Drop one of the two."
            )
        is_single = len(config.partition_fields) == 1
        timestamps = config.path_timestamps or _timestamps(config)
        return SimplePart(field, config.hive_style, config.url_encode, is_slashed and is_single, timestamps)

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that are not supported in paths; `number_texts` has no effect."""
        java_text(pa.nulls(0, kind), self.field)

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        if self.timestamps is not PathTimestamps.NUMBERS and is_moment(values.type):
            text = sql_text if self.timestamps is PathTimestamps.SECONDS else timestamp_text
            return map_distinct(text(values).fill_null(""), self._escaped_part)
        if pt.is_integer(values.type) or pt.is_date32(values.type):  # few values, so few texts
            encoded = pc.dictionary_encode(values, null_encoding="encode")
            texts = java_text(encoded.dictionary, self.field).fill_null("").to_pylist()
            return pa.array([self._part(text) for text in texts], pa.string()).take(encoded.indices)
        return map_distinct(java_text(values, self.field).fill_null(""), self._part)

    def _escaped_part(self, value: str) -> str:
        """Return the part of a date and time, which is escaped regardless of the table's path style."""
        part = escape(value) or DEFAULT_PARTITION
        return f"{self.field}={part}" if self.hive_style else part

    def _part(self, value: str) -> str:
        part = (escape(value) if self.url_encode else value) or DEFAULT_PARTITION
        if self.is_slashed and not part.startswith("-"):
            part = part.replace("-", "/")
        if not _RESERVED.isdisjoint(part.split("/")):
            raise _reserved(f"Partition column {self.field}", value)
        return f"{self.field}={part}" if self.hive_style else part


def _timestamps(config: TableConfig) -> PathTimestamps:
    """Return how the paths of a new table show timestamps.

    Paths have no colons unless they are encoded; those of Hudi's SQL, in whole seconds, always are.
    """
    if not config.texts_of_timestamps:
        return PathTimestamps.NUMBERS
    return PathTimestamps.TEXTS if config.url_encode else PathTimestamps.SECONDS


@dataclass(frozen=True, slots=True)
class TimestampPart:
    """The value formatted as a date.

    Attributes:
        field: the partition column.
        hive_style, url_encode: the table's path style.
        dates: formats the dates.
    """

    field: str
    hive_style: bool
    url_encode: bool
    dates: TimestampTexts

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that cannot be converted to dates."""
        self.dates.check_type(kind, self.field, number_texts=number_texts)

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        return map_distinct(self.dates.texts(values, self.field), self._part)

    def _part(self, date: str) -> str:
        part = escape(date) if self.url_encode else date
        return f"{self.field}={part}" if self.hive_style else part


def check_paths(paths: pa.Array, maker: str) -> pa.Array:
    """Check partition paths of a user's key generator, and return them.

    Args:
        paths: partition paths.
        maker: name of the key generator, for errors.

    Raises:
        InvalidError: a path leads out of the table or into Hudi's own folder.
    """

    def inside(path: str) -> str:
        if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise InvalidError(
                f"The key generator {maker} returned the partition path {path!r}. Return paths without"
                " empty, '.' or '..' parts and without outer slashes."
            )
        if not _RESERVED.isdisjoint(path.split("/")):
            raise _reserved(f"The key generator {maker}", path)
        return path

    return map_distinct(paths, inside)


def _reserved(maker: str, value: str) -> InvalidError:
    return InvalidError(
        f"{maker} has the value {value!r}. Hudi stores its own files under that name, and readers would not"
        " look for rows there. Change the value."
    )


NULL_KEY: Final = "__null__"
EMPTY_KEY: Final = "__empty__"

_VALUE_ONLY: Final = "VALUE_ONLY"
_ALWAYS_PREFIXED: Final = (KeyGeneratorType.COMPLEX, KeyGeneratorType.GLOBAL_DELETE)
_PATHLESS: Final = (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE)

_RECORD_INDEX: Final = "record_index"


def has_timestamp(columns: Sequence[str], schema: pa.Schema) -> bool:
    """Return whether one of some columns is a timestamp that keys may show as a text.

    Args:
        columns: names of columns, and of fields in structs (`a.k`).
        schema: the columns.
    """
    if not any(is_moment(kind) or pt.is_struct(kind) for kind in schema.types):
        return False
    kinds = (type_at(name, schema) for name in columns)
    return any(kind is not None and is_moment(kind) for kind in kinds)


class KeyGenerator:
    """Makes the record keys and partition paths of one table.

    Args:
        config: configuration of the table, including key generator options of the write.
        is_writing: whether the keys are for incoming rows. Compound keys of incoming rows have to be
            unambiguous, while those of stored rows are taken as they are.

    Raises:
        InvalidError: a setting of the generator is missing or not valid.
        UnsupportedError: the table's key generator is not available.
    """

    def __init__(self, config: TableConfig, *, is_writing: bool = False) -> None:
        self._config = config
        self._is_writing = is_writing
        self._function = config.key_function
        if config.key_generator is KeyGeneratorType.USER_PROVIDED and self._function is None:
            name = config.key_generator_class
            raise UnsupportedError(
                f"The table uses the key generator {name}. Register a function in its place with"
                f" drawstring.register_key_generator({name.rpartition('.')[2]!r}, function), then open the"
                " table."
            )
        self._parts = () if self._function else _path_parts(config)

    def check_columns(self, schema: pa.Schema, *, number_texts: bool = False) -> None:
        """Check that the types of the columns are supported in record keys and partition paths.

        Args:
            schema: the columns.
            number_texts: whether texts are accepted instead of the numbers that a TIMESTAMP generator
                formats. Tables that Spark SQL changed have such texts; Hudi itself cannot make paths of them.

        Raises:
            InvalidError: the type of a column is not supported.
            UnsupportedError: timestamps are to be texts in keys that readers make anew.
        """
        for part in self._parts:
            if part.field in schema.names:
                part.check_type(schema.field(part.field).type, number_texts=number_texts)
        config = self._config
        if config.populate_meta_fields or not config.texts_of_timestamps:
            return
        if has_timestamp(config.record_key_fields, schema):
            raise UnsupportedError(
                f"{TEXTS_OF_TIMESTAMPS}=true has no effect on readers, which make the record keys of a table"
                " without meta columns anew. Drop one of the two options."
            )

    def keys_and_paths(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """Return the record key and the partition path of each row; see `record_keys`, `partition_paths`.

        Raises:
            InvalidError: the record index of the table has no room for the key of an incoming row.
        """
        if self._function is None:
            keys, paths = self.record_keys(batch), self.partition_paths(batch)
        else:
            name = self._config.key_generator_class
            keys, paths = self._called(self._function, batch)
            keys, paths = _plain_key(keys, name), check_paths(paths.fill_null(""), name)
        if self._is_writing and _RECORD_INDEX in self._config.metadata_partitions:
            _check_indexable(keys)
        return keys, paths

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the record key of each row, text.

        In a table without key columns, rows read from the table have keys; the keys of others are empty.

        Args:
            batch: rows with the key columns.

        Raises:
            InvalidError: a key column is missing, the key of a row is null or empty, or the compound key of
                an incoming row is ambiguous.
        """
        fields = self._config.record_key_fields
        if self._function:
            return self.keys_and_paths(batch)[0]
        if not fields:
            has_keys = RECORD_KEY in batch.schema.names
            return batch.column(RECORD_KEY).fill_null("") if has_keys else pa.repeat("", batch.num_rows)
        if not self.is_prefixed():
            return _plain_key(self._texts(column_of(batch, fields[0]), fields[0]), fields[0])
        columns = [column_of(batch, field) for field in fields]
        of_numbers = number_keys(columns, fields)
        if of_numbers is not None:
            return of_numbers
        texts = [self._texts(column, field) for column, field in zip(columns, fields, strict=True)]
        if self._is_writing:
            _check_unambiguous(columns, texts, fields)
        return _compound_key(texts, fields)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the partition path of each row, text.

        Args:
            batch: rows with the partition columns.

        Raises:
            InvalidError: a partition column is missing, or a path would lead into Hudi's own folder.
        """
        if self._function:
            return self.keys_and_paths(batch)[1]
        if not self._parts:
            return pa.repeat(pa.scalar("", pa.string()), batch.num_rows)
        parts = [part.texts(column_of(batch, part.field)) for part in self._parts]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")

    def _texts(self, column: pa.Array, field: str) -> pa.Array:
        return key_text(column, field, texts_of_timestamps=self._config.texts_of_timestamps)

    def is_prefixed(self) -> bool:
        """Return whether a record key names its columns: `field:value`."""
        config = self._config
        if len(config.record_key_fields) > 1:
            return True
        if config.key_generator not in _ALWAYS_PREFIXED:
            return False
        is_complex = config.key_generator is KeyGeneratorType.COMPLEX
        recorded = config.properties.get(SINGLE_KEY_ENCODING, "").strip().upper()
        if recorded and is_complex:
            return recorded != _VALUE_ONLY
        is_bare = config.properties.get(BARE_SINGLE_KEY, "").lower() == "true"
        return config.rules.prefixes_single_keys or not (is_bare and is_complex)

    def _called(self, function: KeyFunction, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """Return the keys and paths that the registered function makes, as texts."""
        name = self._config.key_generator_class
        try:
            keys, paths = (_text(column) for column in function(batch))
        except DrawstringError:
            raise
        except Exception as error:
            raise InvalidError(
                f"The key generator {name} failed: {type(error).__name__}: {error}. Correct its function."
            ) from error
        if {len(keys), len(paths)} != {batch.num_rows}:
            raise InvalidError(
                f"The key generator {name} returned {len(keys)} keys and {len(paths)} paths for"
                f" {batch.num_rows} rows. Return one of each for every row."
            )
        return keys, paths


def _path_parts(config: TableConfig) -> tuple[PathPart, ...]:
    """Return the formatter of each part of the partition path.

    Raises:
        InvalidError: as `KeyGenerator`.
    """
    fields, generator = config.partition_fields, config.path_generator
    if generator in _PATHLESS:
        return ()
    kinds: Sequence[str] = config.partition_types or ("SIMPLE",) * len(fields)
    if generator is KeyGeneratorType.TIMESTAMP:
        kinds = ("TIMESTAMP",) * len(fields)
    elif generator is KeyGeneratorType.CUSTOM and fields and not config.partition_types:
        raise InvalidError(
            "The table does not specify the types of its partition columns. Set"
            f" hoodie.datasource.write.partitionpath.field={','.join(f'{name}:SIMPLE' for name in fields)},"
            " with TIMESTAMP for date columns."
        )
    if wrong := set(kinds) - {"SIMPLE", "TIMESTAMP"}:
        raise InvalidError(
            f"A partition column has the type {', '.join(sorted(wrong))}. Use SIMPLE or TIMESTAMP."
        )
    return tuple(_part(name, kind, config) for name, kind in zip(fields, kinds, strict=True))


def _part(field: str, kind: str, config: TableConfig) -> PathPart:
    if kind == "TIMESTAMP":
        texts = TimestampTexts.of(
            timestamp_settings(config.properties), knows_timestamps=config.texts_of_timestamps
        )
        return TimestampPart(field, config.hive_style, config.url_encode, texts)
    return SimplePart.of(field, config)


def column_of(batch: pa.RecordBatch, field: str) -> pa.Array:
    """Return a column, or a nested field by its dotted name.

    Args:
        batch: rows.
        field: name of the column.

    Raises:
        InvalidError: the column does not exist, or has a text that is not UTF-8.
    """
    column = _column(batch, field)
    try:
        # Arrow does not validate texts that arrive through its own interfaces.
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidError(
            f"Column {field}, which the record key or partition path needs, is damaged: {error}."
            " Correct the rows."
        ) from None
    return column


def _column(batch: pa.RecordBatch, field: str) -> pa.Array:
    if field in batch.schema.names:
        return batch.column(field)
    name, _, inner = field.partition(".")
    if not inner or name not in batch.schema.names:
        raise InvalidError(
            f"The rows have no column {field}, which the record key or partition path needs. Add it."
        )
    try:
        return pc.struct_field(batch.column(name), inner.split("."))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise InvalidError(
            f"Column {name} has no field {inner}, which the record key or partition path needs. Add it."
        ) from None


def column_texts(batch: pa.RecordBatch, field: str) -> pa.Array:
    """Return the texts of a column or of a nested field; see `column_of`."""
    return java_text(column_of(batch, field), field)


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not isinstance(flat, pa.Array):
        raise TypeError(f"a {type(column).__name__} is not a column")
    return flat.cast(pa.string())


def _check_indexable(keys: pa.Array) -> None:
    """Check that the record index of a table has room for keys."""
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > HFILE_KEY_BYTES_MAX:
        raise InvalidError(
            f"A record key has {longest:,} bytes, but the record index of the table has keys of at most"
            f" {HFILE_KEY_BYTES_MAX:,} bytes. Shorten it, or drop the index {_RECORD_INDEX}."
        )


def _plain_key(texts: pa.Array, field: str) -> pa.Array:
    missing = _count_missing(texts)
    if missing:
        raise MissingKeyError(
            f"The record key column {field} is null or empty in {pluralize(missing, 'row')}. Give every"
            " record"
            " a key."
        )
    return texts


def _check_unambiguous(
    columns: Sequence[pa.Array], key_texts: Sequence[pa.Array], fields: Sequence[str]
) -> None:
    """Refuse values that look like the start of another key column.

    `k1:a,k2:b,k2:c` is the key of ('a,k2:b', 'c') and of ('a', 'b,k2:c'): the first is refused, so that
    each record key has one meaning. Texts of numbers and dates do not.
    """
    for number, (column, texts, field) in enumerate(zip(columns, key_texts, fields, strict=True), start=1):
        for further in fields[number:] if _is_text(column.type) else ():
            mark = f",{further}:"
            marked = pc.match_substring(texts, mark)
            count = pc.sum(marked).as_py()
            if count:
                value = texts.filter(marked)[0].as_py()
                raise InvalidError(
                    f"The record key column {field} contains {mark!r} in {pluralize(count, 'row')}, for"
                    " example"
                    f" {value[:100]!r}. Rows with other values of {', '.join(fields)} would have the same"
                    " record key. Change the values, or create a table with another record key."
                )


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    return not (pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind) or pt.is_timestamp(kind))


def _compound_key(columns: Sequence[pa.Array], fields: Sequence[str]) -> pa.Array:
    if all(texts.null_count or _has_empty(texts) for texts in columns):
        _check_not_missing(columns, fields)
    pieces: list[str | pa.Array] = []
    for number, (texts, field) in enumerate(zip(columns, fields, strict=True)):
        pieces += [f"{',' if number else ''}{field}:", _named(texts)]
    return pc.binary_join_element_wise(*pieces, "")


def _named(texts: pa.Array) -> pa.Array:
    """Return texts with words in place of those that are missing."""
    if _has_empty(texts):
        texts = pc.if_else(pc.equal(texts, ""), EMPTY_KEY, texts)
    return texts.fill_null(NULL_KEY) if texts.null_count else texts


def _check_not_missing(columns: Sequence[pa.Array], fields: Sequence[str]) -> None:
    no_key = pa.scalar(True)
    for texts in columns:
        no_key = pc.and_(no_key, _is_missing(texts))
    missing = pc.sum(no_key).as_py() or 0
    if missing:
        raise MissingKeyError(
            f"The record key columns {', '.join(fields)} are all null or empty in"
            f" {pluralize(missing, 'row')}."
            " Give every record a key."
        )


def _has_empty(texts: pa.Array) -> bool:
    return bool(pc.min(pc.binary_length(texts)).as_py() == 0)


def _is_missing(texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "").fill_null(True)


def _count_missing(texts: pa.Array) -> int:
    return int(pc.sum(_is_missing(texts)).as_py() or 0)
