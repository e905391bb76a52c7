"""Merge rules: how the table properties of versions 6, 8 and 9 define the merging of records.

Version 9 stores a merge mode and, for a few well-known payload classes, merge properties. Earlier
versions store a payload class or a strategy id, from which the same rules follow (specification:
Merge Modes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table_types import registered_merger
from drawstring.model.table_version import VersionRules

MERGE_PROPERTY_PREFIX: Final = "hoodie.record.merge.property."
PAYLOAD_PACKAGE: Final = "org.apache.hudi.common.model."
OVERWRITE_PAYLOAD: Final = PAYLOAD_PACKAGE + "OverwriteWithLatestAvroPayload"
EVENT_TIME_PAYLOAD: Final = PAYLOAD_PACKAGE + "DefaultHoodieRecordPayload"
COMMIT_TIME_STRATEGY: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME_STRATEGY: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
"""The strategy id of tables that merge by a payload class."""
DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"
UNAVAILABLE_VALUE: Final = "hoodie.write.partial.update.unavailable.value"
MYSQL_SEQUENCE: Final = "_event_seq"
"""The ordering field of the MySQL payload class in versions 6 and 8: `<binlog file>.<position>`."""


class MergeMode(StrEnum):
    """Which version of a record wins."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PayloadRule(StrEnum):
    """How the code of a payload class differs from the merge mode of version 9 that replaces it.

    Tables of versions 6 and 8 with such a class run its code. In all of them a delete block wins over
    everything before it.
    """

    PLAIN = "PLAIN"
    LATE_STAMP = "LATE_STAMP"
    """A late version that fills unset columns of the winner also replaces the winner's meta columns."""
    LATE_NEVER_FILLS = "LATE_NEVER_FILLS"
    """A late version fills no columns."""
    FIRST_OF_TIES = "FIRST_OF_TIES"
    """Of two versions with equal ordering values the earlier one wins."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How the records of a table merge, expressed with the properties of version 9.

    Attributes:
        mode: which version wins.
        partial_update_mode: how unset columns of the winner are filled from the loser, None for not at all.
        properties: merge properties without their prefix.
        ordering_fields: ordering fields that the payload class prescribes, empty for none.
        payload: how the code of the payload class differs, if the table runs it; None otherwise.
    """

    mode: MergeMode
    partial_update_mode: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    ordering_fields: tuple[str, ...] = ()
    payload: PayloadRule | None = None


def _deletes_by(column: str, marker: str, **more: str) -> dict[str, str]:
    return {DELETE_FIELD: column, DELETE_MARKER: marker, **more}


_DEBEZIUM_DELETES: Final = ("_change_operation_type", "d")
_UNAVAILABLE: Final = {UNAVAILABLE_VALUE: "__debezium_unavailable_value"}
_COMMIT_TIME: Final = MergeMode.COMMIT_TIME_ORDERING
_EVENT_TIME: Final = MergeMode.EVENT_TIME_ORDERING

PAYLOAD_RULES: Final[Mapping[str, MergeRule]] = {
    "OverwriteWithLatestAvroPayload": MergeRule(_COMMIT_TIME),
    "DefaultHoodieRecordPayload": MergeRule(_EVENT_TIME),
    "EventTimeAvroPayload": MergeRule(_EVENT_TIME),
    "PartialUpdateAvroPayload": MergeRule(_EVENT_TIME, "IGNORE_DEFAULTS"),
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeRule(_COMMIT_TIME, "IGNORE_DEFAULTS"),
    "AWSDmsAvroPayload": MergeRule(_COMMIT_TIME, None, _deletes_by("Op", "D")),
    "MySqlDebeziumAvroPayload": MergeRule(
        _EVENT_TIME, None, _deletes_by(*_DEBEZIUM_DELETES), ("_event_bin_file", "_event_pos")
    ),
    "PostgresDebeziumAvroPayload": MergeRule(
        _EVENT_TIME, "FILL_UNAVAILABLE", _deletes_by(*_DEBEZIUM_DELETES, **_UNAVAILABLE), ("_event_lsn",)
    ),
}
"""Merge rules of version 9, by the simple name of the payload class."""

