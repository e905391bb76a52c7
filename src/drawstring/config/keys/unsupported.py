"""Hudi's options that change stored data or query results and that drawstring does not support.

Each is accepted with the value that describes drawstring's behaviour, and refused with any other value:
ignoring it would give a different result than the user expects.
"""

from __future__ import annotations

from typing import Final

from drawstring.config.keys.write import CHECKED_BOOTSTRAP_OPTIONS
from drawstring.config.options.option import NOTHING, Kind, Option, Scope


def _only(value: str, key: str, doc: str, *alternatives: str, scope: Scope = Scope.WRITE) -> Option:
    kind = Kind.FLAG if value in ("TRUE", "FALSE") else Kind.TEXT
    return Option(key, doc, scope, kind, alternatives=alternatives, only=(value,))


def _never(key: str, doc: str, *alternatives: str, scope: Scope = Scope.WRITE) -> Option:
    return Option(key, doc, scope, alternatives=alternatives, only=(NOTHING,))


def _only_versions(key: str, doc: str) -> Option:
    return Option(key, doc, Scope.READ, only=("8", "9", "10"))


_WRITE: Final = "hoodie.datasource.write."
_READ: Final = "hoodie.datasource.read."
_MERGERS: Final = (
    "ORG.APACHE.HUDI.HOODIESPARKRECORDMERGER",
    "ORG.APACHE.HUDI.DEFAULTSPARKRECORDMERGER",
    "ORG.APACHE.HUDI.COMMON.MODEL.HOODIEAVRORECORDMERGER",
)

