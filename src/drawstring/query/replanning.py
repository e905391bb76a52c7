"""Plans of queries that hold although the table is cleaned, archived or restored meanwhile.

    look at the timeline ── plan: list files, read what commits say ── look again
         ^                     │                                          │
         └── a file of the plan is missing, or something that it needs was deleted in between

A plan that a second look finds whole is handed out with a digest of that look in its tasks: whoever misses a
file later can tell whether it was deleted since (`timeline.change_detection`). As long as nobody has seen a
row, the query is planned again then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError, MissingFileError, OutrunError
from drawstring.filegroups.read.cdc import ChangeTask
from drawstring.filegroups.read.tasks import ReadTask
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.query.cleaned_files import Deleted, deleted_since
from drawstring.query.facts import TableFacts, load_facts
from drawstring.timeline.change_detection import LOOKS_MAX, digest, outrun
from drawstring.timeline.timeline import Timeline

Task: TypeAlias = ReadTask | ChangeTask
"""What a scan is made of."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft(Generic[T]):
    """What a query reads, as one look at the table gives it.

    Attributes:
        tasks: what to read.
        lacks: tells whether deletions since that look may have taken something before it was listed.
    """

    tasks: Sequence[T]
    lacks: Callable[[Deleted], bool]


class Replanning:
    """Plans a query, and plans it again from a new look at the table where that is needed.

    Args:
        facts: the first look at the table.
        plan: makes the tasks of a look.
    """

    def __init__(self, facts: TableFacts, plan: Callable[[TableFacts], Draft[Task]]) -> None:
        self._facts = facts
        self._plan = plan

    def tasks(self) -> list[Task]:
        """Return the tasks of the look at the table, or of a later one where files were deleted since.

        Raises:
            CorruptTableError: a file is lost.
            OutrunError: the table changed as often as it was looked at.
            DrawstringError: what the plan raises.
        """
        self._facts, draft, now = planned(self._facts, self._plan)
        look = digest(now)
        return [replace(task, look=look) for task in draft.tasks]

    def again(self) -> list[Task]:
        """Return the tasks of a new look at the table; see `tasks`."""
        self._facts = look_again(self._facts)
        return self.tasks()


def planned(
    facts: TableFacts, plan: Callable[[TableFacts], Draft[T]]
) -> tuple[TableFacts, Draft[T], Timeline]:
    """Plan on a look at the table, or on a later one where files were deleted since.

    Args:
        facts: the first look at the table.
        plan: makes the plan of a look.

    Returns:
        The look, its plan, and the timeline after it.

    Raises:
        CorruptTableError: a file is lost.
        OutrunError: the table changed as often as it was looked at.
    """

    def drafted(look: TableFacts) -> tuple[Draft[T], Timeline | None]:
        draft = plan(look)
        try:
            now = look.store.load()
        except ConflictError:
            return draft, None
        if now == look.timeline:
            return draft, now
        deleted = deleted_since(look, now)
        return draft, None if deleted is None or (deleted.groups and draft.lacks(deleted)) else now

    for _ in range(LOOKS_MAX):
        facts, (draft, now) = settled(facts, drafted)
        if now is not None:
            return facts, draft, now
        facts = look_again(facts)
    raise OutrunError(
        "Files were deleted whenever this query was planned: try again, or keep more with"
        " hoodie.clean.commits.retained.",
        table=facts.storage.spec.uri,
    )


def settled(facts: TableFacts, use: Callable[[TableFacts], T]) -> tuple[TableFacts, T]:
    """Use a look at a table; look again where a file is missing that may have been deleted meanwhile.

    Args:
        facts: the first look.
        use: what is done with a look; changes nothing.

    Returns:
        The look that was used, and what came of it.

    Raises:
        MissingFileError: the file is missing still, and the table did not change.
        OutrunError: the table changed as often as it was looked at.
    """
    missing: MissingFileError | None = None
    for _ in range(LOOKS_MAX):
        try:
            return facts, use(facts)
        except MissingFileError as error:
            now = look_again(facts)
            is_same = missing is not None and missing.path == error.path and now.timeline == facts.timeline
            if is_same and not now.timeline.pending_of(Action.RESTORE):
                raise
            missing, facts = error, now
    assert missing is not None
    raise outrun(missing).at(table=facts.storage.spec.uri) from missing


def look_again(facts: TableFacts) -> TableFacts:
    """Return a new look at a table."""
    found = load_facts(facts.storage, SystemClock())
    found.store.recall(facts.store)
    return found


def slices_of(tasks: Sequence[Task]) -> Iterator[FileSlice]:
    """Yield the file slices that tasks read."""
    for task in tasks:
        if isinstance(task, ReadTask):
            yield task.file_slice
            if task.beneath is not None:
                yield task.beneath.file_slice
        else:
            yield from (each.file_slice for each in (task.before, task.after) if each is not None)
