"""Changes of the table properties when a table is upgraded or downgraded; pure functions.

    6 <-> 8 <-> 9 <-> 10, step by step, like the upgrade and downgrade handlers of Hudi 1.2.0, and those to
    and from 10 like Hudi's later ones:

    6 -> 8   adds timeline folder, initial version, merge mode and strategy id (by payload class), and both
             class and type of key generator and bootstrap index
    8 -> 9   replaces a well-known payload class by merge mode, partial update mode and merge properties,
             and stores it as the legacy payload class
    9 -> 8   reverses this
    9 -> 10  says which meta columns there are; log files stay, since readers of version 10 know both formats
    10 -> 9  removes that and the storage layout
    8 -> 6   removes merge mode and strategy id: a payload class defines how records merge

Properties that a lower version cannot express prevent the change, see `obstacles`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from drawstring.config.table.key_settings import BARE_SINGLE_KEY
from drawstring.config.table.kinds import META_FIELDS_MODE, TableType, class_of_type, type_name_of_class
from drawstring.config.table.merge_rules import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_PAYLOAD,
    EVENT_TIME_STRATEGY,
    MERGE_PROPERTY_PREFIX,
    MYSQL_SEQUENCE,
    OVERWRITE_PAYLOAD,
    PAYLOAD_PACKAGE,
    PAYLOAD_STRATEGY,
    STRATEGY_MODES,
    MergeMode,
    MergeRule,
    payload_rule,
)
from drawstring.config.table.new_keys import CLASS_KEY, TYPE_KEY
from drawstring.config.table.storage_layout import BASE_FORMAT, STORAGE_LAYOUT
from drawstring.config.table.virtual_keys import meta_field_properties
from drawstring.model.table_version import VERSION_RULES, WRITABLE_VERSIONS, TimelineLayout

_VERSION: Final = "hoodie.table.version"
_LAYOUT: Final = "hoodie.timeline.layout.version"
_INITIAL: Final = "hoodie.table.initial.version"
_MODE: Final = "hoodie.record.merge.mode"
_STRATEGY: Final = "hoodie.record.merge.strategy.id"
_PAYLOAD: Final = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD: Final = "hoodie.table.legacy.payload.class"
_PARTIAL_MODE: Final = "hoodie.table.partial.update.mode"
_ORDERING: Final = "hoodie.table.ordering.fields"
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_INDEX_CLASS: Final = "hoodie.bootstrap.index.class"
_INDEX_TYPE: Final = "hoodie.bootstrap.index.type"
_HFILE_INDEX: Final = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_NO_INDEX: Final = "org.apache.hudi.common.bootstrap.index.NoOpBootstrapIndex"
_EVENT_TIME_PAYLOADS: Final = (EVENT_TIME_PAYLOAD, f"{PAYLOAD_PACKAGE}EventTimeAvroPayload")
_PLAIN_PAYLOADS: Final = ("", OVERWRITE_PAYLOAD, *_EVENT_TIME_PAYLOADS)
_MYSQL_PAYLOAD: Final = "MySqlDebeziumAvroPayload"
_STRATEGY_OF_MODE: Final[Mapping[str, str]] = {mode: strategy for strategy, mode in STRATEGY_MODES.items()}

_Properties = dict[str, str]


def properties_of_version(properties: Mapping[str, str], version: int) -> dict[str, str]:
    """Return the properties of a table after a change of its version.

    Args:
        properties: the current properties.
        version: the new version.
    """
    changed = dict(properties)
    for step in _steps(int(properties[_VERSION]), version):
        _STEPS[step](changed)
        changed[_VERSION] = str(step[1])
        changed[_LAYOUT] = str(VERSION_RULES[step[1]].layout.number)
    return changed


def obstacles(properties: Mapping[str, str], version: int) -> list[str]:
    """Return descriptions of the properties that another version cannot express, empty if there are none.

    Args:
        properties: the current properties.
        version: the new version.
    """
    steps = _steps(int(properties[_VERSION]), version)
    reasons: list[str] = []
    if (9, 8) in steps:
        reasons += _without_legacy_payload(properties)
    if (8, 6) in steps and not _payload_of(properties) and properties.get(_MODE) == MergeMode.CUSTOM:
        reasons.append(f"a custom merger without a payload class ({_MODE}=CUSTOM), which version 6 needs")
    if (8, 6) in steps and properties.get(BASE_FORMAT, "").upper() == "LANCE":
        reasons.append(f"Lance base files ({BASE_FORMAT}=LANCE), which no reader of version 6 knows")
    if (8, 9) in steps and properties.get(BARE_SINGLE_KEY, "").lower() == "true":
        reasons.append(
            f"keys without column names ({BARE_SINGLE_KEY}), which version 9 writes with column names"
        )
    return reasons


def leads_elsewhere(current: int, version: int, *, lower: bool) -> bool:
    """Tell whether a change that is to lower, or to raise, a table's version asks for the other direction.

    Args:
        current: version of the table.
        version: that it is to have; one that no table can have leads nowhere.
        lower: whether the change is a downgrade.
    """
    last = version == (WRITABLE_VERSIONS[-1] if lower else WRITABLE_VERSIONS[0])
    is_known = {version, current} <= {*WRITABLE_VERSIONS}
    return is_known and (last or (version > current if lower else version < current))


def keeps_log_files(current: int, version: int) -> bool:
    """Tell whether log files mean the same after a change of version, so that none has to be compacted."""
    return all(step in _LOG_FILES_STAY for step in _steps(current, version))


def moves_timeline(old: TimelineLayout, new: TimelineLayout) -> bool:
    """Tell whether the timeline has to be written anew, when a table of one layout gets another."""
    return old != new


def version_with_another_layout(layout: TimelineLayout) -> int:
    """Return the lowest version whose timeline has another layout."""
    return next(
        number for number in WRITABLE_VERSIONS if moves_timeline(layout, VERSION_RULES[number].layout)
    )


def _steps(old: int, new: int) -> list[tuple[int, int]]:
    """Return the pairs of adjacent versions from one version to another."""
    path = [version for version in WRITABLE_VERSIONS if min(old, new) <= version <= max(old, new)]
    if new < old:
        path.reverse()
    return list(pairwise(path))


def _payload_of(properties: Mapping[str, str]) -> str:
    return properties.get(_PAYLOAD) or properties.get(_LEGACY_PAYLOAD) or ""


def _known(payload: str) -> MergeRule | None:
    """Return the rule of a payload class that version 9 replaces, None for other classes."""
    return payload_rule(payload) if payload.startswith(PAYLOAD_PACKAGE) else None


def _without_legacy_payload(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield the merge properties of version 9 that no payload class expresses in version 8."""
    rule = _known(properties.get(_LEGACY_PAYLOAD) or "")
    implied = (
        {} if rule is None else {MERGE_PROPERTY_PREFIX + key: value for key, value in rule.properties.items()}
    )
    partial = properties.get(_PARTIAL_MODE)
    if (
        partial
        and partial.upper() != "NONE"
        and (rule is None or rule.partial_update_mode != partial.upper())
    ):
        yield f"partial updates ({_PARTIAL_MODE}={partial}), for which version 8 needs a payload class"
    more = [key for key in properties if key.startswith(MERGE_PROPERTY_PREFIX) and key not in implied]
    if more:
        yield f"merge properties ({', '.join(sorted(more))}), for which version 8 needs a payload class"