_PAYLOAD_CODE: Final[Mapping[str, MergeRule]] = {
    "PartialUpdateAvroPayload": replace(
        PAYLOAD_RULES["PartialUpdateAvroPayload"], payload=PayloadRule.LATE_STAMP
    ),
    "OverwriteNonDefaultsWithLatestAvroPayload": replace(
        PAYLOAD_RULES["OverwriteNonDefaultsWithLatestAvroPayload"], payload=PayloadRule.PLAIN
    ),
    "AWSDmsAvroPayload": replace(PAYLOAD_RULES["AWSDmsAvroPayload"], payload=PayloadRule.PLAIN),
    "MySqlDebeziumAvroPayload": replace(
        PAYLOAD_RULES["MySqlDebeziumAvroPayload"],
        payload=PayloadRule.PLAIN,
        ordering_fields=(MYSQL_SEQUENCE,),
    ),
    "PostgresDebeziumAvroPayload": replace(
        PAYLOAD_RULES["PostgresDebeziumAvroPayload"], payload=PayloadRule.LATE_NEVER_FILLS
    ),
    "FirstValueAvroPayload": MergeRule(_EVENT_TIME, payload=PayloadRule.FIRST_OF_TIES),
}
"""Merge rules of tables that run the code of a class: versions 6 and 8, or merge mode CUSTOM."""

STRATEGY_MODES: Final[Mapping[str, MergeMode]] = {
    COMMIT_TIME_STRATEGY: _COMMIT_TIME,
    EVENT_TIME_STRATEGY: _EVENT_TIME,
}


def payload_rule(payload_class: str) -> MergeRule | None:
    """Return the rule of a payload class, or None for an unknown class."""
    return PAYLOAD_RULES.get(_simple_name(payload_class))


def _simple_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def full_payload_name(class_name: str) -> str:
    """Return the name of a payload class of Hudi's with its package; other names as they are."""
    simple = _simple_name(class_name)
    package = f"{PAYLOAD_PACKAGE}debezium." if "Debezium" in simple else PAYLOAD_PACKAGE
    return package + simple if simple in PAYLOAD_RULES else class_name


def special_payload(class_name: str) -> str | None:
    """Return the simple name of a payload class that does more than a merge mode, None for others."""
    rule = payload_rule(class_name)
    return _simple_name(class_name) if rule not in (MergeRule(_COMMIT_TIME), MergeRule(_EVENT_TIME)) else None


def asked_mode(name: str | None, payload_class: str | None, strategy: str | None = None) -> MergeMode | None:
    """Return the merge mode that a writer requests by name, payload class or strategy id, None for none.

    The mode CUSTOM leaves it to the payload class, and so does the strategy id of payload classes.

    Raises:
        InvalidError: the name does not exist, or the three contradict each other.
        UnsupportedError: mode, class or strategy need Java code, and no merger is registered for the class.
    """
    by_payload = _mode_of_payload(payload_class) if payload_class else None
    if strategy:
        name = _with_strategy(name, strategy, by_payload)
    by_name = _mode_of_name(name) if name else None
    if by_name is MergeMode.CUSTOM:
        if by_payload is None:
            raise UnsupportedError(
                "The merge mode CUSTOM runs code of the Java engine. Name a payload class that has a"
                " registered merger (drawstring.register_merger), or choose COMMIT_TIME_ORDERING or"
                " EVENT_TIME_ORDERING."
            )
        return by_payload
    if by_name and by_payload and by_name is not by_payload:
        raise InvalidError(
            f"The payload class {payload_class} means {by_payload}, but the merge mode is {by_name}."
            " Drop one of them."
        )
    return by_name or by_payload


def merge_rule(
    properties: Mapping[str, str], rules: VersionRules, ordering_fields: tuple[str, ...]
) -> MergeRule:
    """Return how the records of a table merge.

    Args:
        properties: the table's properties.
        rules: of the table version.
        ordering_fields: the table's ordering fields as stored.

    Raises:
        CorruptTableError: the stored merge mode does not exist.
    """
    mode = _stored_mode(properties)
    if mode is None or mode is MergeMode.CUSTOM:
        rule = _inferred(properties, _payload_of(properties), ordering_fields, rules)
    else:
        rule = MergeRule(mode)
    if rules.has_merge_properties:
        partial = properties.get("hoodie.table.partial.update.mode") or rule.partial_update_mode
        rule = replace(
            rule, partial_update_mode=partial, properties={**rule.properties, **_merge_properties(properties)}
        )
    return _without_idle_ordering(rule, ordering_fields)


