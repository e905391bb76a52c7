"""Delete blocks of content versions 1 and 2: Java objects serialised with Kryo 4.

Version 1 is an array of HoodieKey, version 2 an array of DeleteRecord; no other objects are read. Kryo
writes an object as its class, a reference, and its fields sorted by name:

    class       varint: 0 null, 1 a class by name, else the number of a registered class plus 2
                by name: varint number of the class in this stream, and its name at the first use
    reference   varint: 0 null, 1 a new object, else the number of an earlier object plus 2;
                objects are numbered by their start; boxed numbers and booleans have no reference
    array       varint of its length plus 1, then each element as an object of any class
    HoodieKey       partitionPath, recordKey: reference and text
    DeleteRecord    hoodieKey, orderingVal: objects of any class

A text of 2 to 63 ASCII characters is stored as its bytes, the last one with its high bit set. Any other text
is stored as its length plus 1 (six bits in the first byte, whose high bit is set, then seven per byte),
followed by its UTF-16 units as one to three bytes each.

Sources: Kryo 4.0.2 `Kryo.writeClassAndObject`, `DefaultClassResolver`, `Output.writeString`,
`ObjectArraySerializer`, `FieldSerializer`; Hudi `SerializationUtils`, `HoodieDeleteBlock`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from drawstring.base.errors import UnsupportedError

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
        if self._reference() is not _Fresh:
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
        if referenced is not _Fresh:
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
            return _Fresh
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


class _Fresh:
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
