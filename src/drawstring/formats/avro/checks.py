"""Checks of Avro schemas that bound the decoding of damaged bytes: values cannot outgrow their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from drawstring.base.resources import AVRO_TYPES_MAX
from drawstring.schema.avro import full_name, known_name

_EMPTY_MAX = 1_000
_LEAST_BYTES = {"null": 0, "float": 4, "double": 8}


def check_bounded(schema: Any) -> None:
    """Refuse a schema whose values could outgrow the bytes that they are decoded from.

    Such a schema has arrays whose items take no bytes, is recursive, expands to very many types, or has very
    many fields that take no bytes.

    Args:
        schema: an Avro schema as parsed from JSON.

    Raises:
        ValueError: the schema is refused.
    """
    if not _Bounds().of(schema, "").least_bytes:
        raise ValueError("its records take no bytes")


@dataclass(frozen=True, slots=True)
class _Bound:
    """Bounds of a type.

    Attributes:
        least_bytes: a lower bound of the encoded size of a value.
        types: number of types that it expands to.
        empty: largest number of fields of a value that take no bytes.
    """

    least_bytes: int
    types: int
    empty: int = 0


@dataclass(slots=True)
class _Bounds:
    """Computes bounds of types, and stores those of named types."""

    named: dict[str, _Bound] = field(default_factory=dict)

    def of(self, avro: Any, space: str) -> _Bound:
        if isinstance(avro, str):
            return self.of_name(avro, space)
        if isinstance(avro, list):
            branches = [self.of(branch, space) for branch in avro]
            return _bound(1 + min(branch.least_bytes for branch in branches), branches)
        kind = avro["type"]
        if kind in ("array", "map"):
            item = self.of(avro["items" if kind == "array" else "values"], space)
            if kind == "array" and not item.least_bytes:
                raise ValueError("an array's items take no bytes")
            return _bound(1, [item])
        if kind in ("record", "fixed", "enum"):
            return self.of_definition(avro, space)
        return self.of(kind, space)

    def of_name(self, name: str, space: str) -> _Bound:
        if name in PRIMITIVES:
            return _Bound(_LEAST_BYTES.get(name, 1), 1)
        full = known_name(name, space, self.named)
        if full not in self.named:
            raise ValueError(f"type {name!r} is not defined before its use")
        return self.named[full]

    def of_definition(self, avro: dict[str, Any], space: str) -> _Bound:
        full = full_name(avro, space)
        inner = full.rpartition(".")[0]
        if avro["type"] == "fixed":
            bound = _Bound(max(0, int(avro["size"])), 1)
        elif avro["type"] == "enum":
            bound = _Bound(1, 1)
        else:
            fields = [self.of(each["type"], inner) for each in avro["fields"]]
            bound = _bound(sum(each.least_bytes for each in fields), fields)
            bound = replace(bound, empty=bound.empty + sum(not each.least_bytes for each in fields))
            if bound.empty > _EMPTY_MAX:
                raise ValueError(f"a record has more than {_EMPTY_MAX} fields that take no bytes")
        self.named[full] = bound
        return bound


def _bound(least_bytes: int, inner: list[_Bound]) -> _Bound:
    types = 1 + sum(each.types for each in inner)
    if types > AVRO_TYPES_MAX:
        raise ValueError(f"it expands to more than {AVRO_TYPES_MAX} types")
    return _Bound(least_bytes, types, sum(each.empty for each in inner))


PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
