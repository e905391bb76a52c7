"""Keys that no option has: which known key one of them is a slip of, and what becomes of the others.

hoodie.upsert.shuffle.paralelism   two letters at most differ              refused, with the key that is meant
hoodie.write.datasource.operation  the same words in another order         refused, with the key that is meant
hoodie.record.key.columns          like a key that says what a record is   refused, with the key that is meant
hoodie.clean.partition.regex       such a key, or one of cleans, archiving
                                   or locks, without one segment           refused, with the key that is meant
hoodie.write.lock.my.timeout       it would be a protection                refused
hoodie.anything.else               has no effect                           one warning, or refused

The options that Apache Hudi 1.2 has: facts from its classes, as `scripts/hudi_options.py` lists them.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.concurrency import CONCURRENCY_OPTIONS, LOCK_OPTIONS
from drawstring.config.keys.ingest import INGEST_OPTIONS
from drawstring.config.keys.read import READ_OPTIONS, STORAGE_OPTIONS
from drawstring.config.keys.services import ARCHIVE_OPTIONS, CLEAN_OPTIONS
from drawstring.config.keys.unsupported import CHECKED_OPTIONS
from drawstring.config.keys.without_effect import options_without_effect
from drawstring.config.keys.write import IDENTITY_OPTIONS, UNKNOWN_KEYS, WRITE_OPTIONS
from drawstring.config.options.option import Given, text_of


@dataclass(frozen=True, slots=True)
class HudiOption:
    """An option of Hudi.

    Attributes:
        owner: simple name of the class that defines it.
        key: the key, in lower case.
        default: text of its default, None if it has none.
        alternatives: alternative keys, in lower case.
    """

    owner: str
    key: str
    default: str | None
    alternatives: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key and its alternatives."""
        return (self.key, *self.alternatives)


@cache
def hudi_options() -> tuple[HudiOption, ...]:
    """Return the options of Hudi, by class and key."""
    text = resources.files(__package__).joinpath("hudi_options.tsv").read_text(encoding="utf-8")
    return tuple(_option(line) for line in text.splitlines())


def _option(line: str) -> HudiOption:
    owner, key, default, others = [*line.split("\t"), "", ""][:4]
    alternatives = tuple(each.lower() for each in others.split(",") if each)
    return HudiOption(owner, key.lower(), default[1:] if default else None, alternatives)


_LOG: Final = logging.getLogger("drawstring.config")

_EDITS_MAX: Final = 2
_LIKE_IDENTITY: Final = 0.8
"""Similarity to a key that says what a record is, from which a key is taken for it: a table without keys or
order loses rows."""

_LIKE_OWN: Final = 0.75
_OF_PROTECTION: Final = ("hoodie.write.lock.", "hoodie.write.concurrency.", "hoodie.write.conflict.")
"""Beginnings of keys whose user relies on a lock or on checks for conflicts."""

_MUST_ACT: Final = (
    *IDENTITY_OPTIONS, *CLEAN_OPTIONS, *ARCHIVE_OPTIONS, *LOCK_OPTIONS, *CONCURRENCY_OPTIONS,
)  # fmt: skip
"""Options without whose effect rows or history are lost."""

_MEANT: Final = {"hoodie.clean.enabled": "hoodie.clean.automatic"}
"""Keys that are like a wrong one."""

_OWN: Final = "drawstring."
_WORDS: Final = re.compile(r"[._]")
_COLUMNS: Final = re.compile(r"columns?")
"""What many call the fields of Hudi's options."""

_FAMILIES: Final = re.compile(r"hoodie\.(datasource\.write\.|table\.)?")


def pass_over_unknown(name: str, given: Given) -> None:
    """Pass over a key that no option has, with one warning in a process, or refuse it.

    Args:
        name: the key as given.
        given: all options, of which `drawstring.options.unknown` says what becomes of such keys.

    Raises:
        InvalidError: it is close to a known key, or unknown keys are to be refused.
    """
    policy = next((text_of(value) for key, value in given.items() if key.lower() == UNKNOWN_KEYS), None)
    key = name.lower()
    near = close_key(key)
    if near is not None or key.startswith(_OF_PROTECTION) or (policy or "").lower() == "error":
        raise unknown_key(name, near)
    _warn(key)


