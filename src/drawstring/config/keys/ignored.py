"""Hudi's options that do not change results, which are accepted and ignored with a log message.

These keys tune the Java engine, or enable a service that a table can safely do without. Families of keys
are matched by prefix, since plugins add keys of their own; `known_keys.txt` lists all keys of Hudi 1.2.0, as
`scripts/hudi_options.py` finds them in its Spark bundle, so that a misspelled one is detected.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from typing import Final

_SLIP_RATIO: Final = 0.94
"""Similarity from which an unknown key counts as a misspelled known one: a letter or two differ."""

_TUNING: Final = "it tunes the Java engine"
_SERVICES: Final = "it configures a service of the Java engine, or one that drawstring does not have"
_CLEANING: Final = "a clean scans all changed partitions, and runs within the write"
_ARCHIVING: Final = "archiving runs within the write, and creates few files"
_METADATA: Final = "drawstring keeps the partitions of a metadata table that it knows, if there are any"
_EARLY: Final = "it tunes Hudi's early detection of conflicts; ours looks when a write begins a file"
_OTHER_LOCKS: Final = "it is of another lock provider, or lets the Java engine wait longer than wait_time_ms"
_MONITORING: Final = "listeners receive the metrics of writes (drawstring.add_listener)"
_SYNC: Final = "it is for a way to synchronise catalogs that drawstring does not have"
_INTERNAL: Final = "only the Java engine itself sets it"
_TABLE: Final = "it is a property that a table has by its format"
_HIVE: Final = "it is for Hive's readers"
_STREAMER: Final = "it configures Hudi's ingestion application"
_HBASE: Final = "it is of the HBase index, which hoodie.index.type has to name"

IGNORED_FAMILIES: Final[Mapping[str, str]] = {
    "hoodie.archive.": _ARCHIVING,
    "hoodie.aws.": _SYNC,
    "hoodie.bloom.index.": _TUNING,
    "hoodie.bootstrap.": _TUNING,
    "hoodie.bucket.index.": _TUNING,
    "hoodie.bulkinsert.": _TUNING,
    "hoodie.cdc.": _TUNING,
    "hoodie.clean.": _CLEANING,
    "hoodie.cleaner.": _CLEANING,
    "hoodie.client.": _TUNING,
    "hoodie.clustering.": _TUNING,
    "hoodie.commits.": _ARCHIVING,
    "hoodie.common.": _TUNING,
    "hoodie.compact.": _SERVICES,
    "hoodie.compaction.": _TUNING,
    "hoodie.consistency.": _TUNING,
    "hoodie.copyonwrite.": _TUNING,
    "hoodie.datasource.clustering.": _TUNING,
    "hoodie.datasource.compaction.": _SERVICES,
    "hoodie.datasource.hive_sync.": _SYNC,
    "hoodie.datasource.meta.sync.": _SYNC,
    "hoodie.datasource.meta_sync.": _SYNC,
    "hoodie.datasource.read.file.index.": _TUNING,
    "hoodie.datasource.read.incr.": "incremental queries always skip compaction and clustering",
    "hoodie.datasource.read.streaming.": _TUNING,
    "hoodie.datasource.read.table.valued.function.": "it configures SQL statements of the Hudi bundle",
    "hoodie.datasource.write.streaming.": _TUNING,
    "hoodie.deltastreamer.": _STREAMER,
    "hoodie.embed.": _TUNING,
    "hoodie.errortable.": _SERVICES,
    "hoodie.expression.": _METADATA,
    "hoodie.file.": _TUNING,
    "hoodie.filesystem.": _TUNING,
    "hoodie.gcp.": _SYNC,
    "hoodie.global.": _TUNING,
    "hoodie.hbase.index.": _HBASE,
    "hoodie.hfile.": _TUNING,
    "hoodie.index.bloom.": _TUNING,
    "hoodie.index.hbase.": _HBASE,
    "hoodie.internal.": _INTERNAL,
    "hoodie.keep.": _ARCHIVING,
    "hoodie.lance.": _TUNING,
    "hoodie.layout.": _TUNING,
    "hoodie.log.compaction.": "log compaction runs only when enabled",
    "hoodie.logfile.": _TUNING,
    "hoodie.markers.": _TUNING,
    "hoodie.memory.": _TUNING,
    "hoodie.merge.": _TUNING,
    "hoodie.meta.sync.": _SYNC,
    "hoodie.meta_sync.": _SYNC,
    "hoodie.metadata.": _METADATA,
    "hoodie.metaserver.": _TUNING,
    "hoodie.metrics.": _MONITORING,
    "hoodie.metricscompaction.": _MONITORING,
    "hoodie.optimistic.": _TUNING,
    "hoodie.orc.": _TUNING,
    "hoodie.parquet.": _TUNING,
    "hoodie.partition.ttl.": "it configures other strategies",
    "hoodie.precommit.validators.": "it is for validators of Hudi's ingestion application",
    "hoodie.record.index.": _METADATA,
    "hoodie.record.size.": _TUNING,
    "hoodie.rollback.": _TUNING,
    "hoodie.schema.internal.": _INTERNAL,
    "hoodie.simple.index.": _TUNING,
    "hoodie.spark.sql.": "it configures SQL statements of the Hudi bundle",
    "hoodie.sql.": "it configures SQL statements of the Hudi bundle",
    "hoodie.storage.": _TUNING,
    "hoodie.streamer.": _STREAMER,
    "hoodie.table.metadata.": _METADATA,
    "hoodie.table.service.manager.": _SERVICES,
    "hoodie.table.services.": _SERVICES,
    "hoodie.time.generator.": _TUNING,
    "hoodie.timeline.": _TUNING,
    "hoodie.write.buffer.": _TUNING,
    "hoodie.write.commit.callback.": _MONITORING,
    "hoodie.write.concurrency.": _EARLY,
    "hoodie.write.executor.": _TUNING,
    "hoodie.write.lock.": _OTHER_LOCKS,
    "hoodie.write.rolling.": _TUNING,
    "hoodie.write.status.": _TUNING,
}
"""Prefixes of ignored keys, with the reason."""

CLOSED_FAMILIES: Final = frozenset({"hoodie.write.concurrency.", "hoodie.write.lock."})
"""Families in which only the keys of Hudi are ignored: whoever sets another one believes in a protection."""

IGNORED_KEYS: Final[Mapping[str, str]] = {
    "hoodie.archivelog.folder": _TABLE,
    "hoodie.assume.date.partitioning": "partitions are found at any depth",
    "hoodie.auto.adjust.lock.configs": "every write and service takes a lock, without being asked to",
    "hoodie.auto.commit": "a write commits, or leaves the table as it was",
    "hoodie.avro.schema.external.transformation": _TUNING,
    "hoodie.avro.schema.validate": "schemas are always checked",
    "hoodie.avro.write.support.class": _TUNING,
    "hoodie.base.path": "the path is an argument",
    "hoodie.block.writes.on.speculative.execution": _TUNING,
    "hoodie.combine.before.delete": "deleting a key twice in one batch is a single delete",
    "hoodie.datasource.partition_extractor_class": _SYNC,
    "hoodie.datasource.read.use.new.parquet.file.format": _TUNING,
    "hoodie.datasource.write.row.writer.enable": _TUNING,
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": (
        "rows that lack columns are refused; drop_column and ALTER TABLE drop columns"
    ),
    "hoodie.delete.shuffle.parallelism": _TUNING,
    "hoodie.fail.job.on.duplicate.data.file.detection": _TUNING,
    "hoodie.fail.on.timeline.archiving": _SERVICES,
    "hoodie.fail.writes.on.inline.table.service.exception": _SERVICES,
    "hoodie.fileid.prefix.provider.class": _TUNING,
    "hoodie.finalize.write.parallelism": _TUNING,
    "hoodie.fs.atomic_creation.support": "drawstring knows which storages create a file at most once",
    "hoodie.index.name": _METADATA,
    "hoodie.insert.shuffle.parallelism": _TUNING,
    "hoodie.instant.time": _INTERNAL,
    "hoodie.io.factory.class": _TUNING,
    "hoodie.meta.fields.to.exclude": _TUNING,
    "hoodie.optimized.log.blocks.scan.enable": _TUNING,
    "hoodie.partition.metafile.use.base.format": "partition metadata is always in properties format",
    "hoodie.payload.event.time.field": _MONITORING,
    "hoodie.post.commit.failures.ignored": _SERVICES,
    "hoodie.prewrite.cleaner.policy": _SERVICES,
    "hoodie.read.blob.inline.mode": _TUNING,
    "hoodie.read.columns.set": _HIVE,
    "hoodie.release.resource.on.completion.enable": _TUNING,
    "hoodie.schema.cache.enable": _TUNING,
    "hoodie.sensitive.config.keys": "drawstring never logs values",
    "hoodie.skip.default.partition.validation": _TUNING,
    "hoodie.spark.polaris.catalog.class": _SYNC,
    "hoodie.table.checksum": _TABLE,
    "hoodie.table.create.schema": _TABLE,
    "hoodie.table.format": "there is one table format",
    "hoodie.table.index.defs.path": _TABLE,
    "hoodie.table.initial.version": _TABLE,
    "hoodie.table.legacy.payload.class": _TABLE,
    "hoodie.table.log.file.format": _TABLE,
    "hoodie.table.partition_extractor_class": _SYNC,
    "hoodie.table.ro.file.format": _HIVE,
    "hoodie.table.rt.file.format": _HIVE,
    "hoodie.table.secondary.indexes.metadata": _TABLE,
    "hoodie.upsert.shuffle.parallelism": _TUNING,
    "hoodie.valid.commits.list": _HIVE,
    "hoodie.vector.columns": _TABLE,
    "hoodie.write.application.id": "a holder is described by its process, or by hoodie.write.lock.app_id",
    "hoodie.write.auto.upgrade": "drawstring never upgrades a table by itself",
    "hoodie.write.can.ignore.post.commit.failures": _SERVICES,
    "hoodie.write.complex.keygen.validation.enable": "keys of existing tables are kept as they are",
    "hoodie.write.concat.handle.class": _TUNING,
    "hoodie.write.empty.clean.interval.hours": _SERVICES,
    "hoodie.write.ignore.failed": "a failed write is never committed",
    "hoodie.write.markers.type": "many files of a process are marked in one file, others each in its own",
    "hoodie.write.merge.handle.class": _TUNING,
    "hoodie.write.merge.handle.fallback": _TUNING,
    "hoodie.write.tagged.record.storage.level": _TUNING,
    "hoodie.write.track.event.time.watermark": _TUNING,
    "hoodie.writestatus.class": _TUNING,
}
"""Single ignored keys, with the reason."""


def reason_to_ignore(key: str) -> str | None:
    """Return why a key may be ignored, or None if it may not or is unknown."""
    if key in IGNORED_KEYS:
        return IGNORED_KEYS[key]
    family = _family(key)
    if family is None or (family in CLOSED_FAMILIES and key not in _known_keys()):
        return None
    return IGNORED_FAMILIES[family]


def meant_key(key: str, options: Collection[str]) -> str | None:
    """Return the key of the same family of which a key is a misspelling, None if it is none.

    Args:
        key: key in lower case.
        options: keys of supported options, which may belong to the same families.
    """
    family = _family(key)
    if family is None or key in _known_keys():
        return None
    relatives = [known for known in (*_known_keys(), *options) if known.startswith(family)]
    return next(iter(difflib.get_close_matches(key, relatives, n=1, cutoff=_SLIP_RATIO)), None)


def _family(key: str) -> str | None:
    """Return the longest prefix of a key that is an ignored family."""
    parts = key.split(".")
    prefixes = (".".join(parts[:count]) + "." for count in range(len(parts) - 1, 1, -1))
    return next((prefix for prefix in prefixes if prefix in IGNORED_FAMILIES), None)


@cache
def _known_keys() -> frozenset[str]:
    text = resources.files(__package__).joinpath("known_keys.txt").read_text(encoding="utf-8")
    return frozenset((*text.split(), *IGNORED_KEYS))
