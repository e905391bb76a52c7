r"""Patterns of paths in incremental queries, as Hadoop's `GlobPattern` has them.

| pattern | matches |
|---|---|
| `*`, `?` | any text, also across folders; one character |
| `[ab]`, `[!ab]`, `[^ab]` | one character of these, one other character |
| `{a,b}` | one of these |
| `\` | the next character as it is |

The pattern of an incremental query is that of the end of a path: it is matched as if it began with `*`. It is
matched with the whole address of a file, as Hudi does, so a folder above the table counts, too.
"""

from __future__ import annotations

import re
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.read import PATH_GLOB
from drawstring.model.files import FileSlice

_PLAIN: Final = {"*": ".*", "?": ".", "{": "(?:", "[": "[", "]": "]"}


class PathGlob:
    """A pattern of the paths of data files.

    Args:
        text: the pattern.

    Raises:
        InvalidError: it is no pattern.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidError(
                f"path_glob is {text!r}. Give a pattern of paths as text, for example '/year=2026/*'."
            )
        try:
            self._pattern = re.compile(_expression(f"*{text}"), re.DOTALL)
        except re.error as error:
            raise InvalidError(
                f"{PATH_GLOB}={text!r} is no pattern of paths ({error}). Write for example /year=2026/*/*."
            ) from error

    def has(self, file_slice: FileSlice, root: str) -> bool:
        """Return whether the base file of a slice matches, or its newest log file if it has no base file.

        Args:
            file_slice: the slice.
            root: address of the table.
        """
        file = file_slice.base or file_slice.logs[-1]
        return self._pattern.fullmatch(f"{root.rstrip('/')}/{file.status.path}") is not None


def matches_folder(glob: str, folder: str) -> bool:
    """Return whether a pattern of folders, in which `*` stays within one folder, matches a whole path.

    Args:
        glob: the pattern, relative to what the path is relative to.
        folder: the path; empty for the root.

    Raises:
        InvalidError: it is no pattern.
    """
    patterns, names = glob.strip("/").split("/"), folder.split("/")
    try:
        pairs = [
            (re.compile(_expression(one), re.DOTALL), name)
            for one, name in zip(patterns, names, strict=False)
        ]
    except re.error as error:
        raise InvalidError(
            f"{glob!r} is no pattern of folders ({error}). Write for example day=*."
        ) from error
    return len(patterns) == len(names) and all(pattern.fullmatch(name) for pattern, name in pairs)


def _expression(glob: str) -> str:
    """Return a glob as a regular expression."""
    parts, place, depth, is_in_set = [], 0, 0, False
    while place < len(glob):
        one, place = glob[place], place + 1
        if one == "\\" and place < len(glob):
            parts.append(re.escape(glob[place]))
            place += 1
        elif is_in_set and one not in "]\\":
            parts.append("^" if one == "!" and parts[-1] == "[" else one)
        elif one == "," and depth:
            parts.append("|")
        elif one == "}" and depth:
            parts.append(")")
            depth -= 1
        else:
            parts.append(_PLAIN.get(one) or re.escape(one))
            depth += one == "{"
            is_in_set = one == "[" or (is_in_set and one != "]")
    return "".join(parts)