_STRATEGIES: Final = "ORG.APACHE.HUDI.CLIENT.CLUSTERING.RUN.STRATEGY."
_DETECTION: Final = "ORG.APACHE.HUDI.CLIENT.TRANSACTION."
_OF_SERVICES: Final[tuple[Option, ...]] = (
    _only(
        "FALSE",
        "hoodie.clean.delete.bootstrap.base.file",
        "Whether a clean deletes files that a bootstrap left in place.",
        "hoodie.cleaner.delete.bootstrap.base.file",
    ),
    _only("NUM_COMMITS", "hoodie.clean.trigger.strategy", "What makes a clean due."),
    _only("NONE", "hoodie.prewrite.cleaner.policy", "What a write cleans before it begins."),
    _only(
        "-1",
        "hoodie.write.empty.clean.interval.hours",
        "Hours after which a clean that deletes nothing is recorded.",
    ),
    Option(
        "hoodie.clustering.execution.strategy.class",
        "Class that rewrites files.",
        only=(
            f"{_STRATEGIES}SPARKSORTANDSIZEEXECUTIONSTRATEGY",
            f"{_STRATEGIES}SPARKCONSISTENTBUCKETCLUSTERINGEXECUTIONSTRATEGY",
            f"{_STRATEGIES}SPARKBINARYCOPYCLUSTERINGEXECUTIONSTRATEGY",
        ),
    ),
    _never("hoodie.clustering.plan.strategy.earliest.commit.to.cluster", "Commit whose files come first."),
    _only(
        "SIZE", "hoodie.clustering.plan.strategy.file.slices.sort.by", "Order of the slices that are grouped."
    ),
    _only(
        "ORG.APACHE.HUDI.TABLE.ACTION.COMPACT.PLAN.GENERATORS.HOODIECOMPACTIONPLANGENERATOR",
        "hoodie.compaction.plan.generator",
        "Class that plans compactions.",
    ),
    _only(
        "FALSE",
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        "Whether pending writes stop a clustering.",
    ),
    _only("FALSE", "hoodie.rollback.instant.backup.enabled", "Whether a rollback keeps copies of instants."),
    _only("FALSE", "hoodie.table.service.manager.enabled", "Whether a server runs the services."),
    _never("hoodie.client.init.callback.classes", "Classes that a writer calls when it begins."),
    Option(
        "hoodie.write.concurrency.early.conflict.detection.strategy",
        "Class that looks for conflicts early.",
        only=(
            f"{_DETECTION}SIMPLEDIRECTMARKERBASEDDETECTIONSTRATEGY",
            f"{_DETECTION}SIMPLETRANSACTIONDIRECTMARKERBASEDDETECTIONSTRATEGY",
            "ORG.APACHE.HUDI.TIMELINE.SERVICE.HANDLERS.MARKER.ASYNCTIMELINESERVERBASEDDETECTIONSTRATEGY",
        ),
    ),
    _only(
        "FALSE",
        "hoodie.write.track.event.time.watermark",
        "Whether commits have the event times of their rows.",
    ),
)
_OF_FILES: Final[tuple[Option, ...]] = (
    _only(
        "125829120",
        "hoodie.lance.max.file.size",
        "Size of Lance files; hoodie.parquet.max.file.size is that of all base files here.",
    ),
    _only(
        "125829120",
        "hoodie.orc.max.file.size",
        "Size of ORC files; hoodie.parquet.max.file.size is that of all base files here.",
    ),
    _only("ZLIB", "hoodie.orc.compression.codec", "Compression of ORC files."),
    _only("TIMESTAMP_MICROS", "hoodie.parquet.outputtimestamptype", "How files have timestamps."),
    _never(
        "hoodie.parquet.write.config.injector.class", "Class that changes settings of the Parquet writer."
    ),
    _only(
        "FALSE", "hoodie.parquet.writelegacyformat.enabled", "Whether decimals are written as by old Spark."
    ),
    _only(
        "FALSE",
        "hoodie.partition.metafile.use.base.format",
        "Whether partition metadata is in the format of base files.",
    ),
    _only("NATIVE", "hoodie.table.format", "Table format."),
    _never("hoodie.write.timestamp.logical.type.overrides", "Timestamps that are stored otherwise."),
)
_OF_METADATA: Final[tuple[Option, ...]] = (
    _never("hoodie.metadata.index.drop", "Index that a write drops; table.indexes.drop and DROP INDEX do."),
    _never("hoodie.metadata.dir.filter.regex", "Folders that are not part of the table."),
    _never(
        "hoodie.metadata.index.expression.column",
        "Column of an index that a write builds; table.indexes.create and CREATE INDEX do.",
    ),
    _never("hoodie.metadata.index.expression.options", "Settings of that index."),
    _never(
        "hoodie.metadata.index.secondary.column",
        "Column of an index that a write builds; table.indexes.create and CREATE INDEX do.",
    ),
    _never(
        "hoodie.metadata.index.bloom.filter.column.list", "Columns with bloom filters in the metadata table."
    ),
    _only(
        "NUM_COMMITS",
        "hoodie.metadata.compact.trigger.strategy",
        "What makes a compaction of the metadata table due.",
    ),
    _only(
        "FALSE",
        "hoodie.metadata.skip.zero.size.files.on.initialize",
        "Whether empty files are left out of it.",
    ),
    _only("FALSE", "hoodie.metadata.table.service.manager.enabled", "Whether a server runs its services."),
    _only("SINGLE_WRITER", "hoodie.metadata.write.concurrency.mode", "How writers of it take turns."),
)

CHECKED_OPTIONS: Final[tuple[Option, ...]] = (
    _only(
        "ORG.APACHE.HUDI.KEYGEN.PARSER.HOODIEDATETIMEPARSER",
        "hoodie.keygen.datetime.parser.class",
        "Class that parses dates.",
        "hoodie.deltastreamer.keygen.datetime.parser.class",
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
    Option(
        "hoodie.write.record.merge.custom.implementation.classes",
        "Classes that merge records, where Hudi's own do what the merge mode says.",
        only=_MERGERS,
    ),
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
    *_OF_SERVICES,
    *_OF_FILES,
    *_OF_METADATA,
    _only("PAYLOAD_COMBINE", "hoodie.datasource.merge.type", "Whether logs are merged.", scope=Scope.READ),
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
    *(
        _only_versions(_READ + name, "Table version by whose rules begin and end are times.")
        for name in ("incr.table.version", "streaming.table.version")
    ),
    _only(
        "DESCRIPTOR",
        "hoodie.read.blob.inline.mode",
        "Whether queries read the bytes of blobs.",
        scope=Scope.READ,
    ),
    _never(_READ + "paths", "Paths to read.", scope=Scope.READ),
    _never(_READ + "incr.filters", "Filters of an incremental query.", scope=Scope.READ),
)
