"""Options of writes that drawstring supports."""

from __future__ import annotations

from typing import Final

from drawstring.config.keys.append import APPEND_OPTIONS
from drawstring.config.keys.archive import ARCHIVE_OPTIONS
from drawstring.config.keys.bootstrap import BOOTSTRAP_OPTIONS
from drawstring.config.keys.bulk import BULK_OPTIONS
from drawstring.config.keys.clean import CLEAN_OPTIONS
from drawstring.config.keys.clustering import CLUSTERING_OPTIONS
from drawstring.config.keys.compaction import COMPACTION_OPTIONS
from drawstring.config.keys.concurrency import CONCURRENCY_OPTIONS
from drawstring.config.keys.failed_writes import FAILED_WRITES_OPTIONS
from drawstring.config.keys.index import INDEX_OPTIONS
from drawstring.config.keys.locks import LOCK_OPTIONS
from drawstring.config.keys.log_index import LOG_INDEX_OPTIONS
from drawstring.config.keys.metadata import METADATA_COMPACTION_OPTIONS, METADATA_OPTIONS
from drawstring.config.keys.pipelines.streaming import STREAMING_OPTIONS
from drawstring.config.keys.pipelines.sync import SYNC_OPTIONS
from drawstring.config.keys.pipelines.validators import VALIDATOR_OPTIONS
from drawstring.config.keys.rolling_metadata import ROLLING_OPTIONS
from drawstring.config.keys.sizing import SIZING_OPTIONS
from drawstring.config.keys.ttl import TTL_OPTIONS
from drawstring.config.options.option import Kind, Option
from drawstring.config.table.key_settings import KEY_SETTINGS
from drawstring.config.table.merge_rules import DELETE_FIELD, DELETE_MARKER, MERGE_PROPERTY_PREFIX
from drawstring.config.table.storage_layout import LAYOUT_OPTIONS
from drawstring.config.table.virtual_keys import LEANER_OPTIONS
from drawstring.model.table_version import WRITABLE_VERSIONS

COMMIT_METADATA_PREFIX: Final = "hoodie.datasource.write.commitmeta.key.prefix"
BASE_PATH: Final = "hoodie.base.path"
UNKNOWN_KEYS: Final = "drawstring.options.unknown"
_OPERATIONS: Final = (
    "upsert", "insert", "bulk_insert", "append", "delete", "insert_overwrite", "insert_overwrite_table",
    "delete_partition", "bootstrap", "compact", "cluster", "insert_prepped", "upsert_prepped",
    "bulk_insert_prepped", "delete_prepped",
)  # fmt: skip
SUPPORTED_OPERATIONS: Final = _OPERATIONS[:9]
_CODECS: Final = ("snappy", "gzip", "zstd", "lz4", "brotli", "uncompressed", "lzo")
_GENERATORS: Final = (
    "SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM", "GLOBAL_DELETE", "USER_PROVIDED",
    "SIMPLE_AVRO", "COMPLEX_AVRO", "NON_PARTITION_AVRO", "TIMESTAMP_AVRO", "CUSTOM_AVRO",
    "GLOBAL_DELETE_AVRO",
)  # fmt: skip
_MERGE_MODES: Final = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM")

