"""Conversion of archived instants between the layouts of the archived timeline.

layout 1   a record for each state of an instant, with the content of its file in one of many fields
layout 2   a row for each instant, with its completed file and its plan
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from drawstring.formats.metadata.archive_entries import ArchivedState
from drawstring.formats.metadata.commit_layouts import avro_commit, avro_file
from drawstring.formats.metadata.history_rows import HistoryRow
from drawstring.model.instant import Action

_COMPLETED: Final[Mapping[Action, tuple[str, str]]] = {
    Action.CLEAN: ("hoodieCleanMetadata", "clean"),
    Action.ROLLBACK: ("hoodieRollbackMetadata", "rollback"),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", "savepoint"),
}
_COMMITS: Final[Mapping[Action, str]] = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
}
_PLANS: Final[Mapping[str, str]] = {
    "hoodieCompactionPlan": "compaction_plan",
    "hoodieCleanerPlan": "clean_plan",
    "hoodieRequestedReplaceMetadata": "requested_replace",
}
_PENDING_NAME: Final = {Action.COMMIT: "compaction", Action.DELTA_COMMIT: "logcompaction"}
_ACTIONS: Final = frozenset(action.value for action in Action)


def history_rows(records: Iterable[Mapping[str, Any]]) -> Iterator[HistoryRow]:
    """Yield a layout 2 row for each completed instant in entries of layout 1, in their order.

    Args:
        records: the decoded entries; all states of an instant are adjacent.

    Raises:
        CorruptTableError: an entry does not match the format.
    """
    states: list[Mapping[str, Any]] = []
    for record in records:
        if states and _key(states[0]) != _key(record):
            yield from _row(states)
            states = []
        states.append(record)
    if states:
        yield from _row(states)


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    name = str(record["actionType"])
    action = Action(name).completed_action if name in _ACTIONS else name
    return str(record["commitTime"]), str(action)


def _row(states: list[Mapping[str, Any]]) -> Iterator[HistoryRow]:
    requested, name = _key(states[0])
    completed = next((state for state in reversed(states) if state["actionState"] == "COMPLETED"), None)
    if completed is None or name not in _ACTIONS:
        return
    reached = completed.get("stateTransitionTime")
    yield HistoryRow(
        requested=requested,
        completed=max(str(reached), requested) if reached else requested,
        action=name,
        metadata=_metadata(Action(name), completed),
        plan=_plan(states),
    )


def _metadata(action: Action, record: Mapping[str, Any]) -> bytes:
    if action in _COMMITS:
        content = record.get(_COMMITS[action]) or record.get("hoodieCommitMetadata")
        return avro_commit(content, replace=action is Action.REPLACE_COMMIT) if content else b""
    field, schema = _COMPLETED.get(action, ("", ""))
    content = record.get(field)
    return avro_file(schema, content) if content else b""


def _plan(states: list[Mapping[str, Any]]) -> bytes | None:
    for record in states:
        for field, schema in _PLANS.items():
            if content := record.get(field):
                return avro_file(schema, content)
    return None


def archived_states(row: HistoryRow) -> list[ArchivedState]:
    """Return the states of an instant for layout 1: requested, if it has a plan, and completed."""
    states = [ArchivedState(row.requested, row.action, "COMPLETED", row.completed, row.metadata)]
    if row.plan:
        pending = _PENDING_NAME.get(Action(row.action), row.action)
        states.insert(0, ArchivedState(row.requested, pending, "REQUESTED", row.requested, row.plan))
    return states