def _six_to_eight(properties: _Properties) -> None:
    properties[_INITIAL] = "6"
    properties["hoodie.timeline.path"] = "timeline"
    _set_merge_mode(properties)
    name = properties.get(CLASS_KEY) or class_of_type(properties.get(TYPE_KEY, ""))
    if name:
        properties[CLASS_KEY] = name
        properties[TYPE_KEY] = type_name_of_class(name)
    if index := _bootstrap_index(properties):
        properties[_INDEX_CLASS] = index
        properties[_INDEX_TYPE] = "NO_OP" if index == _NO_INDEX else "HFILE"


def _set_merge_mode(properties: _Properties) -> None:
    payload = properties.get(_PAYLOAD) or EVENT_TIME_PAYLOAD
    is_merge_on_read = properties.get("hoodie.table.type", "").upper() == TableType.MERGE_ON_READ
    ordering = properties.get(_ORDERING) or properties.get(_PRECOMBINE)
    if payload not in _PLAIN_PAYLOADS:
        merging = (payload, MergeMode.CUSTOM, PAYLOAD_STRATEGY)
    elif payload == EVENT_TIME_PAYLOAD or (is_merge_on_read and ordering):
        # In version 6 log records merge by the ordering fields, regardless of the class.
        merging = (EVENT_TIME_PAYLOAD, MergeMode.EVENT_TIME_ORDERING, EVENT_TIME_STRATEGY)
    else:
        merging = (OVERWRITE_PAYLOAD, MergeMode.COMMIT_TIME_ORDERING, COMMIT_TIME_STRATEGY)
    properties |= dict(zip((_PAYLOAD, _MODE, _STRATEGY), merging, strict=True))


