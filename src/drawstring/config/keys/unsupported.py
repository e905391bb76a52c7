"""Hudi's options that change stored data or query results and that drawstring does not support.

Each is accepted with the value that describes drawstring's behaviour, and refused with any other value:
ignoring it would give a different result than the user expects.
"""

from __future__ import annotations

from typing import Final

from drawstring.config.keys.bootstrap import CHECKED_BOOTSTRAP_OPTIONS
from drawstring.config.options.option import NOTHING, Kind, Option, Scope


def _only(value: str, key: str, doc: str, *alternatives: str, scope: Scope = Scope.WRITE) -> Option:
    kind = Kind.FLAG if value in ("TRUE", "FALSE") else Kind.TEXT
    return Option(key, doc, scope, kind, alternatives=alternatives, only=(value,))


def _never(key: str, doc: str, *alternatives: str, scope: Scope = Scope.WRITE) -> Option:
    return Option(key, doc, scope, alternatives=alternatives, only=(NOTHING,))


_WRITE: Final = "hoodie.datasource.write."
_READ: Final = "hoodie.datasource.read."
_MERGERS: Final = (
    "ORG.APACHE.HUDI.HOODIESPARKRECORDMERGER",
    "ORG.APACHE.HUDI.DEFAULTSPARKRECORDMERGER",
    "ORG.APACHE.HUDI.COMMON.MODEL.HOODIEAVRORECORDMERGER",
)

CHECKED_OPTIONS: Final[tuple[Option, ...]] = (
    _only(
        "ORG.APACHE.HUDI.KEYGEN.PARSER.HOODIEDATETIMEPARSER",
        "hoodie.keygen.datetime.parser.class",
        "Class that parses dates.",
    ),
    _only("FALSE", "hoodie.allow.operation.metadata.field", "Whether records store their operation."),
    _never("hoodie.partition.ttl.strategy.class", "Class that selects expired partitions."),
    _only("FALSE", "hoodie.errortable.enable", "Whether bad records go to another table."),
    _only("FALSE", "hoodie.metaserver.enabled", "Whether a server stores the timeline."),
    _only("FALSE", "hoodie.write.commit.callback.on", "Whether a commit calls a web address."),
    _only("DYNAMIC", "hoodie.datasource.overwrite.mode", "Whether an overwrite replaces the whole table."),
    Option(
        _WRITE + "record.merger.impls",
        "Classes that merge records, where Hudi's own do what the merge mode says.",
        only=_MERGERS,
    ),
    _never("hoodie.write.record.merge.custom.implementation.classes", "Classes that merge records."),
    _never("hoodie.static.overwrite.partition.paths", "Partitions that an overwrite replaces."),
    _never(_WRITE + "secondarykey.column", "Columns of a secondary index."),
    _never("hoodie.index.class", "Class of an index."),
    _only(
        "FALSE", "hoodie.table.multiple.base.file.formats.enable", "Whether base files have several formats."
    ),
    _never(
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
        "How a payload class merges.",
    ),
    _never("hoodie.write.partial.update.unavailable.value", "Value that leaves a column as it is."),
    _only(
        "TRUE",
        "hoodie.payload.update.on.same.ordering.field",
        "Whether of records with the same ordering value the later one wins.",
    ),
    _never("hoodie.write.partial.update.schema", "Schema of partial updates."),
    _never("hoodie.table.partial.update.mode", "How partial updates are merged."),
    _never("hoodie.write.schema", "Schema of the incoming rows."),
    _never("hoodie.avro.schema", "Schema of the incoming rows."),
    _never("hoodie.prewrite.validators", "Classes that check a write."),
    *CHECKED_BOOTSTRAP_OPTIONS,
    _only("PAYLOAD_COMBINE", "hoodie.datasource.merge.type", "Whether logs are merged.", scope=Scope.READ),
    _only(
        "FALSE",
        _READ + "extract.partition.values.from.path",
        "Whether partition columns come from paths.",
        scope=Scope.READ,
    ),
    _only(
        "FALSE", _READ + "schema.use.end.instanttime", "Whether the schema is an older one.", scope=Scope.READ
    ),
    _only("FALSE", _READ + "create.filesystem.relation", "Whether files are listed.", scope=Scope.READ),
    _only(
        "FALSE",
        _READ + "table.valued.function.timeline.relation",
        "Whether the timeline is listed.",
        scope=Scope.READ,
    ),
    _only(
        "FALSE", _READ + "partition.value.extractor.enabled", "Whether a class reads paths.", scope=Scope.READ
    ),
    _only("FALSE", "hoodie.realtime.merge.skip", "Whether log files are left out.", scope=Scope.READ),
    _never(_READ + "paths", "Paths to read.", scope=Scope.READ),
    _never(_READ + "incr.filters", "Filters of an incremental query.", scope=Scope.READ),
)
