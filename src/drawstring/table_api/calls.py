"""The context, the options and the errors of calls on an open table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from drawstring.base.lazy import lazy_import
from drawstring.timeline.properties import load_config

if TYPE_CHECKING:
    from drawstring.config.keywords import with_defaults, with_keywords
    from drawstring.config.options.write_options import WriteOptions, check_place
    from drawstring.config.table_config import TableConfig
    from drawstring.query.table_state import TableFacts, facts_of
    from drawstring.services.table_services import service_options
    from drawstring.timeline.store import TimelineStore
    from drawstring.timeline.timeline import Timeline
    from drawstring.txn.table_context import TableContext
else:
    lazy_import(
        globals(),
        check_place="drawstring.config.options.write_options:check_place",
        with_defaults="drawstring.config.keywords:with_defaults",
        with_keywords="drawstring.config.keywords:with_keywords",
        facts_of="drawstring.query.table_state:facts_of",
        TimelineStore="drawstring.timeline.store:TimelineStore",
        service_options="drawstring.services.table_services:service_options",
    )

Options: TypeAlias = Mapping[str, Any] | None
"""Options by Hudi's keys, with texts or Python values."""

Columns: TypeAlias = str | Sequence[str] | None
"""Names of columns; None for all."""

_T = TypeVar("_T")


class TableCalls:
    """Gives the calls of a table and of its groups their context, options and errors.

    Args:
        context: storage, engine and clock of the table.
        errors: adds the table to every error of a block.
    """

    __slots__ = ("context", "errors")

    def __init__(self, context: TableContext, errors: Callable[[], AbstractContextManager[None]]) -> None:
        self.context = context
        self.errors = errors

    @property
    def uri(self) -> str:
        """The address of the table's root."""
        return self.context.storage.spec.uri

    @property
    def config(self) -> TableConfig:
        """The properties of the table, read afresh."""
        with self.errors():
            return load_config(self.context.storage)

    def timeline(self) -> Timeline:
        """Load the active timeline."""
        return TimelineStore(self.context.storage, self.config, self.context.clock).load()

    def facts(self) -> TableFacts:
        """Load properties, timeline and schema of the table."""
        return facts_of(self.context)

    def each(self, items: Iterator[_T]) -> Iterator[_T]:
        """Yield items and add the table to the errors of the iteration."""
        with self.errors():
            yield from items

    def options(self, verb: str, options: Options, **keywords: Any) -> WriteOptions:
        """Return the options of a service: those of the call, and those that the table was opened with."""
        return service_options(self.config, self.given(verb, options, **keywords))

    def given(self, verb: str, options: Options, **keywords: Any) -> dict[str, Any]:
        """Return the options of a call by their keys, and those that the table was opened with."""
        given = with_defaults(self.context.defaults, with_keywords(verb, options, keywords))
        check_place(given, self.uri)
        return given


class TableGroup:
    """Calls on a table that are not verbs of rows, such as `table.services`.

    Args:
        calls: context, options and errors of calls on the table.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: TableCalls) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._calls.uri}>"
