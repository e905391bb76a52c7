"""What a process that looks after tables does for each of them; `write.duties` is the registry.

A duty does what is due and says in a line what that was. One that fails, in whatever way, leaves the others
to run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.model.instant import Action
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult
from drawstring.services.archiving.run import archive
from drawstring.services.cleaning.run import clean
from drawstring.services.clustering import run as clustering
from drawstring.services.compaction import run as compaction
from drawstring.services.inline_clustering import commits_since_clustering
from drawstring.services.progress import Progress
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableState

Result: TypeAlias = CommitResult | CleanResult | ArchiveResult
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Upkeep:
    """A table to look after.

    Attributes:
        state: the table.
        config: its settings.
        options: Hudi's options of services.
        progress: told of every piece of work that is done.
    """

    state: TableState
    config: TableConfig
    options: WriteOptions
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a duty that had something to do.

    Attributes:
        duty: its name.
        result: what it did; None if it failed.
        error: why it failed.
    """

    duty: str
    result: Result | None = None
    error: Exception | None = None


Duty: TypeAlias = Callable[[Upkeep], Result | None]
"""Does what is due, and returns what it did, None for nothing."""


def _compact(upkeep: Upkeep) -> Result | None:
    """Run what is planned, and plan and run what is due by the triggers."""
    if not upkeep.config.is_merge_on_read:
        return None
    state, options, progress = upkeep.state, upkeep.options, upkeep.progress
    result = compaction.run_pending(state, options, progress, (Action.COMPACTION,))
    scheduled = compaction.schedule_compaction(state, options, when_due=True)
    if scheduled is None:
        return result
    return compaction.run_compaction(state, scheduled, options, progress, is_own=True)


def _compact_logs(upkeep: Upkeep) -> Result | None:
    """Run what is planned, and with `hoodie.log.compaction.inline` what has many log blocks."""
    if not upkeep.config.is_merge_on_read:
        return None
    if upkeep.options.compaction.log_inline:
        return compaction.log_compact(upkeep.state, upkeep.options, upkeep.progress)
    return compaction.run_pending(upkeep.state, upkeep.options, upkeep.progress, (Action.LOG_COMPACTION,))


def _cluster(upkeep: Upkeep) -> Result | None:
    """Run what is planned, and with `hoodie.clustering.inline` what is due by commits."""
    state, options, progress = upkeep.state, upkeep.options, upkeep.progress
    result = clustering.run_pending(state, options, progress)
    asked = options.clustering
    store = TimelineStore(state.storage, upkeep.config, state.clock)
    if not asked.inline or commits_since_clustering(store) < asked.inline_commits:
        return result
    scheduled = clustering.schedule_clustering(state, options)
    if scheduled is None:
        return result
    return clustering.run_clustering(state, scheduled, options, progress, is_own=True) or result


def _clean(upkeep: Upkeep) -> Result | None:
    return clean(upkeep.state, upkeep.options) if upkeep.options.cleaning.automatic else None


def _archive(upkeep: Upkeep) -> Result | None:
    return archive(upkeep.state, upkeep.options) if upkeep.options.archiving.automatic else None


MAKING: Final[Mapping[str, Duty]] = {
    "log compaction": _compact_logs,
    "compaction": _compact,
    "clustering": _cluster,
}
"""What makes files, by name, in the order in which it is done."""

TAKING_AWAY: Final[Mapping[str, Duty]] = {"clean": _clean, "archive": _archive}
"""What takes files away, once everything else is done."""


def run_duties(
    state: TableState,
    options: WriteOptions,
    duties: Mapping[str, Duty],
    progress: Callable[[str], Progress] | None = None,
) -> Iterator[Done]:
    """Do what is due on a table.

    Args:
        state: the table.
        options: Hudi's options of services.
        duties: what may be due, by name, in its order.
        progress: returns, for the name of a duty, what is told of its progress.

    Yields:
        Each duty that did something or failed, once it is over.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: its properties are damaged.
    """
    config = load_config(state.storage)
    for name, duty in duties.items():
        try:
            result = duty(Upkeep(state, config, options, progress(name) if progress else None))
        except (DrawstringError, OSError) as error:
            yield Done(name, error=error)
        except Exception as error:  # whatever it was, the other duties and tables are not to wait for it
            _log.exception("the %s of %s failed in a way that nobody expected", name, state.storage.spec.uri)
            yield Done(name, error=error)
        else:
            if result is not None:
                yield Done(name, result)
