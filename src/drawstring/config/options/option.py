"""The definition of an option: key, allowed values, and parsing of its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table_types import split_list

Value: TypeAlias = str | bool | int | float | tuple[str, ...] | None
"""The parsed value of an option; None if it was not given and has no default."""

Given: TypeAlias = Mapping[str, object]
"""Options as a user gives them: texts, or equivalent Python values."""


class Scope(StrEnum):
    """What an option applies to."""

    WRITE = "write"
    READ = "read"
    STORAGE = "storage"


class Kind(StrEnum):
    """The type of an option's value."""

    TEXT = "text"
    FLAG = "true or false"
    NUMBER = "whole number"
    FRACTION = "number"
    LIST = "comma list"


@dataclass(frozen=True, slots=True)
class Option:
    """A key that drawstring supports, or whose value it checks.

    Attributes:
        key: the key in lower case.
        doc: its description for the reference page.
        scope: whether it applies to writes, reads or the storage.
        kind: type of its value.
        default: the value when it is not given.
        alternatives: alternative keys, from older releases or the table's properties.
        choices: allowed values, compared case-insensitively; empty for any.
        spellings: other spellings of choices, flags or numbers, and the choice of each.
        only: values that this release supports, in upper case, if it does not support all.
        field: the attribute in `WriteOptions` or `ReadOptions`, empty if the value is only checked.
        stored_as: the key under which a new table stores the value, empty if it does not.
        minimum: smallest number.
        warning: what to tell users who switch the option on, empty for nothing.
        is_of_writes: whether an option of reads applies to writes as well.
        keeps_blanks: whether blanks around a text are part of it.
    """

    key: str
    doc: str
    scope: Scope = Scope.WRITE
    kind: Kind = Kind.TEXT
    default: Value = None
    alternatives: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    field: str = ""
    stored_as: str = ""
    minimum: int = 1
    warning: str = ""
    is_of_writes: bool = False
    keeps_blanks: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The key and its alternatives."""
        return (self.key, *self.alternatives)

    def applies_to(self, scope: Scope) -> bool:
        """Return whether the option belongs to the options of a scope."""
        return self.scope is scope or (self.is_of_writes and scope is Scope.WRITE)

    def parse(self, key: str, text: str) -> Value:
        """Return the value of a text.

        Args:
            key: the key under which the text was given.
            text: the text.

        Raises:
            InvalidError: the text is not a value of the option.
            UnsupportedError: the value is not supported by this release.
        """
        value = _PARSERS[self.kind](self, key, text if self.keeps_blanks else text.strip())
        if self.only and text.strip() and _spelled(value).upper() not in self.only:
            raise UnsupportedError(
                f"{key}={text} is not supported by this release. "
                + (f"Use {' or '.join(self.only)}." if self.only != (NOTHING,) else "Drop the option.")
            )
        return value


NOTHING: Final = "\0"
"""In `Option.only`: no value is supported."""


def text_of(value: object) -> str | None:
    """Return the text that is equivalent to a Python value, None for None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value)


def _spelled(value: Value) -> str:
    return text_of(value) or ""


def _text(option: Option, key: str, text: str) -> str:
    if not option.choices:
        return text
    for choice in option.choices:
        if choice.upper() == text.upper():
            return choice
    for spelling, choice in option.spellings:
        if spelling.upper() == text.upper():
            return choice
    possible = [choice for choice in option.choices if choice.upper() in option.only] or option.choices
    raise InvalidError(f"{key} is {text!r}. Choose one of {', '.join(possible)}.")


def _flag(option: Option, key: str, text: str) -> bool:
    meant = dict(option.spellings).get(text.upper(), text.lower())
    if meant not in ("true", "false"):
        names = dict(option.spellings) if key != option.key else {}
        raise InvalidError(f"{key} is {text!r}. Give {' or '.join(names or ('true', 'false'))}.")
    return meant == "true"


def _number(option: Option, key: str, text: str) -> int:
    text = dict(option.spellings).get(text.upper(), text)
    try:
        number = int(text)
    except ValueError:
        raise InvalidError(f"{key} is {text!r}. Give a whole number.") from None
    if number < option.minimum:
        raise InvalidError(f"{key} is {number}. Give a number of at least {option.minimum}.")
    if option.choices and text not in option.choices:
        raise InvalidError(f"{key} is {number}. Choose one of {', '.join(option.choices)}.")
    return number


def _fraction(option: Option, key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidError(f"{key} is {text!r}. Give a number.") from None
    if not 0 <= number < math.inf:
        raise InvalidError(f"{key} is {text}. Give a number of at least 0.")
    return number


def _list(option: Option, key: str, text: str) -> tuple[str, ...]:
    parts = split_list(text)
    if len(set(parts)) != len(parts):
        raise InvalidError(f"{key} is {text!r}, which has a name twice. Give each name once.")
    return parts


_PARSERS: Final[Mapping[Kind, Callable[[Option, str, str], Value]]] = {
    Kind.TEXT: _text,
    Kind.FLAG: _flag,
    Kind.NUMBER: _number,
    Kind.FRACTION: _fraction,
    Kind.LIST: _list,
}


def class_names(package: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that an option accepts for classes of Hudi: each with its package, and alone."""
    return tuple(f"{prefix}{name}" for name in names for prefix in (package, ""))
