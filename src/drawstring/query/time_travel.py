"""Queries of the table as of an earlier time: whether its files are still there, and the schema it had."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Action
from drawstring.query.cleaned_files import DeletedFiles, cleans_of, is_needed
from drawstring.query.facts import TableFacts
from drawstring.timeline.archive.reader import open_archive


def check_has_begun(facts: TableFacts, time: str) -> None:
    """Check that a table with writes had one at a time.

    Raises:
        InvalidError: all its writes, archived ones included, are later.
    """
    writes = facts.timeline.writes()
    if any(write.requested <= time for write in writes):
        return
    archived = open_archive(facts.storage, facts.config).completed("")
    first = min((each.requested for each in (*archived, *writes) if each.is_write), default="")
    if time < first:
        raise InvalidError(
            f"The table has no write up to {time}. Its first one is {first}: query the table as of that time"
            " or later. Times without an offset are in the time zone of the timeline,"
            f" {facts.config.timezone} (hoodie.table.timeline.timezone).",
            table=facts.storage.spec.uri,
        )


def check_not_cleaned(facts: TableFacts, time: str) -> None:
    """Check that no clean by commits or hours deletes files that the table had at a time.

    The metadata of archived cleans is not read: times before an archived clean cannot be queried.

    Raises:
        InvalidError: a completed or pending clean deletes files that the table had then.
    """
    cleans = cleans_of(facts.store, facts.timeline, after=time)
    earliest = next((clean.earliest for clean in cleans if clean.earliest), "")
    if earliest and time < earliest:
        raise _cleaned(facts, time, earliest)
    first = facts.timeline.start
    if earliest or first is None or time >= first:
        return
    archived = open_archive(facts.storage, facts.config).completed(time)
    later_cleans = [
        instant.requested
        for instant in archived
        if instant.action is Action.CLEAN and instant.requested > time
    ]
    if later_cleans:
        raise InvalidError(
            f"Files of the table as of {time} may have been cleaned away at {later_cleans[-1]}."
            f" Query the table as of {first} or later.",
            table=facts.storage.spec.uri,
        )


def check_versions_kept(facts: TableFacts, time: str) -> None:
    """Check that no clean by file versions deletes file slices that the table had at a time.

    Args:
        facts: the table as of the time.
        time: requested time of an instant.

    Raises:
        InvalidError: a completed or pending clean deletes files that the table had then.
    """
    cleans = [clean for clean in cleans_of(facts.store, facts.timeline, after=time) if not clean.earliest]
    if is_needed(facts, DeletedFiles.by(cleans), time):
        raise _cleaned(facts, time, cleans[0].last_completed)


def _cleaned(facts: TableFacts, time: str, earliest: str) -> InvalidError:
    return InvalidError(
        f"Files of the table as of {time} were cleaned away. Query the table as of {earliest} or later. To"
        " read older instants in future, raise hoodie.clean.commits.retained, or use table.hold() or a"
        " savepoint.",
        table=facts.storage.spec.uri,
    )


def with_schema_of(facts: TableFacts, time: str) -> TableFacts:
    """Return the table with the schema of a time, if that schema is known."""
    then = facts.as_of(time)
    return then if len(then.schema) else facts
