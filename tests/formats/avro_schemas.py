"""Random Avro schemas with records of them, for tests that compare readers of datums."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterator
from typing import Any

import fastavro
from hypothesis import strategies as st

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": INT | st.integers(-100, 100),
    "long": LONG | st.integers(-100, 100),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=8) | st.text(min_size=60, max_size=70),
    "bytes": st.binary(max_size=8) | st.binary(min_size=120, max_size=140),
}
DAY_MILLIS, DAY_MICROS = 86_400_000, 86_400_000_000
LOGICAL: dict[tuple[str, str], st.SearchStrategy[Any]] = {
    ("int", "date"): INT,
    ("int", "time-millis"): st.integers(0, DAY_MILLIS - 1),
    ("long", "time-micros"): st.integers(0, DAY_MICROS - 1),
    **{
        ("long", f"{local}timestamp-{unit}"): LONG
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
    ("string", "uuid"): st.uuids().map(str),
}


class Schemas:
    """Draws schemas, and values as fastavro takes them when it does not know logical types."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._ids = itertools.count()
        self._named: list[tuple[str, st.SearchStrategy[Any]]] = []

    def record(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        name = f"r{next(self._ids)}"
        columns = [self.any(depth) for _ in range(self._draw(st.integers(1, 4)))]
        fields = [{"name": f"c{at}", "type": avro} for at, (avro, _) in enumerate(columns)]
        values = st.fixed_dictionaries({f"c{at}": value for at, (_, value) in enumerate(columns)})
        return {"type": "record", "name": name, "namespace": f"n.{name}", "fields": fields}, values

    def any(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        """Return a type and its values; a union in some cases."""
        form = self._draw(st.sampled_from(["plain", "first", "last", "one", "null"]))
        if form == "null":
            return self._draw(st.sampled_from(["null", ["null"]])), st.none()
        avro, values = self._type(depth)
        if form == "first":
            return ["null", avro], st.none() | values
        if form == "last":
            return [avro, "null"], st.none() | values
        return ([avro] if form == "one" else avro), values

    def _type(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        kinds = ["simple", "simple", "logical", "decimal", "fixed", "enum", "known"]
        kind = self._draw(st.sampled_from(kinds + ["record", "array", "map"] * bool(depth)))
        if kind == "simple" or (kind == "known" and not self._named):
            name = self._draw(st.sampled_from(sorted(SIMPLE)))
            return name, SIMPLE[name]
        if kind == "known":
            return self._draw(st.sampled_from(self._named))
        if kind == "logical":
            plain, logical = self._draw(st.sampled_from(sorted(LOGICAL)))
            return {"type": plain, "logicalType": logical}, LOGICAL[plain, logical]
        if kind in ("array", "map"):
            return self._items(kind, depth)
        if kind == "record":
            return self.record(depth - 1)
        return getattr(self, f"_{kind}")()

    def _items(self, kind: str, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        avro, values = self.any(depth - 1)
        if avro in ("null", ["null"]):
            avro, values = "long", LONG
        size = self._draw(st.sampled_from([2, 5, 80]))
        if kind == "array":
            return {"type": "array", "items": avro}, st.lists(values, max_size=size)
        return {"type": "map", "values": avro}, st.dictionaries(st.text(max_size=3), values, max_size=size)

    def _decimal(self) -> tuple[Any, st.SearchStrategy[Any]]:
        precision = self._draw(st.integers(1, 38))
        logical = {
            "logicalType": "decimal",
            "precision": precision,
            "scale": self._draw(st.integers(0, precision)),
        }
        unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
        if self._draw(st.booleans()):
            return {"type": "bytes", **logical}, unscaled.map(_shortest)
        size = _size(10**precision) + self._draw(st.integers(0, 5))
        fixed = {"type": "fixed", "name": f"f{next(self._ids)}", "size": size, **logical}
        return self._known(fixed, unscaled.map(lambda value: value.to_bytes(size, "big", signed=True)))

    def _fixed(self) -> tuple[Any, st.SearchStrategy[Any]]:
        size = self._draw(st.integers(1, 20))
        fixed = {"type": "fixed", "name": f"x.f{next(self._ids)}", "size": size}
        return self._known(fixed, st.binary(min_size=size, max_size=size))

    def _enum(self) -> tuple[Any, st.SearchStrategy[Any]]:
        symbols = [f"S{at}" for at in range(self._draw(st.sampled_from([1, 3, 90])))]
        return self._known(
            {"type": "enum", "name": f"x.e{next(self._ids)}", "symbols": symbols}, st.sampled_from(symbols)
        )

    def _known(self, avro: Any, values: st.SearchStrategy[Any]) -> tuple[Any, st.SearchStrategy[Any]]:
        if "." in avro["name"]:
            self._named.append((avro["name"], values))
        return avro, values


def _size(value: int) -> int:
    return value.bit_length() // 8 + 1


def _shortest(value: int) -> bytes:
    return value.to_bytes(_size(abs(value)), "big", signed=True)


@st.composite
def schemas_with_records(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw a schema with a few records or with many."""
    avro, values = Schemas(draw).record(depth)
    avro["fields"].append({"name": "must", "type": "boolean"})
    values = st.tuples(values, st.booleans()).map(lambda each: each[0] | {"must": each[1]})
    some = draw(st.lists(values, min_size=1, max_size=6))
    copies = draw(st.sampled_from([1, 1, 30, 100]))
    order = draw(st.randoms(use_true_random=False))
    rows = some * copies
    order.shuffle(rows)
    return avro, rows


def without_logical_types(avro: Any) -> Any:
    """Return a schema without its logical types."""
    if isinstance(avro, dict):
        return {key: without_logical_types(each) for key, each in avro.items() if key != "logicalType"}
    return [without_logical_types(each) for each in avro] if isinstance(avro, list) else avro


def datums_of(avro: Any, rows: list[Any]) -> list[bytes]:
    """Return the Avro binary of each record, by fastavro."""
    schema = fastavro.parse_schema(without_logical_types(avro))
    datums = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, row)
        datums.append(stream.getvalue())
    return datums


def block_of(datums: list[bytes]) -> bytes:
    """Return the content of an Avro log block."""
    parts: Iterator[bytes] = (struct.pack(">i", len(each)) + each for each in datums)
    return struct.pack(">ii", 3, len(datums)) + b"".join(parts)