def _eight_to_nine(properties: _Properties) -> None:
    payload = properties.get(_PAYLOAD, "")
    rule = _known(payload)
    if properties.get(_MODE) != MergeMode.CUSTOM:
        properties.pop(_STRATEGY, None)
    if rule is not None:
        _replace_payload_class(properties, rule, payload)
    ordering = properties.get(_ORDERING) or properties.get(_PRECOMBINE)
    if rule is not None and rule.ordering_fields:
        ordering = ",".join(rule.ordering_fields)
    properties.pop(_PRECOMBINE, None)
    if ordering:
        properties[_ORDERING] = ordering


def _replace_payload_class(properties: _Properties, rule: MergeRule, payload: str) -> None:
    if payload not in (OVERWRITE_PAYLOAD, EVENT_TIME_PAYLOAD):
        properties |= {_MODE: rule.mode, _STRATEGY: _STRATEGY_OF_MODE[rule.mode]}
    if rule.partial_update_mode:
        properties[_PARTIAL_MODE] = rule.partial_update_mode
    properties |= {MERGE_PROPERTY_PREFIX + key: value for key, value in rule.properties.items()}
    properties[_LEGACY_PAYLOAD] = properties.pop(_PAYLOAD)


def _nine_to_eight(properties: _Properties) -> None:
    properties.pop(_PARTIAL_MODE, None)
    if strategy := _STRATEGY_OF_MODE.get(properties.get(_MODE, "")):
        properties[_STRATEGY] = strategy
    payload = properties.get(_LEGACY_PAYLOAD, "")
    rule = _known(payload)
    if rule is not None:
        properties[_PAYLOAD] = properties.pop(_LEGACY_PAYLOAD)
        if payload not in _PLAIN_PAYLOADS:
            properties |= {_STRATEGY: PAYLOAD_STRATEGY, _MODE: MergeMode.CUSTOM}
        for key in rule.properties:
            properties.pop(MERGE_PROPERTY_PREFIX + key, None)
    ordering = properties.pop(_ORDERING, None)
    if payload.endswith(_MYSQL_PAYLOAD):
        ordering = MYSQL_SEQUENCE
    if ordering:
        properties[_PRECOMBINE] = ordering


def _eight_to_six(properties: _Properties) -> None:
    mode = properties.pop(_MODE, None)
    properties.pop(_STRATEGY, None)
    if not properties.get(_PAYLOAD):
        by_event_time = mode == MergeMode.EVENT_TIME_ORDERING
        properties[_PAYLOAD] = EVENT_TIME_PAYLOAD if by_event_time else OVERWRITE_PAYLOAD
    name = class_of_type(properties.get(TYPE_KEY, "")) or properties.get(CLASS_KEY)
    if name:
        properties[CLASS_KEY] = name
    if index := _bootstrap_index(properties):
        properties[_INDEX_CLASS] = index
    properties.pop(_INDEX_TYPE, None)


def _bootstrap_index(properties: Mapping[str, str]) -> str | None:
    """Return the class of the bootstrap index, None for a table without one."""
    if not (properties.get(_INDEX_CLASS) or properties.get(_INDEX_TYPE)):
        return None
    if properties.get("hoodie.bootstrap.index.enable", "true").lower() != "true":
        return _NO_INDEX
    kind = properties.get(_INDEX_TYPE, "").upper()
    return _NO_INDEX if kind == "NO_OP" else properties.get(_INDEX_CLASS) or _HFILE_INDEX


def _nine_to_ten(properties: _Properties) -> None:
    """Say which meta columns there are by a mode; the version alone says that new log files are native."""
    properties |= meta_field_properties(properties, has_mode=True)


def _ten_to_nine(properties: _Properties) -> None:
    properties.pop(STORAGE_LAYOUT, None)
    properties |= meta_field_properties(properties, has_mode=False)
    properties.pop(META_FIELDS_MODE, None)


_LOG_FILES_STAY: Final = {(9, 10)}

_STEPS: Final[Mapping[tuple[int, int], Callable[[_Properties], None]]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 10): _nine_to_ten,
    (10, 9): _ten_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}
