"""Encode and decode the content of a DELETE block (specification: Log Format, Delete Block).

Numbers are big-endian.

     4  content version  3; in files of releases before 0.13 also 1 or 2
     4  length           of the rest
        version 3: Avro datum of HoodieDeleteRecordList: record key, partition path, ordering value
        versions 1 and 2: Java objects serialised with Kryo 4

The ordering value is a union of one-field records by type. Int 0 and null mean "no ordering value": such a
commit-time delete wins over everything written before it.

Version 3, read column by column (`read_delete_columns`): the records of the list have no lengths, so a record
begins where the record before ends. The reader takes each byte that may begin a record for a start, all at
once, and then follows the chain of records:

    bytes that say "a key follows" ── as if each began a record: its end ──> end by start ── from the first
    record on ──> starts of all records ──> keys of all records, ordering values of all records

A reader of single records reads records of other forms, with several ordering values or decimals.

Versions 1 and 2 (`read_kryo_deletes`): version 1 is an array of HoodieKey, version 2 an array of
DeleteRecord; no other objects are read. Kryo writes an object as its class, a reference, and its fields
sorted by name:

    class       varint: 0 null, 1 a class by name, else the number of a registered class plus 2
                by name: varint number of the class in this stream, and its name at the first use
    reference   varint: 0 null, 1 a new object, else the number of an earlier object plus 2;
                objects are numbered by their start; boxed numbers and booleans have no reference
    array       varint of its length plus 1, then each element as an object of any class
    HoodieKey       partitionPath, recordKey: reference and text
    DeleteRecord    hoodieKey, orderingVal: objects of any class

A text of 2 to 63 ASCII characters is stored as its bytes, the last one with its high bit set. Any other text
is stored as its length plus 1 (six bits in the first byte with its high bit set, then seven per byte),
followed by its UTF-16 units as one to three bytes each.

Sources: Kryo 4.0.2 `Kryo.writeClassAndObject`, `DefaultClassResolver`, `Output.writeString`,
`ObjectArraySerializer`, `FieldSerializer`; Hudi `SerializationUtils`, `HoodieDeleteBlock`.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.formats import schemas
from drawstring.formats.avro.container import DAMAGE, encode_long
from drawstring.formats.avro.decoder import (
    Array,
    BooleanColumn,
    Column,
    Datums,
    FloatColumn,
    NumberColumn,
    Numbers,
    TextColumn,
    UnionColumn,
)
from drawstring.formats.avro.encoder import (
    Part,
    binary_parts,
    encode_booleans,
    encode_bytes,
    encode_decimals,
    encode_floats,
    encode_numbers,
    join,
)

_PAD: Final = 16
_TEXT_BRANCH: Final = 2
"""Branch of a text in a union with null, as it is stored."""

_FIXED: Final[Mapping[int, int]] = {0: 0, 1: 1, 4: 4, 5: 8}
"""Sizes of ordering values by their branch: none, boolean, float, double."""

_VARINTS: Final = (2, 3, 8, 10, 11)
_TEXTS: Final = 7
_INT: Final = 2
_READERS: Final[Mapping[int, tuple[pa.DataType, Column]]] = {
    1: (pa.bool_(), BooleanColumn()),
    2: (pa.int32(), NumberColumn(pa.int32())),
    3: (pa.int64(), NumberColumn(pa.int64())),
    4: (pa.float64(), FloatColumn(pa.float32())),
    5: (pa.float64(), FloatColumn(pa.float64())),
    7: (pa.string(), TextColumn(pa.string())),
    8: (pa.date32(), NumberColumn(pa.date32())),
    10: (pa.time64("us"), NumberColumn(pa.time64("us"))),
    11: (pa.timestamp("us", "UTC"), NumberColumn(pa.timestamp("us", "UTC"))),
}


def read_delete_columns(
    payload: bytes,
) -> tuple[pa.Array, Mapping[pa.DataType, pa.Array], Array] | None:
    """Return the columns of a list of deletes; None if it is short or its records have another form.

    Args:
        payload: the list.

    Returns:
        The keys; the ordering values by their type, null in records with a value of another type; which
        records have none.

    Raises:
        ValueError: the bytes are damaged.
    """
    starts = _starts(payload)
    if starts is None:
        return None
    datums, at = Datums(payload, 0, len(payload)), starts
    datums.advance(at, 1)
    keys = datums.texts(at, pa.string())
    keys.validate(full=True)
    UnionColumn(TextColumn(pa.string()), pa.string(), 1, 2).skip(datums, at)
    branches = datums.sizes(at)
    is_absent = branches == 0
    values: dict[pa.DataType, pa.Array] = {}
    for branch in np.unique(branches[~is_absent]).tolist():
        kind, reader = _READERS[branch]
        rows = np.flatnonzero(branches == branch)
        read = reader.read(datums, at[rows]).cast(kind)
        if branch == _INT:
            is_zero = read.to_numpy() == 0
            is_absent[rows[is_zero]] = True
            rows, read = rows[~is_zero], read.filter(pa.array(~is_zero))
        if len(rows):
            spread = _scattered(read, rows, len(keys))
            values[kind] = pc.coalesce(values[kind], spread) if kind in values else spread
    return keys, values, is_absent


def _scattered(values: pa.Array, rows: Array, count: int) -> pa.Array:
    """Return values at the numbers of their rows, null elsewhere."""
    if len(rows) == count:
        return values
    places = np.zeros(count, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    is_other = np.ones(count, dtype=bool)
    is_other[rows] = False
    return values.take(pa.array(places, mask=is_other))


def _starts(payload: bytes) -> Numbers | None:
    """Return the starts of the records of a list."""
    data = np.zeros(len(payload) + _PAD, np.uint8)
    data[: len(payload)] = np.frombuffer(payload, np.uint8)
    begin, count, is_length = _length(data, np.zeros(1, np.int64))
    if not is_length[0] or count[0] < limits.in_force.delete_columns_records_min:
        return None
    first = np.flatnonzero(data[: len(payload)] == _TEXT_BRANCH)
    ends, is_record = _ends(data, first)
    end_by_start = dict(zip(first[is_record].tolist(), ends[is_record].tolist(), strict=True))
    at: int | None = int(begin[0])
    starts = []
    for _ in range(min(int(count[0]), len(payload))):
        starts.append(at)
        at = end_by_start.get(at) if at is not None else None
    return np.array(starts, np.int64) if at == len(payload) - 1 and payload[-1] == 0 else None


def _ends(data: Array, starts: Numbers) -> tuple[Numbers, Array]:
    """Return where records end that begin at some places, and where there may be one."""
    at, is_record = _after_text(data, starts + 1)
    has_path = data[at] == _TEXT_BRANCH
    is_record &= has_path | (data[at] == 0)
    after_path, is_text = _after_text(data, at + 1)
    is_record &= is_text | ~has_path
    at = np.where(has_path, after_path, np.minimum(at + 1, len(data) - _PAD))
    stored = data[at]
    branch, at = stored >> 1, np.minimum(at + 1, len(data) - _PAD)
    is_known = np.zeros(len(at), dtype=bool)
    ends = at.copy()
    for each, size in _FIXED.items():
        is_known |= branch == each
        ends[branch == each] += size
    is_varint = np.isin(branch, _VARINTS)
    ends = np.where(is_varint, at + _varint_sizes(data, at), ends)
    after_text, is_text = _after_text(data, at)
    ends = np.where(branch == _TEXTS, after_text, ends)
    is_known |= is_varint | (is_text & (branch == _TEXTS))
    return ends, is_record & is_known & ((stored & 1) == 0) & (ends < len(data) - _PAD)


def _length(data: Array, at: Numbers) -> tuple[Numbers, Numbers, Array]:
    """Return where lengths end, what they are, and which are one, of up to three bytes."""
    low, middle, high = (data[at + place].astype(np.int64) for place in range(3))
    has_two = low > 0x7F
    has_three = has_two & (middle > 0x7F)
    raw = (low & 0x7F) | np.where(has_two, (middle & 0x7F) << 7, 0) | np.where(has_three, high << 14, 0)
    is_length = ((raw & 1) == 0) & ~(has_three & (high > 0x7F))
    return at + 1 + has_two + has_three, raw >> 1, is_length


def _after_text(data: Array, at: Numbers) -> tuple[Numbers, Array]:
    """Return where texts end, at most the end of the data, and which are texts."""
    begin, size, is_length = _length(data, at)
    ends = begin + size
    return np.minimum(ends, len(data) - _PAD), is_length & (ends < len(data) - _PAD)


def _varint_sizes(data: Array, at: Numbers) -> Numbers:
    """Return how many bytes numbers take."""
    sizes = np.ones(len(at), np.int64)
    goes_on = data[at] > 0x7F
    for place in range(1, 10):
        if not goes_on.any():
            break
        sizes += goes_on
        goes_on &= data[at + place] > 0x7F
    return sizes


_MODEL = "org.apache.hudi.common.model."
_KEY = f"{_MODEL}HoodieKey"
_RECORD = f"{_MODEL}DeleteRecord"
_NULL, _NEW = 0, 1
_BY_NAME = 1
_STRING = 3
_DAY_MILLIS = 86_400_000
_DIGITS_MAX = 38
_DIGITS = Context(prec=_DIGITS_MAX)


@dataclass(frozen=True, slots=True)
class KryoDelete:
    """A decoded delete.

    Attributes:
        key: its record key.
        ordering: the type of its ordering value, under its name in delete blocks of version 3, and the
            value; None without an ordering value.
    """

    key: str
    ordering: tuple[str, Any] | None


def read_kryo_deletes(data: bytes) -> list[KryoDelete]:
    """Return the deletes of a payload.

    Raises:
        ValueError, EOFError or struct.error: the bytes are damaged.
        UnsupportedError: the payload has objects that Hudi's delete blocks do not have.
    """
    return _Kryo(data).deletes()


class _Kryo:
    """Reads objects, and stores classes and objects for later references."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._classes: list[str] = []
        self._objects: list[Any] = []

    def deletes(self) -> list[KryoDelete]:
        kind = self._class()
        if kind not in (f"[L{_KEY};", f"[L{_RECORD};"):
            raise UnsupportedError(
                f"A delete block has Java objects of {kind}, which are not supported. Compact the table with"
                " the engine that wrote it."
            )
        if self._reference() is not _NewReference:
            raise ValueError("its array is not a new object")
        self._objects.append(None)
        length = self._varint() - 1
        if not 0 <= length <= len(self._data) - self._at:
            raise ValueError(f"it claims {length} deletes in {len(self._data)} bytes")
        element = self._key if kind == f"[L{_KEY};" else self._record
        elements = [element() for _ in range(length)]
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes follow the last delete")
        return [
            element if isinstance(element, KryoDelete) else KryoDelete(element, None) for element in elements
        ]

    def _key(self) -> Any:
        """Read a HoodieKey and return its record key."""
        return self._object(_KEY, self._key_fields)

    def _key_fields(self) -> Any:
        self._referred(self._text)
        key = self._referred(self._text)
        if key is None:
            raise ValueError("a delete has no record key")
        return key

    def _record(self) -> Any:
        return self._object(_RECORD, self._record_fields)

    def _record_fields(self) -> KryoDelete:
        return KryoDelete(self._key(), self._ordering())

    def _object(self, kind: str, read: Callable[[], Any]) -> Any:
        actual = self._class()
        if actual != kind:
            raise ValueError(f"it has a {actual} instead of a {kind}")
        value = self._referred(read)
        if not isinstance(value, KryoDelete if kind == _RECORD else str):
            raise ValueError(f"a reference to a {kind} refers to something else")
        return value

    def _ordering(self) -> tuple[str, Any] | None:
        kind = self._class()
        if kind is None:
            return None
        if kind in _BOXED:
            name, form = _BOXED[kind]
            return name, self._varint_signed() if form is None else self._struct(form)
        if kind not in _OBJECTS:
            raise UnsupportedError(
                f"A delete block has ordering values of {kind}, which are not supported. Compact the table "
                "with the engine that wrote it."
            )
        name, read = _OBJECTS[kind]
        value = self._referred(lambda: read(self))
        if value is None or isinstance(value, KryoDelete):
            raise ValueError("an ordering value refers to something else")
        return name, value

    def _class(self) -> str | None:
        number = self._varint()
        if number == _NULL:
            return None
        if number != _BY_NAME:
            return _REGISTERED.get(number, f"class number {number - 2}")
        index = self._varint()
        if index == len(self._classes):
            self._classes.append(self._text())
        if index >= len(self._classes):
            raise ValueError(f"it refers to class {index} of {len(self._classes)}")
        return self._classes[index]

    def _referred(self, read: Callable[[], Any]) -> Any:
        """Return an object: a new one, an earlier one, or None."""
        referenced = self._reference()
        if referenced is not _NewReference:
            return referenced
        index = len(self._objects)
        self._objects.append(None)
        self._objects[index] = read()
        return self._objects[index]

    def _reference(self) -> Any:
        number = self._varint()
        if number == _NULL:
            return None
        if number == _NEW:
            return _NewReference
        if number - 2 >= len(self._objects):
            raise ValueError(f"it refers to object {number - 2} of {len(self._objects)}")
        return self._objects[number - 2]

    def _text(self) -> str:
        first = self._take(1)[0]
        if not first & 0x80:
            return self._ascii()
        units = first & 0x3F
        if first & 0x40:
            units |= self._varint() << 6
        if units == 0:
            raise ValueError("a required text is null")
        return self._units(units - 1)

    def _ascii(self) -> str:
        start = self._at - 1
        while self._at < len(self._data) and not self._data[self._at] & 0x80:
            self._at += 1
        last = self._take(1)[0] & 0x7F
        return self._data[start : self._at - 1].decode("ascii") + chr(last)

    def _units(self, count: int) -> str:
        start = self._at
        if self._data[start : start + count].isascii():
            return self._take(count).decode("ascii")
        for _ in range(count):
            lead = self._take(1)[0] >> 4
            self._take(0 if lead < 8 else 2 if lead == 14 else 1)
        halves = self._data[start : self._at].decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16")

    def _decimal(self) -> Decimal:
        unscaled = int.from_bytes(self._take(self._varint() - 1), "big", signed=True)
        scale = self._varint_signed()
        if abs(scale) > _DIGITS_MAX or abs(unscaled) >= 10**_DIGITS_MAX:
            # Arrow crashes the process on decimals with very large exponents.
            raise ValueError(f"a decimal has scale {scale}")
        return Decimal(unscaled).scaleb(-scale, _DIGITS)

    def _millis(self) -> int:
        millis = self._varint()
        return millis - (1 << 64) if millis >> 63 else millis

    def _local_date(self) -> int:
        year, month, day = self._varint(), *self._take(2)
        # Days in the proleptic Gregorian calendar, with years that start in March.
        years = year - (month <= 2)
        in_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        return years * 365 + years // 4 - years // 100 + years // 400 + in_year - 719_468

    def _struct(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 63, 7):
            byte = self._take(1)[0]
            if shift == 56:
                # The ninth byte has eight bits of data.
                return value | byte << shift
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        return value

    def _varint_signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size] if size >= 0 else b""
        if len(data) != size:
            raise EOFError("it ends too early")
        self._at += size
        return data


