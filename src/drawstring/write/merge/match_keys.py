"""Join keys of a merge: the equal columns of source and target, encoded as one text."""

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
    """Return the matching source column by target column.

    Args:
        on: names of columns that both have, source columns by target column, or equalities as in
            `"target.id = source.id and target.day = source.day"`.
        aliases: names of source and target in the text.
        source, target: schemas of the two.
        default: columns if `on` is None: those that identify a row.

    Raises:
        InvalidError: a column does not exist, or the text does not consist of such equalities.
        UnsupportedError: a column has a type that is not compared for equality.
    """
    pairs: Mapping[str, str]
    if isinstance(on, Mapping):
        pairs = on
    elif isinstance(on, str) and ("=" in on or not _is_name(on, target)):
        pairs = dict(_equality(part, aliases) for part in _AND.split(on))
    else:
        if on is None:
            _check_has(default, source)
        names = [on] if isinstance(on, str) else list(default if on is None else on)
        pairs = {name: name for name in names}
    if not pairs:
        raise InvalidError("The merge has no column to match on. Give the record key columns.")
    matches = {path_in([ours], target)[0]: _of_source(theirs, source) for ours, theirs in pairs.items()}
    for ours, theirs in matches.items():
        _check_comparable(ours, target.field(ours).type, source.field(theirs).type)
    return matches


def _is_name(text: str, target: pa.Schema) -> bool:
    """Return whether a text is a column name, existing or not, rather than a condition."""
    return text.lower() in map(str.lower, target.names) or re.fullmatch(_NAME, text) is not None


def _equality(text: str, aliases: tuple[str, str]) -> tuple[str, str]:
    match = _EQUAL.fullmatch(text)
    if match is None or {match[1].strip("`"), match[3].strip("`")} != set(aliases):
        raise InvalidError(
            f"{text.strip()!r} is not an equality of columns. Match on equalities joined by and, as in"
            f" '{aliases[1]}.id = {aliases[0]}.id', and put other conditions into the clauses."
        )
    sides = {match[1].strip("`"): match[2].strip("`"), match[3].strip("`"): match[4].strip("`")}
    return sides[aliases[1]], sides[aliases[0]]


def _of_source(name: str, source: pa.Schema) -> str:
    spelled = {each.lower(): each for each in source.names}
    if name in source.names or name.lower() in spelled:
        return name if name in source.names else spelled[name.lower()]
    raise InvalidError(f"The source has no column {name} to match on. Use one of {', '.join(source.names)}.")


def _check_has(columns: Sequence[str], source: pa.Schema) -> None:
    spelled = {name.lower() for name in source.names}
    missing = [name for name in columns if name.lower() not in spelled]
    if missing:
        raise InvalidError(
            f"The source lacks {', '.join(missing)}. Without on=, rows match by the columns that identify a"
            f" row of the table: {', '.join(columns)}. Add the column, or give on=."
        )


def _check_comparable(name: str, ours: pa.DataType, theirs: pa.DataType) -> None:
    if any(pt.is_floating(kind) or pt.is_nested(kind) or pt.is_binary(kind) for kind in (ours, theirs)):
        raise UnsupportedError(
            f"Column {name} is {ours} in the table and {theirs} in the source. Match on columns of integers,"
            " decimals, strings, dates, times or booleans."
        )
    is_text = pt.is_string(ours)
    if is_text != bool(pt.is_string(theirs) or pt.is_large_string(theirs)):
        raise InvalidError(
            f"Column {name}, which is matched on, is {ours} in the table and {theirs} in the source. Cast it"
            f" to {ours}."
        )


def join_text(columns: Sequence[pa.Array], absent: str) -> pa.Array:
    """Encode the values of each row as one text, so that equal texts mean equal values.

    Args:
        columns: columns with the same types on both sides.
        absent: text of rows with a null value: null equals nothing.
    """
    texts: list[Any] = [column.cast(pa.string()) for column in columns]
    sized = [part for text in texts[:-1] for part in (pc.binary_length(text).cast(pa.string()), text)]
    joined = pc.binary_join_element_wise(pa.scalar("="), *sized, texts[-1], ":")
    return joined.fill_null(absent)
