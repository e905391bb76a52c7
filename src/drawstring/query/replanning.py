"""Query plans that stay valid while the table is cleaned, archived or restored.

    load the timeline ── plan: list files, read commit metadata ── load the timeline again
         ^                     │                                          │
         └── a file of the plan is missing, or a file that it needs was deleted in between

A plan that the second load confirms carries a digest of that timeline in its tasks. A reader that misses a
file later compares the digest to learn whether the file was deleted since (`timeline.change_detection`). If
so, the query is planned again, as long as it has not returned any row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import pyarrow.compute as pc

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError, FilesCleanedError, MissingFileError
from drawstring.base.sequences import mapped
from drawstring.filegroups.read.cdc import ChangeTask
from drawstring.filegroups.read.tasks import ReadTask
from drawstring.model.explanation import SLICES, Explanation, Narrowing, Step
from drawstring.model.files import BaseFile, FileSlice
from drawstring.model.instant import Action
from drawstring.query.cleaned_files import DeletedFiles, deleted_since
from drawstring.query.facts import TableFacts, load_facts
from drawstring.timeline.change_detection import ATTEMPTS_MAX, digest, files_cleaned
from drawstring.timeline.timeline import Timeline

if TYPE_CHECKING:
    from drawstring.query.skipping import DataSkipping

Task: TypeAlias = ReadTask | ChangeTask
"""A unit of work of a scan."""

Skips: TypeAlias = Callable[[pc.Expression, str | None], "DataSkipping | None"]
"""Returns what rules out file slices for a further condition, whose SQL is known or None."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft(Generic[T]):
    """The plan of a query, made from one load of the table and not yet confirmed.

    Attributes:
        tasks: tasks that read the result.
        lacks: returns whether the given deletions may have removed a file of the result before the plan
            listed it.
        narrowing: how the plan came to its tasks; None if nothing could be left out.
        skips: rules out more file slices for a condition that comes later; None if nothing can.
    """

    tasks: Sequence[T]
    lacks: Callable[[DeletedFiles], bool]
    narrowing: Narrowing | None = None
    skips: Skips | None = None


class Replanning:
    """Plans a query, and plans it again from a fresh load of the table when needed.

    Args:
        facts: the table as it was first loaded.
        plan: makes the plan for a loaded table.
    """

    def __init__(self, facts: TableFacts, plan: Callable[[TableFacts], Draft[Task]]) -> None:
        self._facts = facts
        self._plan = plan
        self._narrowing: Narrowing | None = None
        self._skips: Skips | None = None

    def explained(self, tasks: Sequence[Task]) -> Explanation:
        """Return what the tasks of the last plan read, and what that plan left out."""
        return explanation(self._facts, tasks, self._narrowing)

    def skipping(self, where: pc.Expression, sql: str | None) -> DataSkipping | None:
        """Return what rules out tasks of the last plan for a further condition; None if nothing does."""
        return None if self._skips is None else self._skips(where, sql)

    def tasks(self) -> Sequence[Task]:
        """Return the tasks of the query; load the table again if files were deleted meanwhile.

        Raises:
            CorruptTableError: a file is lost.
            FilesCleanedError: the table changed during every attempt.
            DrawstringError: errors of the plan.
        """
        self._facts, draft, now = planned(self._facts, self._plan)
        self._narrowing, self._skips = draft.narrowing, draft.skips
        timeline_digest = digest(now)
        with_digest = partial(replace, timeline_digest=timeline_digest)
        return (
            [*map(with_digest, draft.tasks)]
            if isinstance(draft.tasks, list)
            else mapped(with_digest, draft.tasks)
        )

    def again(self) -> Sequence[Task]:
        """Load the table again and return the tasks; see `tasks`."""
        self._facts = reload_facts(self._facts)
        return self.tasks()


def planned(
    facts: TableFacts, plan: Callable[[TableFacts], Draft[T]]
) -> tuple[TableFacts, Draft[T], Timeline]:
    """Make a plan and confirm it; load the table again if files were deleted meanwhile.

    Args:
        facts: the table as it was first loaded.
        plan: makes the plan for a loaded table.

    Returns:
        The table that the plan was made for, the plan, and the timeline that confirmed it.

    Raises:
        CorruptTableError: a file is lost.
        FilesCleanedError: the table changed during every attempt.
    """

    def drafted(current: TableFacts) -> tuple[Draft[T], Timeline | None]:
        draft = plan(current)
        try:
            now = current.store.load()
        except ConflictError:
            return draft, None
        if now == current.timeline:
            return draft, now
        deleted = deleted_since(current, now)
        return draft, None if deleted is None or (deleted.groups and draft.lacks(deleted)) else now

    for _ in range(ATTEMPTS_MAX):
        facts, (draft, now) = retry_on_change(facts, drafted)
        if now is not None:
            return facts, draft, now
        facts = reload_facts(facts)
    raise FilesCleanedError(
        "Files were deleted during every attempt to plan this query. Try again, or retain more commits with"
        " hoodie.clean.commits.retained.",
        table=facts.storage.spec.uri,
    )


def retry_on_change(facts: TableFacts, use: Callable[[TableFacts], T]) -> tuple[TableFacts, T]:
    """Call a function with the table; load the table again if a file is missing that may have been deleted.

    Args:
        facts: the table as it was first loaded.
        use: function without side effects; may be called several times.

    Returns:
        The table that the last call received, and its result.

    Raises:
        MissingFileError: the file is still missing, and the table did not change.
        FilesCleanedError: the table changed during every attempt.
    """
    missing: MissingFileError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            return facts, use(facts)
        except MissingFileError as error:
            reloaded = reload_facts(facts)
            is_unchanged = reloaded.timeline == facts.timeline
            is_same = missing is not None and missing.path == error.path and is_unchanged
            if is_same and not reloaded.timeline.pending_of(Action.RESTORE):
                raise
            missing, facts = error, reloaded
    assert missing is not None
    raise files_cleaned(missing).at(table=facts.storage.spec.uri) from missing


def reload_facts(facts: TableFacts) -> TableFacts:
    """Load a table again."""
    reloaded = load_facts(facts.storage, SystemClock(), facts.uses_metadata, facts.skips_data, facts.scope)
    reloaded = replace(reloaded, merges_by_position=facts.merges_by_position)
    reloaded.store.recall(facts.store)
    return reloaded


def explanation(facts: TableFacts, tasks: Sequence[Task], narrowing: Narrowing | None) -> Explanation:
    """Return what tasks read.

    Args:
        facts: the table.
        tasks: the tasks of a query.
        narrowing: how the plan came to them; None if nothing could be left out.
    """
    files = {file.status.path: file for each in slices_of(tasks) for file in (each.base, *each.logs) if file}
    size_bytes = sum(file.status.size_bytes for file in files.values())
    if narrowing is None:
        narrowing = Narrowing(facts.listing, (Step(SLICES, "listed", 0, len(tasks)),), size_bytes)
    base_files = sum(isinstance(file, BaseFile) for file in files.values())
    return Explanation(
        facts.storage.spec.uri,
        narrowing.listing,
        narrowing.where,
        narrowing.steps,
        len(tasks),
        base_files,
        len(files) - base_files,
        size_bytes,
        max(0, narrowing.bytes_listed - size_bytes),
    )


def slices_of(tasks: Sequence[Task]) -> Iterator[FileSlice]:
    """Yield the file slices that tasks read."""
    for task in tasks:
        if isinstance(task, ReadTask):
            yield task.file_slice
            if task.whole_slice is not None:
                yield task.whole_slice.file_slice
        else:
            yield from (read.file_slice for read in (task.before, task.after) if read is not None)
