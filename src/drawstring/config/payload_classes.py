"""The catalogue of Hudi's payload classes, and the merge rules that they mean.

`PAYLOAD_CLASSES` is the only list of these classes: creation, merging, changes of the table version and
`register_merger` look classes up here. To add a payload class, add one `PayloadClass` to it:

1. `code` is how tables merge that run the class: those of versions 6 and 8, and those of merge mode CUSTOM.
   A difference from every merge mode needs a new `PayloadRule`, which `merge.record_merger` and
   `filegroups.log_scanner` apply.
2. `stored` is what version 9 stores in place of the class. A class without it is one that Hudi 1.2.0 does not
   have: tables that have it are read and written, new tables are refused.
3. `tests/write/test_payload_classes.py` fails until it has rows for the class.

A class that is not in the catalogue is a user's own, and needs a registered merger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from drawstring.base.java_compat import simple_class_name

PAYLOAD_PACKAGE: Final = "org.apache.hudi.common.model."
DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"
UNAVAILABLE_VALUE: Final = "hoodie.write.partial.update.unavailable.value"
MYSQL_SEQUENCE: Final = "_event_seq"
"""The ordering field of the MySQL payload class in versions 6 and 8: `<binlog file>.<position>`."""
EMPTY_PAYLOAD: Final = "EmptyHoodieRecordPayload"
"""The class with which a write deletes its rows; no table stores it."""
COMMIT_TIME_STRATEGY: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME_STRATEGY: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
"""The strategy id of tables that merge by a payload class."""


class MergeMode(StrEnum):
    """Which version of a record wins."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


STRATEGY_MODES: Final[Mapping[str, MergeMode]] = {
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME_ORDERING,
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME_ORDERING,
}


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


@dataclass(frozen=True, slots=True)
class PayloadClass:
    """A payload class of Hudi's.

    Attributes:
        name: simple name of the class.
        code: the merge rule of tables that run the class: versions 6 and 8, and merge mode CUSTOM.
        stored: the merge rule that version 9 stores in place of the class; None if Hudi 1.2.0 does not have
            the class, so that no new table can get it.
        package: that the class is in.
    """

    name: str
    code: MergeRule
    stored: MergeRule | None
    package: str = PAYLOAD_PACKAGE

    @property
    def full_name(self) -> str:
        """The name with the package."""
        return self.package + self.name

    @property
    def is_plain(self) -> bool:
        """Whether the class does no more than a merge mode."""
        return self.code == MergeRule(self.code.mode)


def _deletes_by(column: str, marker: str, **more: str) -> dict[str, str]:
    return {DELETE_FIELD: column, DELETE_MARKER: marker, **more}


_DEBEZIUM_PACKAGE: Final = f"{PAYLOAD_PACKAGE}debezium."
_DEBEZIUM_DELETES: Final = ("_change_operation_type", "d")
_UNAVAILABLE: Final = {UNAVAILABLE_VALUE: "__debezium_unavailable_value"}
_COMMIT_TIME: Final = MergeRule(MergeMode.COMMIT_TIME_ORDERING)
_EVENT_TIME: Final = MergeRule(MergeMode.EVENT_TIME_ORDERING)
_PARTIAL: Final = replace(_EVENT_TIME, partial_update_mode="IGNORE_DEFAULTS")
_NON_DEFAULTS: Final = replace(_COMMIT_TIME, partial_update_mode="IGNORE_DEFAULTS")
_DMS: Final = replace(_COMMIT_TIME, properties=_deletes_by("Op", "D"))
_MYSQL: Final = replace(
    _EVENT_TIME,
    properties=_deletes_by(*_DEBEZIUM_DELETES),
    ordering_fields=("_event_bin_file", "_event_pos"),
)
_POSTGRES: Final = replace(
    _EVENT_TIME,
    partial_update_mode="FILL_UNAVAILABLE",
    properties=_deletes_by(*_DEBEZIUM_DELETES, **_UNAVAILABLE),
    ordering_fields=("_event_lsn",),
)

OVERWRITE: Final = PayloadClass("OverwriteWithLatestAvroPayload", _COMMIT_TIME, _COMMIT_TIME)
DEFAULT: Final = PayloadClass("DefaultHoodieRecordPayload", _EVENT_TIME, _EVENT_TIME)

PAYLOAD_CLASSES: Final[Mapping[str, PayloadClass]] = {
    each.name: each
    for each in (
        OVERWRITE,
        DEFAULT,
        PayloadClass("EventTimeAvroPayload", _EVENT_TIME, _EVENT_TIME),
        PayloadClass("PartialUpdateAvroPayload", replace(_PARTIAL, payload=PayloadRule.LATE_STAMP), _PARTIAL),
        PayloadClass(
            "OverwriteNonDefaultsWithLatestAvroPayload",
            replace(_NON_DEFAULTS, payload=PayloadRule.PLAIN),
            _NON_DEFAULTS,
        ),
        PayloadClass("AWSDmsAvroPayload", replace(_DMS, payload=PayloadRule.PLAIN), _DMS),
        PayloadClass(
            "MySqlDebeziumAvroPayload",
            replace(_MYSQL, payload=PayloadRule.PLAIN, ordering_fields=(MYSQL_SEQUENCE,)),
            _MYSQL,
            _DEBEZIUM_PACKAGE,
        ),
        PayloadClass(
            "PostgresDebeziumAvroPayload",
            replace(_POSTGRES, payload=PayloadRule.LATE_NEVER_FILLS),
            _POSTGRES,
            _DEBEZIUM_PACKAGE,
        ),
        PayloadClass(
            "FirstValueAvroPayload", replace(_EVENT_TIME, payload=PayloadRule.FIRST_OF_TIES), stored=None
        ),
    )
}
"""The payload classes of Hudi's, by their simple names."""


def payload_class(class_name: str | None) -> PayloadClass | None:
    """Return the entry of a payload class, named in full or without the package; None for others."""
    return PAYLOAD_CLASSES.get(simple_class_name(class_name))


def built_in_rule(name: str) -> str | None:
    """Describe the rule by which tables with a payload class or strategy id merge without a user's function.

    Args:
        name: a payload class in full or without the package, or a merge strategy id.

    Returns:
        The rule, or None if such tables need a user's function.
    """
    if known := payload_class(name):
        return f"The payload class {known.name} merges by a rule of its own"
    if simple_class_name(name) == EMPTY_PAYLOAD:
        return f"A write with the payload class {EMPTY_PAYLOAD} deletes its rows"
    if name in STRATEGY_MODES:
        return f"The merge strategy {name} is {STRATEGY_MODES[name]}"
    return f"The merge strategy {name} leaves it to the payload class" if name == PAYLOAD_STRATEGY else None
