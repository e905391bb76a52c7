"""Merge rules: how the table properties of versions 6, 8 and 9 define the merging of records.

Version 9 stores a merge mode and, for a few well-known payload classes, merge properties. Earlier
versions store a payload class or a strategy id, from which the same rules follow (specification:
Merge Modes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.base.java_compat import simple_class_name
from drawstring.config.payload_classes import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    PAYLOAD_CLASSES,
    PAYLOAD_STRATEGY,
    STRATEGY_MODES,
    MergeMode,
    MergeRule,
    payload_class,
)
from drawstring.config.table_types import registered_merger
from drawstring.model.table_version import VersionRules

MERGE_PROPERTY_PREFIX: Final = "hoodie.record.merge.property."
_COMMIT_TIME: Final = MergeMode.COMMIT_TIME_ORDERING
_EVENT_TIME: Final = MergeMode.EVENT_TIME_ORDERING


def asked_mode(name: str | None, class_name: str | None, strategy: str | None = None) -> MergeMode | None:
    """Return the merge mode that a writer requests by name, payload class or strategy id, None for none.

    The mode CUSTOM leaves it to the payload class, and so does the strategy id of payload classes.

    Raises:
        InvalidError: the name does not exist, or the three contradict each other.
        UnsupportedError: mode, class or strategy need Java code, and no merger is registered for the class.
    """
    by_payload = _mode_of_payload(class_name) if class_name else None
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
            f"The payload class {class_name} means {by_payload}, but the merge mode is {by_name}."
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


def _mode_of_payload(class_name: str) -> MergeMode:
    known = payload_class(class_name)
    if known is not None:
        return known.code.mode
    simple = simple_class_name(class_name)
    if registered_merger(class_name, simple) is None:
        usable = ", ".join(each.name for each in PAYLOAD_CLASSES.values() if each.stored)
        raise UnsupportedError(
            f"The payload class {class_name} is Java code. Register a function in its place with"
            f" drawstring.register_merger({simple!r}, function), or use one of {usable}."
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
    known = payload_class(payload)
    return known.code if known else MergeRule(MergeMode.CUSTOM)


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
