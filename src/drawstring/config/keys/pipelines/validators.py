"""Options of the validators that a write asks before its commit, and the registry of a user's own ones.

Hudi's validators are Java classes. Those that run SQL are known here by their names; functions take the place
of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option

_PREFIX: Final = "hoodie.precommit.validators"
EQUALITY_QUERIES: Final = f"{_PREFIX}.equality.sql.queries"
INEQUALITY_QUERIES: Final = f"{_PREFIX}.inequality.sql.queries"
SINGLE_VALUE_QUERIES: Final = f"{_PREFIX}.single.value.sql.queries"
TABLE_VARIABLE: Final = "<TABLE_NAME>"
"""Stands in the queries for the table."""

EQUALITY: Final = "SqlQueryEqualityPreCommitValidator"
INEQUALITY: Final = "SqlQueryInequalityPreCommitValidator"
SINGLE_VALUE: Final = "SqlQuerySingleResultPreCommitValidator"
_PACKAGE: Final = "org.apache.hudi.client.validator."

Validator: TypeAlias = Callable[[Any, Any], "str | None"]
"""A function of two scans, the rows before and after a commit, that returns what is wrong or None."""

_validators: dict[str, Validator] = {}


@dataclass(frozen=True, slots=True)
class PreCommitValidators:
    """Settings of the validators.

    Attributes:
        names: Hudi's classes, or names of registered functions; empty for none.
        equality, inequality: queries whose results have to stay, or have to change, separated by `;`.
        single_value: queries with the only value of each behind `#`, separated by `;`.
        failure_policy: `FAIL`, or `WARN_LOG`: whether a write whose validator fails is rolled back.
    """

    names: tuple[str, ...]
    equality: str
    inequality: str
    single_value: str
    failure_policy: str

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in _validators and kind_of(name) not in self.queries:
                raise UnsupportedError(
                    f"There is no validator {name}. Use one of"
                    f" {', '.join(_PACKAGE + each for each in self.queries)}, or register a"
                    " function under the name with drawstring.register_validator."
                )
            if name not in _validators and not self.queries[kind_of(name)][1]:
                raise InvalidError(
                    f"The validator {name} has no query. Give at least one in"
                    f" {self.queries[kind_of(name)][0]}."
                )

    @property
    def queries(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Option and queries of each kind of validator that runs SQL."""
        texts = {
            EQUALITY: (EQUALITY_QUERIES, self.equality),
            INEQUALITY: (INEQUALITY_QUERIES, self.inequality),
            SINGLE_VALUE: (SINGLE_VALUE_QUERIES, self.single_value),
        }
        return {
            kind: (key, tuple(each.strip() for each in text.split(";") if each.strip()))
            for kind, (key, text) in texts.items()
        }


def kind_of(name: str) -> str:
    """Return the name of a class without its package."""
    return name.removeprefix(_PACKAGE)


def register_validator(name: str, validator: Validator) -> None:
    """Register a function that checks what a write is about to commit.

    Writes that name it in `hoodie.precommit.validators` call it before their commit. Registering a name again
    replaces the function.

    Args:
        name: the name in the option, such as the Java class that it stands for.
        validator: called with two scans of the partitions that the write changes: their rows before the
            commit, and after it. It returns a text that says what is wrong, or None if nothing is; an
            exception counts as the former. It runs in the process of the write, which holds the table lock.

    Raises:
        InvalidError: the name is empty, or the validator is not callable.

    Example:
        >>> def no_row_is_lost(before, after):
        ...     lost = before.to_arrow().num_rows - after.to_arrow().num_rows
        ...     return f"{lost} rows are lost" if lost > 0 else None
        >>> drawstring.register_validator("com.example.NoRowIsLost", no_row_is_lost)
    """
    untyped_name: Any = name
    if not isinstance(untyped_name, str) or not untyped_name.strip() or "," in untyped_name:
        raise InvalidError(
            f"A validator cannot be named {name!r}. Give a text that is not empty, without commas."
        )
    if not callable(validator):
        raise InvalidError(
            f"The validator {name!r} is a {type(validator).__name__}, which is not callable. Give a function."
        )
    _validators[name.strip()] = validator


def registered_validator(name: str) -> Validator | None:
    """Return the function of a name, None if none is registered."""
    return _validators.get(name)


VALIDATOR_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        _PREFIX,
        "Validators that a write asks before its commit: Hudi's classes that run SQL, or names given to"
        " `register_validator`.",
        kind=Kind.LIST,
        default=(),
        field="names",
    ),
    Option(
        EQUALITY_QUERIES,
        f"Queries of `{EQUALITY}`, separated by `;`: a commit must not change their results. They read the"
        f" partitions that it changes as `{TABLE_VARIABLE}`.",
        default="",
        field="equality",
    ),
    Option(
        INEQUALITY_QUERIES,
        f"Queries of `{INEQUALITY}`, separated by `;`: a commit has to change their results.",
        default="",
        field="inequality",
    ),
    Option(
        SINGLE_VALUE_QUERIES,
        f"Queries of `{SINGLE_VALUE}`, separated by `;`, each with its only value after the commit behind"
        " `#`.",
        default="",
        field="single_value",
    ),
    Option(
        f"{_PREFIX}.failure.policy",
        "Whether a write is rolled back when a validator fails, or a warning is logged.",
        default="FAIL",
        choices=("FAIL", "WARN_LOG"),
        field="failure_policy",
    ),
)