IDENTITY_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.table.name",
        "Name of the table.",
        alternatives=("hoodie.datasource.write.table.name",),
        field="table_name",
    ),
    Option(
        BASE_PATH,
        "Folder of the table, which the write or the service names anyway. Another folder is refused.",
    ),
    Option(
        "hoodie.datasource.write.table.type",
        "Type of a new table: whether updates rewrite base files or write log files.",
        alternatives=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
        choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
        field="table_type",
    ),
    Option(
        "hoodie.write.table.version",
        "Version of a new table; 9 when not given.",
        kind=Kind.NUMBER,
        alternatives=("hoodie.table.version",),
        spellings=(("SIX", "6"), ("EIGHT", "8"), ("NINE", "9"), ("TEN", "10")),
        only=tuple(map(str, WRITABLE_VERSIONS)),
        field="table_version",
    ),
    Option(
        "hoodie.database.name",
        "Database that the table belongs to.",
        stored_as="hoodie.database.name",
    ),
    Option(
        "hoodie.datasource.write.recordkey.field",
        "Columns of the record key, or fields inside columns, as `a.k`.",
        kind=Kind.LIST,
        default=(),
        alternatives=("hoodie.table.recordkey.fields",),
        field="record_key",
    ),
    Option(
        "hoodie.datasource.write.partitionpath.field",
        "Columns of the partition path, with a CUSTOM key generator as `column:SIMPLE` or `column:TIMESTAMP`;"
        " empty for a table without partitions.",
        kind=Kind.LIST,
        default=(),
        alternatives=("hoodie.table.partition.fields",),
        field="partition_path",
    ),
    Option(
        "hoodie.table.ordering.fields",
        "Ordering fields: columns that determine which version of a record is newer (event time).",
        kind=Kind.LIST,
        default=(),
        alternatives=(
            "hoodie.datasource.write.precombine.field",
            "hoodie.table.precombine.field",
            "hoodie.payload.ordering.field",
        ),
        field="ordering",
    ),
    Option(
        "hoodie.datasource.write.hive_style_partitioning",
        "Whether partition folders of a new table are named column=value.",
        kind=Kind.FLAG,
        field="hive_style",
        stored_as="hoodie.datasource.write.hive_style_partitioning",
    ),
    Option(
        "hoodie.datasource.write.partitionpath.urlencode",
        "Whether partition values of a new table are URL-encoded in paths.",
        kind=Kind.FLAG,
        field="url_encode",
        stored_as="hoodie.datasource.write.partitionpath.urlencode",
    ),
    Option(
        "hoodie.datasource.write.keygenerator.type",
        "Kind of key generator; when not given, it follows from the number of columns and their types.",
        choices=_GENERATORS,
        alternatives=("hoodie.table.keygenerator.type",),
        stored_as="hoodie.table.keygenerator.type",
    ),
    Option(
        "hoodie.datasource.write.keygenerator.class",
        "Key generator as a class name of Hudi's, or the name of a registered function.",
        alternatives=("hoodie.table.keygenerator.class",),
        stored_as="hoodie.table.keygenerator.class",
    ),
    Option(
        "hoodie.record.merge.mode",
        "Which version of a record wins; when not given, by event time if there are ordering fields, else by"
        " commit time.",
        alternatives=("hoodie.write.record.merge.mode",),
        choices=_MERGE_MODES,
        stored_as="hoodie.record.merge.mode",
    ),
    Option(
        "hoodie.datasource.write.payload.class",
        "How versions of a record merge, as the name of a payload class: one of Hudi's, or one that a merger"
        " is registered for.",
        alternatives=("hoodie.compaction.payload.class",),
        field="payload_class",
        stored_as="hoodie.compaction.payload.class",
    ),
    Option(
        "hoodie.write.record.merge.strategy.id",
        "Which version of a record wins, as the id of one of Hudi's merge strategies: that of commit time, of"
        " event time, or of payload classes.",
        alternatives=(
            "hoodie.record.merge.strategy.id",
            "hoodie.datasource.write.record.merger.strategy",
            "hoodie.compaction.record.merger.strategy",
        ),
        stored_as="hoodie.record.merge.strategy.id",
    ),
    Option(
        "hoodie.payload.delete.field",
        "Column of a new table whose value marks deletes; with the payload class DefaultHoodieRecordPayload.",
        alternatives=(MERGE_PROPERTY_PREFIX + DELETE_FIELD,),
        field="delete_field",
        stored_as=MERGE_PROPERTY_PREFIX + DELETE_FIELD,
    ),
    Option(
        "hoodie.payload.delete.marker",
        "The value of that column that marks a delete.",
        alternatives=(MERGE_PROPERTY_PREFIX + DELETE_MARKER,),
        field="delete_marker",
        stored_as=MERGE_PROPERTY_PREFIX + DELETE_MARKER,
    ),
    Option(
        "hoodie.table.timeline.timezone",
        "Time zone of the instant times of a new table; UTC when not given.",
        choices=("UTC", "LOCAL"),
        stored_as="hoodie.table.timeline.timezone",
    ),
    Option(
        "hoodie.table.cdc.enabled",
        "Whether writes to a new table write CDC log files for CDC queries.",
        kind=Kind.FLAG,
        field="cdc_enabled",
        stored_as="hoodie.table.cdc.enabled",
    ),
    Option(
        "hoodie.table.cdc.supplemental.logging.mode",
        "What CDC log files contain: operation and key only, also the record before the change, or also the"
        " records before and after it; the last when not given.",
        choices=("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"),
        field="cdc_mode",
        stored_as="hoodie.table.cdc.supplemental.logging.mode",
    ),
    *LEANER_OPTIONS,
    *LAYOUT_OPTIONS,
    *KEY_SETTINGS,
)

