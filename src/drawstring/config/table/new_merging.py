"""How the records of a new table merge: its properties by merge mode, payload class and ordering fields.

| payload class | 6 and 8 | 9 |
|---|---|---|
| none, or one that equals a merge mode | the class of the mode, strategy id | mode; the class as legacy class |
| another one that Hudi replaces in version 9 | the class, strategy id of payloads, mode CUSTOM in 8 | mode, partial update mode, merge properties, ordering fields; the class as legacy class |
| any other, with a registered merger | the same | mode CUSTOM, the class, strategy id of payloads |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.merge_rules import (
    COMMIT_TIME_STRATEGY,
    DELETE_FIELD,
    DELETE_MARKER,
    EVENT_TIME_PAYLOAD,
    EVENT_TIME_STRATEGY,
    MERGE_PROPERTY_PREFIX,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY,
    MergeMode,
    asked_mode,
    full_payload_name,
    payload_rule,
    special_payload,
)
from drawstring.model.table_version import VersionRules

PAYLOAD_KEYS: Final = ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class")
MODE_KEY: Final = "hoodie.record.merge.mode"
STRATEGY_KEY: Final = "hoodie.record.merge.strategy.id"


@dataclass(frozen=True, slots=True)
class NewMerging:
    """How the records of a new table merge.

    Attributes:
        ordering: the ordering fields that the table stores.
        properties: the properties about merging, without the ordering fields.
    """

    ordering: tuple[str, ...]
    properties: dict[str, str]


def new_merging(extra: Mapping[str, str], ordering: tuple[str, ...], rules: VersionRules) -> NewMerging:
    """Return how the records of a new table merge, as Hudi 1.2.0 creates such a table.

    Args:
        extra: further properties of the new table, with merge mode or payload class, if they are given.
        ordering: the ordering fields that are given.
        rules: of the table version.

    Raises:
        InvalidError: mode, class and ordering fields contradict each other.
        UnsupportedError: the mode or class needs Java code, and no merger is registered for it.
    """
    given = next((extra[key] for key in PAYLOAD_KEYS if extra.get(key)), None)
    payload = full_payload_name(given) if given else None
    rule = payload_rule(payload) if payload else None
    _check_delete_marker(extra, payload, rules)
    asked = asked_mode(extra.get(MODE_KEY), payload, extra.get(STRATEGY_KEY))
    prescribed = rule.ordering_fields if rule else ()
    if asked is MergeMode.EVENT_TIME_ORDERING and not (ordering or prescribed):
        raise InvalidError("EVENT_TIME_ORDERING needs an ordering field. Set hoodie.table.ordering.fields.")
    mode = asked or (MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING)
    if payload and (mode is MergeMode.CUSTOM or (rules.stores_payload_class and special_payload(payload))):
        return NewMerging(ordering, _by_code(payload, rules))
    if rules.stores_payload_class:
        return NewMerging(ordering, _by_mode(mode, payload, rules))
    properties = {MODE_KEY: mode.value}
    if rule is not None and payload is not None:
        properties["hoodie.table.legacy.payload.class"] = payload
        properties |= {MERGE_PROPERTY_PREFIX + key: value for key, value in rule.properties.items()}
        if rule.partial_update_mode:
            properties["hoodie.table.partial.update.mode"] = rule.partial_update_mode
    return NewMerging(prescribed or ordering, properties)


def _check_delete_marker(extra: Mapping[str, str], payload: str | None, rules: VersionRules) -> None:
    """Check a delete marker of a new table; Hudi stores one for the class DefaultHoodieRecordPayload only.

    Raises:
        InvalidError: column and value are not both given, or there is another payload class.
        UnsupportedError: the table version cannot store it.
    """
    given = [key for key in (DELETE_FIELD, DELETE_MARKER) if extra.get(MERGE_PROPERTY_PREFIX + key)]
    if not given:
        return
    if len(given) == 1:
        raise InvalidError(f"{given[0]} is given alone. Set both {DELETE_FIELD} and {DELETE_MARKER}.")
    if payload != EVENT_TIME_PAYLOAD:
        raise InvalidError(
            f"{DELETE_FIELD} needs the payload class DefaultHoodieRecordPayload. Set"
            f" {PAYLOAD_KEYS[1]}={EVENT_TIME_PAYLOAD}."
        )
    if not rules.has_merge_properties:
        raise UnsupportedError(
            f"A table of version {rules.number} does not store {DELETE_FIELD}. Use version 9, or mark deletes"
            " by a boolean column _hoodie_is_deleted."
        )


def _by_code(payload: str, rules: VersionRules) -> dict[str, str]:
    """Return the properties of a table that runs the code of a payload class."""
    properties = {PAYLOAD_KEYS[0]: payload, STRATEGY_KEY: PAYLOAD_STRATEGY}
    return properties | ({MODE_KEY: MergeMode.CUSTOM.value} if rules.stores_merge_mode else {})


def _by_mode(mode: MergeMode, payload: str | None, rules: VersionRules) -> dict[str, str]:
    """Return the properties of versions 6 and 8 for a merge mode."""
    by_event_time = mode is MergeMode.EVENT_TIME_ORDERING
    properties = {
        PAYLOAD_KEYS[0]: payload or (EVENT_TIME_PAYLOAD if by_event_time else OVERWRITE_PAYLOAD),
        STRATEGY_KEY: EVENT_TIME_STRATEGY if by_event_time else COMMIT_TIME_STRATEGY,
    }
    return properties | ({MODE_KEY: mode.value} if rules.stores_merge_mode else {})