class _NewReference:
    """Marker for a reference to a new object, which follows."""


_REGISTERED = {
    2: "java.lang.Integer",
    _STRING: "java.lang.String",
    4: "java.lang.Float",
    5: "java.lang.Boolean",
    6: "java.lang.Byte",
    8: "java.lang.Short",
    9: "java.lang.Long",
    10: "java.lang.Double",
}
"""Classes that Kryo registers by default."""

_BOXED: dict[str, tuple[str, str | None]] = {
    "java.lang.Integer": ("IntWrapper", None),
    "java.lang.Float": ("FloatWrapper", ">f"),
    "java.lang.Boolean": ("BooleanWrapper", ">?"),
    "java.lang.Byte": ("IntWrapper", ">b"),
    "java.lang.Short": ("IntWrapper", ">h"),
    "java.lang.Long": ("LongWrapper", None),
    "java.lang.Double": ("DoubleWrapper", ">d"),
}
"""Wrapper type and struct format of boxed values; the format None is a signed varint."""

_OBJECTS: dict[str, tuple[str, Callable[[_Kryo], Any]]] = {
    "java.lang.String": ("StringWrapper", _Kryo._text),
    "java.math.BigDecimal": ("DecimalWrapper", _Kryo._decimal),
    "java.sql.Timestamp": ("TimestampMicrosWrapper", lambda kryo: kryo._millis() * 1000),
    # Midnight in the writer's time zone, which is unknown.
    "java.sql.Date": ("DateWrapper", lambda kryo: (kryo._millis() + _DAY_MILLIS // 2) // _DAY_MILLIS),
    "java.time.LocalDate": ("LocalDateWrapper", _Kryo._local_date),
}
"""Wrapper type and reader of ordering values that are objects."""


_HEAD = struct.Struct(">ii")
CONTENT_VERSION = 3
_KRYO_VERSIONS = (1, 2)
_DECIMAL = pa.decimal128(30, 15)
_ARRAY_BRANCH = 12
_NO_ORDERING = b"\x04\x00"
"""IntWrapper 0."""


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The records of a delete block.

    Attributes:
        keys: record keys.
        ordering: ordering values, null for commit-time deletes; a struct with the fields `0`, `1`, ...
            for several ordering fields; None if all are commit-time deletes.
        is_commit_time: whether a delete is a commit-time delete.
    """

    keys: pa.StringArray
    ordering: pa.Array | None
    is_commit_time: pa.BooleanArray


def encode_deletes(keys: pa.Array, partition: str, ordering: pa.Array | None = None) -> bytes:
    """Return the content of a delete block.

    Args:
        keys: record keys.
        partition: partition path of all records.
        ordering: ordering values, a struct for several ordering fields; null values and None result in
            commit-time deletes.

    Raises:
        InvalidError: a delete block cannot store the type of the ordering values.
    """
    path = partition.encode()
    values = _NO_ORDERING if ordering is None else _encode_ordering(ordering)
    records = join([b"\x02", *encode_bytes(keys), b"\x02" + encode_long(len(path)) + path, values])
    offsets, data = binary_parts(records)
    body = data[offsets[0] : offsets[-1]].tobytes()
    payload = (encode_long(len(keys)) + body if len(keys) else b"") + encode_long(0)
    return _HEAD.pack(CONTENT_VERSION, len(payload)) + payload


def _encode_ordering(ordering: pa.Array) -> pa.Array:
    if pt.is_struct(ordering.type):
        return _encode_several(ordering)
    return _with_default(_encode_values(ordering), ordering, _NO_ORDERING)


def _encode_several(ordering: pa.StructArray) -> pa.Array:
    """Wrap the values of several columns in an ArrayWrapper; rows with only nulls have no ordering value."""
    columns = [ordering.field(at) for at in range(ordering.type.num_fields)]
    parts = [_with_default(_encode_values(column), column, encode_long(0)) for column in columns]
    head = encode_long(_ARRAY_BRANCH) + encode_long(1) + encode_long(len(columns))
    wrapped = join([head, *parts, encode_long(0)])
    empty = columns[0].is_null()
    for column in columns[1:]:
        empty = pc.and_(empty, column.is_null())
    return pc.if_else(empty, pa.scalar(_NO_ORDERING, pa.binary()), wrapped)


def _with_default(encoded: pa.Array, values: pa.Array, absent: bytes) -> pa.Array:
    return pc.if_else(values.is_valid(), encoded, pa.scalar(absent, pa.binary()))


def _encode_values(values: pa.Array) -> pa.Array:
    """Return union branch and value of each element; nulls become arbitrary values."""
    kind = values.type
    for branch, (matches, encode) in _BRANCHES.items():
        if matches(kind):
            return join([encode_long(branch), *encode(values)])
    raise InvalidError(f"Deletes cannot store ordering values of type {kind}. Choose another ordering field.")


def _encode_decimal(values: pa.Array) -> list[Part]:
    return encode_decimals(values.cast(_DECIMAL))


# Dates and times are stored as plain numbers: Hudi on Spark compares the ordering value of a delete with the
# number in the row, and treats a delete whose value has another Java type as a commit-time delete.
_BRANCHES: dict[int, tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Part]]]] = {
    1: (pt.is_boolean, encode_booleans),
    2: (lambda kind: pt.is_int32(kind) or pt.is_date32(kind), encode_numbers),
    3: (lambda kind: pt.is_int64(kind) or pt.is_timestamp(kind) or pt.is_time64(kind), encode_numbers),
    4: (pt.is_float32, encode_floats),
    5: (pt.is_float64, encode_floats),
    6: (pt.is_binary, encode_bytes),
    7: (pt.is_string, encode_bytes),
    9: (pt.is_decimal, _encode_decimal),
}

_WRAPPER_TYPES: dict[str, pa.DataType] = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float64(),
    "DoubleWrapper": pa.float64(),
    "BytesWrapper": pa.binary(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.date32(),
    "LocalDateWrapper": pa.date32(),
    "DecimalWrapper": _DECIMAL,
    "TimeMicrosWrapper": pa.time64("us"),
    "TimestampMicrosWrapper": pa.timestamp("us", "UTC"),
}


def decode_deletes(data: bytes) -> DeleteRecords:
    """Return the records of a delete block.

    Dates and timestamps are mostly returned as int32 and int64, in the unit of the table's column, and
    floats as float64.

    Args:
        data: content of the block.

    Raises:
        CorruptTableError: the bytes are damaged.
        UnsupportedError: the content version is not supported.
    """
    try:
        version, length = _HEAD.unpack_from(data)
        if version not in (*_KRYO_VERSIONS, CONTENT_VERSION):
            raise UnsupportedError(
                f"Delete blocks of content version {version} are not supported. Compact the table "
                "with the engine that wrote it."
            )
        payload = data[_HEAD.size :]
        if length != len(payload):
            raise ValueError(f"it claims {length} bytes but has {len(payload)}")
        return _records_of_kryo(payload) if version in _KRYO_VERSIONS else _records_of_avro(payload)
    except (*DAMAGE, pa.ArrowException) as error:
        raise CorruptTableError(
            f"A delete block is damaged ({error}). To repair the table, {REPAIR}."
        ) from error


def _read_list(payload: bytes) -> list[dict[str, Any]]:
    stream = io.BytesIO(payload)
    content: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    if stream.tell() != len(payload):
        raise ValueError(f"{len(payload) - stream.tell()} bytes follow the last record")
    records: list[dict[str, Any]] = content["deleteRecordList"]
    return records


@cache
def _schema() -> Any:
    return fastavro.parse_schema(schemas.load("delete_list"))


def _records_of_avro(payload: bytes) -> DeleteRecords:
    columns = read_delete_columns(payload)
    if columns is not None:
        keys, values, is_absent = columns
        kind = _common({*values}) if values else None
        found = [each.cast(kind) for each in values.values()]
        ordering = pc.coalesce(*found) if len(found) > 1 else next(iter(found), None)
        return DeleteRecords(keys, ordering, pa.array(is_absent))
    records = _read_list(payload)
    return _records_of([each["recordKey"] for each in records], [each["orderingVal"] for each in records])


def _records_of_kryo(payload: bytes) -> DeleteRecords:
    deletes = read_kryo_deletes(payload)
    wrapped = [
        None if each.ordering is None else (f"{_WRAPPERS}{each.ordering[0]}", {"value": each.ordering[1]})
        for each in deletes
    ]
    return _records_of([each.key for each in deletes], wrapped)


def _records_of(record_keys: list[str | None], wrapped: list[Any]) -> DeleteRecords:
    keys = pa.array(record_keys, pa.string())
    if keys.null_count:
        raise ValueError(f"{keys.null_count} deletes have no record key")
    commit_time = [each is None or each == _NO_ORDERING_VALUE for each in wrapped]
    ordered = [None if is_default else each for is_default, each in zip(commit_time, wrapped, strict=True)]
    return DeleteRecords(keys, _ordering_of(ordered), pa.array(commit_time, pa.bool_()))


_WRAPPERS = "org.apache.hudi.avro.model."
_NO_ORDERING_VALUE = (f"{_WRAPPERS}IntWrapper", {"value": 0})


def _ordering_of(wrapped: list[Any]) -> pa.Array | None:
    """Return an array of the values, or a struct array if each wraps several."""
    present = [each for each in wrapped if each is not None]
    if not present:
        return None
    if "wrappedValues" not in present[0][1]:
        return _values_of(wrapped)
    rows = [None if each is None else each[1]["wrappedValues"] for each in wrapped]
    width = max(len(row) for row in rows if row is not None)
    columns = [_values_of([row[at] if row else None for row in rows]) for at in range(width)]
    return pa.StructArray.from_arrays(columns, names=[str(at) for at in range(width)])


def _values_of(wrapped: list[Any]) -> pa.Array:
    """Return the values of wrappers of one type, or of ints and longs."""
    kinds = {_WRAPPER_TYPES[each[0].rpartition(".")[2]] for each in wrapped if each is not None}
    values = [None if each is None else each[1]["value"] for each in wrapped]
    return pa.array(values, _common(kinds) if kinds else pa.null())


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    """Return the common type of all values; a column that was widened has both ints and longs."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {pa.int32(), pa.int64()}:
        return pa.int64()
    raise ValueError(f"its ordering values are of several types: {sorted(map(str, kinds))}")