def unknown_key(name: str, near: str | None = None) -> InvalidError:
    """Return the error for an unknown key, with the key that is meant as a suggestion.

    Args:
        name: the key as given.
        near: the key that is meant, if the caller knows it.
    """
    near = near or close_key(name.lower())
    hint = (
        f"Did you mean {near!r}?"
        if near
        else "`python -m drawstring.config.options.reference` prints all options."
    )
    return InvalidError(f"There is no option {name!r}. {hint}")


@cache
def close_key(key: str) -> str | None:
    """Return the known key of which an unknown one is a slip, None if it is like none.

    Args:
        key: in lower case.
    """
    known = known_keys()
    if key in known:
        return None
    dotted = key.replace("_", ".")
    for spelled in (dotted, f"hoodie.{dotted}"):
        if spelled in known:
            return spelled
    if found := _within_edits(key, known):
        return found
    words = sorted(_WORDS.split(key))
    moved = next((each for each in sorted(known) if sorted(_WORDS.split(each)) == words), None)
    if moved or key.startswith(_OWN):
        return moved or _like_own(key)
    return _MEANT.get(key) or _like_identity(key) or _without_segment(key)


@cache
def known_keys() -> frozenset[str]:
    """Return the keys of all options, of Hudi's and drawstring's own, in lower case."""
    own = (*WRITE_OPTIONS, *READ_OPTIONS, *CHECKED_OPTIONS, *STORAGE_OPTIONS, *INGEST_OPTIONS)
    of_own = (key for option in own for key in option.keys)
    return frozenset(
        (*of_own, *options_without_effect(), *(key for each in hudi_options() for key in each.keys))
    )


def _within_edits(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that differs in the fewest letters, if these are few enough."""
    near = [(_edits(key, each), each) for each in known if abs(len(key) - len(each)) <= _EDITS_MAX]
    edits, found = min(near, default=(_EDITS_MAX + 1, ""))
    return found if edits <= _EDITS_MAX else None


def _edits(one: str, other: str) -> int:
    """Return how many letters have to be added, dropped or replaced, or a number that is too large."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, there in enumerate(other, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != there)))
        if min(now) > _EDITS_MAX:
            return _EDITS_MAX + 1
        before = now
    return before[-1]


def _like_identity(key: str) -> str | None:
    # Advice must not lead to fewer columns or rows: what drops them is meant only by who says so.
    keys = [
        each for option in IDENTITY_OPTIONS for each in option.keys if "drop" not in each or "drop" in key
    ]
    return _closest((key, _COLUMNS.sub("field", key)), keys, _LIKE_IDENTITY)


def _without_segment(key: str) -> str | None:
    """Return the key of what must not be lost from which one segment is missing."""
    given = _FAMILIES.sub("", key)
    keys = (each for option in _MUST_ACT for each in option.keys if "drop" not in each)
    return next((each for each in keys if given in _shortened(_FAMILIES.sub("", each))), None)


def _shortened(key: str) -> set[str]:
    """Return a key without each one of its segments."""
    segments = key.split(".")
    return {".".join(segments[:at] + segments[at + 1 :]) for at in range(len(segments))} - {""}


def _like_own(key: str) -> str | None:
    return _closest((key,), [each for each in known_keys() if each.startswith(_OWN)], _LIKE_OWN)


def _closest(spellings: tuple[str, ...], keys: Collection[str], cutoff: float) -> str | None:
    """Return the key that is most like one of some spellings, without the beginnings that many keys have."""
    by_rest = {_FAMILIES.sub("", each): each for each in keys}
    best: tuple[float, str] = (0.0, "")
    for spelled in spellings:
        rest = _FAMILIES.sub("", spelled)
        for found in difflib.get_close_matches(rest, by_rest, n=1, cutoff=cutoff):
            best = max(best, (difflib.SequenceMatcher(None, rest, found).ratio(), by_rest[found]))
    return best[1] or None


@cache
def _warn(key: str) -> None:
    """Warn once in a process: each batch of a stream has the same options."""
    _LOG.warning(
        "There is no option %r, in Apache Hudi neither: it has no effect. %s=error refuses such options.",
        key,
        UNKNOWN_KEYS,
    )
