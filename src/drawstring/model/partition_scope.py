"""The partitions that the address of a read names: a folder of the table, or a pattern.

table/city=oslo      this partition, and those in the folder
table/2024/*         partitions in the folder
table/*/*            the folders of two levels, or one level and the files in it
table/{lima,oslo}    either
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_MARKS: Final = frozenset("*?[{")
_ALL_FILES: Final = re.compile(r"\*(\.\w+)?")
_PART: Final = re.compile(r"(?P<any>\*+)|(?P<one>\?)|\[(?P<set>[^\]]+)\]|\{(?P<choice>[^}]+)\}")


@dataclass(frozen=True, slots=True)
class PartitionScope:
    """Some partitions of a table.

    Attributes:
        pattern: a folder below the table's root, or a pattern as Hadoop has them: `*` for any text within a
            folder name, `?` for a character, `[abc]` and `{one,other}` for a choice. The names of the files
            may follow as `*`.
    """

    pattern: str
    _levels: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the levels of the pattern."""
        levels = tuple(re.compile(_expression(part)) for part in _parts(self.pattern))
        object.__setattr__(self, "_levels", levels)

    def admits(self, path: str) -> bool:
        """Return whether a partition belongs to the scope."""
        folders, levels = _parts(path), self._levels
        if len(levels) == len(folders) + 1 and _ALL_FILES.fullmatch(_parts(self.pattern)[-1]):
            levels = levels[:-1]
        if len(levels) > len(folders):
            return False
        return all(level.fullmatch(name) for level, name in zip(levels, folders, strict=False))

    def of(self, paths: Iterable[str]) -> list[str]:
        """Return those of some partitions that belong to the scope."""
        return [path for path in paths if self.admits(path)]


def is_pattern(path: str) -> bool:
    """Return whether a path has marks of a pattern."""
    return not _MARKS.isdisjoint(path)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _expression(level: str) -> str:
    """Return the regular expression of a level of a pattern."""
    parts, end = [], 0
    for match in _PART.finditer(level):
        parts.append(re.escape(level[end : match.start()]))
        parts.append(_meaning(match))
        end = match.end()
    return "".join(parts) + re.escape(level[end:])


def _meaning(match: re.Match[str]) -> str:
    if match["any"]:
        return ".*"
    if match["one"]:
        return "."
    if match["set"]:
        is_other = match["set"][0] in "!^"
        letters = match["set"].removeprefix(match["set"][0]) if is_other else match["set"]
        escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", letters)
        return f"[{'^' if is_other else ''}{escaped}]"
    return f"(?:{'|'.join(_expression(choice) for choice in match['choice'].split(','))})"
