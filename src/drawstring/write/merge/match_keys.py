"""What source and target of a merge are matched on: equal columns, turned into one text to join by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.expressions.column_names import path_in

MatchedOn: TypeAlias = "str | Sequence[str] | Mapping[str, str] | None"

_NAME: Final = r"(?:`[^`]+`|[\w$]+)"
_EQUAL: Final = re.compile(rf"\s*({_NAME})\s*\.\s*({_NAME})\s*=\s*({_NAME})\s*\.\s*({_NAME})\s*")
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)


def matched_columns(
    on: MatchedOn, aliases: tuple[str, str], source: pa.Schema, target: pa.Schema, default: Sequence[str]
) -> dict[str, str]:
    """Return by column of the target the column of the source that equals it.

    Args:
        on: names of columns that both have, source columns by target column, or equalities as in
            `"target.id = source.id and target.day = source.day"`.
        aliases: what the text calls source and target.
        source, target: their columns.
        default: the columns when nothing is said: those of the record key.

    Raises:
        InvalidError: a column that is not there, or a text that is not made of such equalities.
        UnsupportedError: columns of a type that is not compared for equality.
    """
    pairs: Mapping[str, str]
    if isinstance(on, Mapping):
        pairs = on
    elif isinstance(on, str) and ("=" in on or not _is_name(on, target)):
        pairs = dict(_equality(part, aliases) for part in _AND.split(on))
    else:
        names = [on] if isinstance(on, str) else list(default if on is None else on)
        pairs = {name: name for name in names}
    if not pairs:
        raise InvalidError("a merge needs at least one column to match on: name the record key")
    found = {path_in([ours], target)[0]: _of_source(theirs, source) for ours, theirs in pairs.items()}
    for ours, theirs in found.items():
        _check_comparable(ours, target.field(ours).type, source.field(theirs).type)
    return found


def _is_name(text: str, target: pa.Schema) -> bool:
    """Tell whether a text is meant to be a column, there or not, and no condition."""
    return text.lower() in map(str.lower, target.names) or re.fullmatch(_NAME, text) is not None


def _equality(text: str, aliases: tuple[str, str]) -> tuple[str, str]:
    found = _EQUAL.fullmatch(text)
    if found is None or {found[1].strip("`"), found[3].strip("`")} != set(aliases):
        raise InvalidError(
            f"a merge matches on equal columns, as in '{aliases[1]}.id = {aliases[0]}.id', joined by and;"
            f" {text.strip()!r} is no such equality: put other conditions into the clauses"
        )
    sides = {found[1].strip("`"): found[2].strip("`"), found[3].strip("`"): found[4].strip("`")}
    return sides[aliases[1]], sides[aliases[0]]


def _of_source(name: str, source: pa.Schema) -> str:
    spelled = {each.lower(): each for each in source.names}
    if name in source.names or name.lower() in spelled:
        return name if name in source.names else spelled[name.lower()]
    raise InvalidError(
        f"the source has no column {name}, which is matched on; it has {', '.join(source.names)}"
    )


def _check_comparable(name: str, ours: pa.DataType, theirs: pa.DataType) -> None:
    if any(pt.is_floating(kind) or pt.is_nested(kind) or pt.is_binary(kind) for kind in (ours, theirs)):
        raise UnsupportedError(
            f"column {name} is {ours} in the table and {theirs} in the source: a merge matches on whole"
            " numbers, decimals, texts, dates, times and booleans"
        )
    is_text = pt.is_string(ours)
    if is_text != bool(pt.is_string(theirs) or pt.is_large_string(theirs)):
        raise InvalidError(
            f"column {name} is matched on, and is {ours} in the table and {theirs} in the source: cast it to"
            f" {ours}"
        )


def join_text(columns: Sequence[pa.Array], absent: str) -> pa.Array:
    """Return one text a row that stands for its values, so that equal texts mean equal values.

    Args:
        columns: with the same types on both sides.
        absent: the text of rows where one of the values is null: null equals nothing.
    """
    texts: list[Any] = [column.cast(pa.string()) for column in columns]
    sized = [part for text in texts[:-1] for part in (pc.binary_length(text).cast(pa.string()), text)]
    joined = pc.binary_join_element_wise(pa.scalar("="), *sized, texts[-1], ":")
    return joined.fill_null(absent)