WRITE_OPTIONS: Final[tuple[Option, ...]] = (
    *IDENTITY_OPTIONS,
    Option(
        "hoodie.datasource.write.operation",
        "The write operation.",
        default="upsert",
        choices=_OPERATIONS,
        only=tuple(name.upper() for name in SUPPORTED_OPERATIONS),
        field="operation",
    ),
    Option(
        "hoodie.datasource.write.partitions.to.delete",
        "Partition paths that delete_partition drops, with * for any text; the partitions of the rows when"
        " not given.",
        kind=Kind.LIST,
        default=(),
        field="partitions_to_delete",
    ),
    *INDEX_OPTIONS,
    *LOG_INDEX_OPTIONS,
    Option(
        "hoodie.logfile.data.block.format",
        "Format of the records in log files.",
        default="parquet",
        choices=("parquet", "avro", "hfile", "lance"),
        only=("PARQUET", "AVRO"),
        field="log_block_format",
    ),
    Option(
        "hoodie.write.record.positions",
        "Whether log files of MERGE_ON_READ tables of version 8 and later have the positions of their records"
        " in the base file, for readers that merge by these. Only the simple and bloom indexes find them.",
        kind=Kind.FLAG,
        default=True,
        field="record_positions",
    ),
    Option(
        "hoodie.parquet.compression.codec",
        "Compression of base files and Parquet log blocks.",
        default="zstd",
        choices=_CODECS,
        only=tuple(codec.upper() for codec in _CODECS[:-1]),
        field="compression",
    ),
    Option(
        "hoodie.parquet.bloom.filter.enabled",
        "Whether base files contain a bloom filter of their keys. It is exact (a rate of false positives of"
        " 10⁻⁹) unless the table's `hoodie.index.type` is an index other than a bloom index (10⁻³).",
        kind=Kind.FLAG,
        default=True,
        field="bloom_enabled",
    ),
    *SIZING_OPTIONS,
    *BULK_OPTIONS,
    *APPEND_OPTIONS,
    *CLUSTERING_OPTIONS,
    *BOOTSTRAP_OPTIONS,
    Option(
        "drawstring.write.partial_update",
        "Whether upsert sets only the columns that the rows have, and keeps the stored values of the others.",
        kind=Kind.FLAG,
        default=False,
        field="partial_update",
    ),
    Option(
        "hoodie.schema.on.read.enable",
        "Whether `ALTER TABLE` may rename, drop and move columns; whoever reads the table with"
        " Apache Hudi afterwards sets it, too.",
        kind=Kind.FLAG,
        default=False,
    ),
    Option(
        "hoodie.write.set.null.for.missing.columns",
        "Whether rows may lack columns of the table, which are then set to null; otherwise such rows are"
        " refused, since an upsert would overwrite stored values with null.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.datasource.write.reconcile.schema",),
        field="null_for_missing",
    ),
    Option(
        "hoodie.spark.sql.merge.into.partial.updates",
        "Whether updates and merges write log blocks with only the columns that they set, in MERGE_ON_READ"
        " tables of version 8 and later with event-time ordering. Off by default, unlike in Hudi: if a log"
        " file contains a late row of the same key, such a block would restore the other values of that row.",
        kind=Kind.FLAG,
        default=False,
        field="partial_merges",
    ),
    Option(
        "hoodie.combine.before.insert",
        "Whether insert and bulk_insert merge incoming records with the same key into one.",
        kind=Kind.FLAG,
        default=False,
        field="combine_before_insert",
    ),
    Option(
        "hoodie.datasource.insert.dup.policy",
        "What insert does with rows whose key is in the table already: keep both, drop the new one, or fail.",
        default="none",
        choices=("none", "drop", "fail"),
        field="insert_duplicates",
    ),
    Option(
        "hoodie.datasource.write.insert.drop.duplicates",
        "Whether insert drops rows whose key is in the table already, and merges incoming records with the"
        " same key into one.",
        kind=Kind.FLAG,
        default=False,
        field="drop_duplicates",
    ),
    Option(
        "hoodie.allow.empty.commit",
        "Whether a write that changes nothing still creates a commit, with metadata but without files.",
        kind=Kind.FLAG,
        default=True,
        field="allow_empty_commit",
    ),
    Option(
        COMMIT_METADATA_PREFIX,
        "Options whose keys begin so become extra metadata of the commit, under their whole keys. A prefix"
        " with which options begin, as hoodie. is, is refused.",
        default="_",
    ),
    Option(
        "hoodie.combine.before.upsert",
        "Whether upsert merges incoming records with the same key into one; false is not supported.",
        kind=Kind.FLAG,
        default=True,
        field="combine_before_upsert",
    ),
    Option(
        "hoodie.table.services.enabled",
        "Whether table services follow writes: cleaning, archiving, compaction, clustering, and expiry of"
        " partitions. Those that are called run in any case.",
        kind=Kind.FLAG,
        default=True,
        field="services_enabled",
    ),
    Option(
        "hoodie.spark.sql.insert.into.operation",
        "What `INSERT INTO` does in Spark's SQL; insert when not given.",
        choices=("insert", "upsert", "bulk_insert"),
    ),
    Option(
        "hoodie.sql.insert.mode",
        "What `INSERT INTO` does in Spark's SQL where hoodie.spark.sql.insert.into.operation is not given:"
        " an insert, or an upsert for upsert and strict with hoodie.combine.before.insert=true.",
        choices=("upsert", "strict", "non-strict"),
    ),
    Option(
        "hoodie.sql.bulk.insert.enable",
        "Whether `INSERT INTO` is a bulk insert in Spark's SQL where hoodie.sql.insert.mode is non-strict.",
        kind=Kind.FLAG,
        default=False,
    ),
    Option(
        UNKNOWN_KEYS,
        "What becomes of options that neither Hudi nor drawstring has, of writes and reads: one warning in a"
        " process, or an error. One that is close to a known option is an error in any case.",
        default="warn",
        choices=("warn", "error"),
    ),
    *COMPACTION_OPTIONS,
    *CLEAN_OPTIONS,
    *CONCURRENCY_OPTIONS,
    *FAILED_WRITES_OPTIONS,
    *ARCHIVE_OPTIONS,
    *STREAMING_OPTIONS,
    *SYNC_OPTIONS,
    *VALIDATOR_OPTIONS,
    *TTL_OPTIONS,
    *METADATA_OPTIONS,
    *METADATA_COMPACTION_OPTIONS,
    *ROLLING_OPTIONS,
    *LOCK_OPTIONS,
)
