"""Checks that make decoding of damaged Avro bytes end: a count may never outgrow the bytes."""

from __future__ import annotations

from typing import Any

from drawstring.schema.avro import full_name

_MIN_BYTES = {"null": 0, "float": 4, "double": 8}


def check_bounded(schema: Any) -> None:
    """Refuse a schema whose arrays could hold endless items in no bytes, or that refers to itself.

    Args:
        schema: an Avro schema as parsed from JSON.

    Raises:
        ValueError: it does.
    """
    if not _least_bytes(schema, {}, ""):
        raise ValueError("its records take no bytes")


def _least_bytes(avro: Any, named: dict[str, int], space: str) -> int:
    """Return a lower bound of the bytes that a value takes."""
    if isinstance(avro, str):
        return _least_bytes_of_name(avro, named, space)
    if isinstance(avro, list):
        return 1 + min(_least_bytes(branch, named, space) for branch in avro)
    kind = avro["type"]
    if kind == "array" and not _least_bytes(avro["items"], named, space):
        raise ValueError("an array's items take no bytes")
    if kind == "map":
        _least_bytes(avro["values"], named, space)
    if kind in ("array", "map"):
        return 1
    if kind in ("record", "fixed", "enum"):
        return _least_bytes_of_definition(avro, named, space)
    return _least_bytes(kind, named, space)


def _least_bytes_of_name(name: str, named: dict[str, int], space: str) -> int:
    if name in _PRIMITIVES:
        return _MIN_BYTES.get(name, 1)
    full = full_name({"name": name}, space)
    if full not in named:
        raise ValueError(f"type {name!r} is not defined before its use")
    return named[full]


def _least_bytes_of_definition(avro: dict[str, Any], named: dict[str, int], space: str) -> int:
    full = full_name(avro, space)
    inner = full.rpartition(".")[0]
    if avro["type"] == "fixed":
        named[full] = max(0, int(avro["size"]))
    elif avro["type"] == "enum":
        named[full] = 1
    else:
        named[full] = sum(_least_bytes(each["type"], named, inner) for each in avro["fields"])
    return named[full]


_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
