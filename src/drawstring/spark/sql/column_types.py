"""The types VECTOR(n) and BLOB in statements that define columns, which Spark's grammar lacks."""

from __future__ import annotations

import re
from typing import Final

from drawstring.spark.workers.rows import stand_in

DEFINES: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/)[\s\S])*\*/)*(?:(?:CREATE|REPLACE)\s(?=.*\bUSING\s+`?(?:hudi|drawstring)\b)"
    r"|ALTER\s+TABLE\s+(\S+)\s+(?:ADD|REPLACE)\s+COLUMNS?\b).*\b(?:VECTOR|BLOB)\b.*",
    re.IGNORECASE | re.DOTALL,
)
TOKEN: Final = re.compile(
    r"--[^\n]*|/\*[\s\S]*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|VECTOR\s*\([^()]*\)|\w+|\s+|.",
    re.IGNORECASE,
)
"""A comment, a text, a name or a word of SQL; a type VECTOR(n) is one."""

_TYPE: Final = re.compile(r"VECTOR\s*(?:\([^()]*\))?|BLOB", re.IGNORECASE)
_ALTERS: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/)[\s\S])*\*/)*ALTER\b", re.IGNORECASE)
_AFTER_COLUMNS: Final = frozenset({"USING", "AS"})
"""Words of CREATE TABLE after which no columns are defined."""

_NO_NAMES: Final = frozenset({"TABLE", "EXISTS", "COLUMN", "AFTER", "AS"})
"""Words before a name."""

_NAME: Final = re.compile(r"\w+|`[^`]*`")


def with_stand_ins(statement: str) -> str:
    """Return a statement with a struct in the place of each type VECTOR(n) and BLOB (`stand_in`).

    A word is a type after the name of a column, and in `<>` unless a colon or another word makes it a name.
    Only the list of columns is looked at: a query of CREATE TABLE AS SELECT stays as it is.
    """
    tokens = TOKEN.findall(statement)
    told = [place for place, token in enumerate(tokens) if not is_space(token)]
    depth = parentheses = 0
    is_create = not _ALTERS.match(statement)
    for at, place in enumerate(told):
        token, before = tokens[place], tokens[told[at - 1]] if at else ""
        after = tokens[told[at + 1]] if at + 1 < len(told) else ""
        depth += (token == "<") - (token == ">")
        parentheses += (token == "(") - (token == ")")
        if is_create and parentheses == 0 and (token == ")" or token.upper() in _AFTER_COLUMNS):
            break
        if not _TYPE.fullmatch(token):
            continue
        is_inner = depth > 0 and after in (",", ">") and before in ("<", ":", ",")
        if is_inner or (_NAME.fullmatch(before) and before.upper() not in _NO_NAMES):
            tokens[place] = stand_in(" ".join(token.upper().split()))
    return "".join(tokens)


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_space(token: str) -> bool:
    """Return whether a token is white space or a comment."""
    return token.isspace() or token.startswith(("--", "/*"))
