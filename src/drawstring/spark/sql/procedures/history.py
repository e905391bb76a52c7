"""Procedures that tell what cleans, rollbacks and other tables' commits did, and what became of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.formats.metadata.clean import decode_clean
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.formats.metadata.savepoint import decode_restore
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant
from drawstring.model.plans import RollbackMetadata
from drawstring.query.facts import TableFacts
from drawstring.spark.sql.named import named_table
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.timeline.archive.reader import open_archive

_EXISTS, _DELETED, _UNKNOWN, _ACTIVE = "exist", "deleted", "unknown", "active"


def _newest_first(facts: TableFacts, action: Action) -> list[Instant]:
    return sorted(facts.timeline.completed_of(action), key=lambda each: each.requested, reverse=True)


def refuse_archived_cleans(call: Call) -> None:
    """Refuse to show archived cleans, if there are any.

    Raises:
        UnsupportedError: there are, and they are asked for.
    """
    if not call.flag("showArchived"):
        return
    facts = call.table._facts()
    archived = open_archive(facts.storage, facts.config).completed("")
    if any(each.action is Action.CLEAN for each in archived):
        raise UnsupportedError(
            "showArchived => true is not supported for a table with archived cleans. CALL"
            " show_timeline(showArchived => true, filter => \"action = 'clean'\") lists them."
        )


def show_cleans_metadata(call: Call) -> Rows:
    """Return what the cleans of the active timeline deleted, by partition."""
    refuse_archived_cleans(call)
    facts = call.table._facts()

    def rows() -> Iterator[Sequence[Any]]:
        for instant in _newest_first(facts, Action.CLEAN):
            clean = decode_clean(facts.store.read(instant))
            files = sum(len(each.deleted) for each in clean.partitions.values())
            begin = (instant.requested, instant.completed, str(instant.action), clean.started)
            for path, each in sorted(clean.partitions.items()):
                deleted, failed = len(each.deleted), len(each.failed)
                counts = (deleted + failed, deleted, failed, each.is_gone, clean.millis, files)
                yield (*begin, path, clean.policy, *counts)

    return call.limited(rows())


def rollbacks_of(facts: TableFacts) -> Iterator[tuple[str, RollbackMetadata]]:
    """Yield what the rollbacks and restores of the active timeline undid, with their requested times."""
    root = facts.storage.spec.uri
    for instant in facts.timeline.completed_of(Action.ROLLBACK, Action.RESTORE):
        content = facts.store.read(instant)
        if instant.action is Action.ROLLBACK:
            yield instant.requested, decode_rollback(content, root)
            continue
        for undone in decode_restore(content, root).rollbacks.values():
            yield from ((instant.requested, each) for each in undone)


def show_rollback_detail(call: Call) -> Rows:
    """Return the files that a rollback or restore deleted, or could not delete.

    Raises:
        InvalidError: the active timeline has no such rollback or restore.
    """
    facts, time = call.table._facts(), call.needed("instant_time")
    undone = [done for requested, done in rollbacks_of(facts) if requested == time]
    if not undone:
        raise InvalidError(
            f"There is no rollback {time}. CALL show_rollbacks shows those that there are (instant)."
        )
    root = facts.storage.spec.uri.rstrip("/")
    return call.limited(
        (time, f"[{done.instant}]", stat.partition, join_path(root, path), succeeded)
        for done in undone
        for stat in done.stats
        for paths, succeeded in ((stat.deleted, True), (stat.failed, False))
        for path in paths
    )


def commits_compare(call: Call) -> Rows:
    """Tell by which commits one table is behind another."""
    table, other = call.table, named_table(call.spark, None, call.needed("path")).table
    mine, theirs = ([each.requested for each in one.timeline.writes()] for one in (table, other))
    last, other_last = (max(times, default="") for times in (mine, theirs))
    place, times, since = ("behind", theirs, last) if last < other_last else ("ahead", mine, other_last)
    missing = [time for time in times if time > since]
    return [
        (
            f"Source {table.config.name} is {place} by {len(missing)} commits. Commits to catch up -"
            f" [{', '.join(missing)}]",
        )
    ]


def show_file_status(call: Call) -> Rows:
    """Tell whether a file is there, or which clean, rollback or restore deleted it.

    Raises:
        InvalidError: no partition is given of a partitioned table.
    """
    facts, name = call.table._facts(), call.needed("file")
    given = call.text("partition")
    if given is None and facts.config.partition_fields:
        raise InvalidError("The table is partitioned. Give partition => the one that the file is in.")
    partition = (given or "").strip("/")
    path = join_path(partition, name)
    if facts.storage.exists(path):
        return [(_EXISTS, "", "", _ACTIVE, join_path(facts.storage.spec.uri.rstrip("/"), path))]
    for instant in _newest_first(facts, Action.CLEAN):
        found = decode_clean(facts.store.read(instant)).partitions.get(partition)
        if found is not None and name in found.deleted:
            return [(_DELETED, str(instant.action), instant.requested, _ACTIVE, "")]
    actions = {each.requested: str(each.action) for each in facts.timeline.instants}
    for requested, undone in rollbacks_of(facts):
        if any(path in stat.deleted for stat in undone.stats):
            return [(_DELETED, actions[requested], requested, _ACTIVE, "")]
    return [(_UNKNOWN, "", "", "", "")]


PROCEDURES: Final = (
    Procedure(
        "show_cleans_metadata",
        "table STRING!, limit INT=10, showArchived BOOLEAN=false, filter STRING",
        "clean_time STRING, state_transition_time STRING, action STRING, start_clean_time STRING,"
        " partition_path STRING, policy STRING, delete_path_patterns INT, success_delete_files INT,"
        " failed_delete_files INT, is_partition_deleted BOOLEAN, time_taken_in_millis BIGINT,"
        " total_files_deleted INT",
        show_cleans_metadata,
    ),
    Procedure(
        "show_rollback_detail",
        "table STRING!, limit INT=10, instant_time STRING!",
        "instant STRING, rollback_instant STRING, partition STRING, deleted_file STRING, succeeded BOOLEAN",
        show_rollback_detail,
    ),
    Procedure("commits_compare", "table STRING!, path STRING!", "compare_detail STRING", commits_compare),
    Procedure(
        "show_file_status",
        "table STRING, path STRING, partition STRING, file STRING!, filter STRING",
        "status STRING, action STRING, instant STRING, timeline STRING, full_path STRING",
        show_file_status,
    ),
)