def _with_strategy(name: str | None, strategy: str, by_payload: MergeMode | None) -> str | None:
    """Return the name of the merge mode that a strategy id asks for together with a name.

    Raises:
        InvalidError: they contradict each other.
        UnsupportedError: the id is that of a merger in Java.
    """
    if strategy == PAYLOAD_STRATEGY and by_payload is not None:
        return name
    mode = STRATEGY_MODES.get(strategy)
    if mode is None:
        raise UnsupportedError(
            f"The merge strategy {strategy} is Java code. Use {COMMIT_TIME_STRATEGY}"
            f" ({_COMMIT_TIME}) or {EVENT_TIME_STRATEGY} ({_EVENT_TIME}), or name a payload class."
        )
    if name and _mode_of_name(name) is not mode:
        raise InvalidError(
            f"The merge strategy {strategy} means {mode}, but the merge mode is {name}. Drop one of them."
        )
    return mode.value


def _mode_of_name(text: str) -> MergeMode:
    try:
        return MergeMode(text.upper())
    except ValueError:
        raise InvalidError(
            f"hoodie.record.merge.mode is {text!r}. Choose COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING."
        ) from None


def _mode_of_payload(payload_class: str) -> MergeMode:
    rule = payload_rule(payload_class)
    if rule is not None:
        return rule.mode
    if registered_merger(payload_class, _simple_name(payload_class)) is None:
        raise UnsupportedError(
            f"The payload class {payload_class} is Java code. Register a function in its place with"
            f" drawstring.register_merger({_simple_name(payload_class)!r}, function), or use one of"
            f" {', '.join(PAYLOAD_RULES)}."
        )
    return MergeMode.CUSTOM


def _stored_mode(properties: Mapping[str, str]) -> MergeMode | None:
    text = properties.get("hoodie.record.merge.mode")
    if not text:
        return None
    try:
        return MergeMode(text.upper())
    except ValueError:
        raise CorruptTableError(
            f"hoodie.record.merge.mode is {text!r}, which is not a merge mode. "
            "Restore hoodie.properties from its backup."
        ) from None


def _payload_of(properties: Mapping[str, str]) -> MergeRule | None:
    payload = properties.get("hoodie.compaction.payload.class")
    if not payload:
        return None
    return _PAYLOAD_CODE.get(_simple_name(payload)) or payload_rule(payload) or MergeRule(MergeMode.CUSTOM)


def _inferred(
    properties: Mapping[str, str],
    by_payload: MergeRule | None,
    ordering_fields: tuple[str, ...],
    rules: VersionRules,
) -> MergeRule:
    """Return the rule by payload class or strategy id; version 6 prefers the former, version 8 the latter."""
    strategy = properties.get("hoodie.record.merge.strategy.id") or properties.get(
        "hoodie.compaction.record.merger.strategy"
    )
    by_strategy = STRATEGY_MODES.get(strategy) if strategy else None
    if by_strategy is not None and (rules.stores_merge_mode or by_payload is None):
        return MergeRule(by_strategy)
    if by_payload is not None:
        return by_payload
    if properties.get("hoodie.record.merge.mode"):
        return MergeRule(MergeMode.CUSTOM)
    return MergeRule(_EVENT_TIME if ordering_fields else _COMMIT_TIME)


def _merge_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key.removeprefix(MERGE_PROPERTY_PREFIX): value
        for key, value in properties.items()
        if key.startswith(MERGE_PROPERTY_PREFIX)
    }


def _without_idle_ordering(rule: MergeRule, ordering_fields: tuple[str, ...]) -> MergeRule:
    """Replace event-time ordering by commit-time ordering if the table has no ordering fields."""
    if rule.mode is _EVENT_TIME and not (ordering_fields or rule.ordering_fields):
        return replace(rule, mode=_COMMIT_TIME)
    return rule
