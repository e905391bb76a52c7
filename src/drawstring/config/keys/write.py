"""Define the options of writes.

Besides those of all writes: merging of the small files that appends write, the sort order of bulk inserts,
and the bootstrap, which turns a folder of Parquet files into a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.concurrency import CONCURRENCY_OPTIONS, FAILED_WRITES_OPTIONS, LOCK_OPTIONS
from drawstring.config.keys.index import (
    INDEX_OPTIONS,
    LOG_INDEX_OPTIONS,
    METADATA_COMPACTION_OPTIONS,
    METADATA_OPTIONS,
)
from drawstring.config.keys.ingest import STREAMING_OPTIONS, SYNC_OPTIONS, VALIDATOR_OPTIONS
from drawstring.config.keys.rolling_metadata import ROLLING_OPTIONS
from drawstring.config.keys.services import (
    ARCHIVE_OPTIONS,
    CLEAN_OPTIONS,
    CLUSTERING_OPTIONS,
    COMPACTION_OPTIONS,
    TTL_OPTIONS,
)
from drawstring.config.keys.sizing import SIZING_OPTIONS
from drawstring.config.merge_config import MERGE_PROPERTY_PREFIX
from drawstring.config.options.option import Kind, Option, class_names
from drawstring.config.payload_classes import DELETE_FIELD, DELETE_MARKER
from drawstring.config.table.key_settings import KEY_SETTINGS
from drawstring.config.table.storage_layout import LAYOUT_OPTIONS
from drawstring.config.table.virtual_keys import LEANER_OPTIONS
from drawstring.model.table_version import VERSION_RULES, WRITABLE_VERSIONS


@dataclass(frozen=True, slots=True)
class AppendMerging:
    """Settings of the merging of small files after appends.

    Attributes:
        merges_appended: whether appends merge small files.
        merged_files_min: number of small files of a partition at which they are merged.
    """

    merges_appended: bool
    merged_files_min: int


APPEND_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "drawstring.append.merge",
        "Whether an append merges the small files of the partitions that it wrote to once there are enough of"
        " them; false for the highest write rate. A concurrent write to these files succeeds, and the merge"
        " is rolled back. Clustering, if enabled, replaces the merge.",
        kind=Kind.FLAG,
        default=True,
        field="merges_appended",
    ),
    Option(
        "drawstring.append.merge.min.files",
        "Number of small base files (hoodie.parquet.small.file.limit) of a partition at which an append"
        " merges them; the actual number may be a little higher, since not every append checks. A file larger"
        " than all smaller ones together waits until these have grown; a file that a clustering sorted is"
        " never merged.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="merged_files_min",
    ),
)


class SortMode(StrEnum):
    """How a bulk insert shuffles and sorts rows before it writes them."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


@dataclass(frozen=True, slots=True)
class BulkInsert:
    """Settings of a bulk insert.

    Attributes:
        sort_mode: one of `SortMode`.
        sort_columns: columns to sort all rows by, after the partition path; override the sort mode.
        sort_by_key_last: whether the record key follows the sort columns.
        partitioner: Hudi's partitioner class that sorts by columns, None when not given.
    """

    sort_mode: str
    sort_columns: tuple[str, ...]
    sort_by_key_last: bool
    partitioner: str | None


_PARTITIONER_KEY: Final = "hoodie.bulkinsert.user.defined.partitioner.class"
_PARTITIONERS: Final = tuple(
    f"{package}{name}CustomColumnsSortPartitioner"
    for name in ("RDD", "Row", "Java")
    for package in ("org.apache.hudi.execution.bulkinsert.", "")
)

BULK_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.bulkinsert.sort.mode",
        "How bulk_insert sorts rows by partition path and record key: not at all, globally, within each task,"
        " or with one task for each partition.",
        default=SortMode.NONE.value,
        choices=tuple(SortMode),
        field="sort_mode",
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        "Columns that bulk_insert sorts all rows by, after the partition path; overrides the sort mode.",
        kind=Kind.LIST,
        default=(),
        field="sort_columns",
    ),
    Option(
        "hoodie.bulkinsert.sort.suffix.record_key",
        "Whether bulk_insert also sorts by the record key, after the sort columns.",
        kind=Kind.FLAG,
        default=False,
        field="sort_by_key_last",
    ),
    Option(
        _PARTITIONER_KEY,
        "Hudi's partitioner classes that sort by the sort columns; the sort columns suffice without them.",
        only=tuple(name.upper() for name in _PARTITIONERS),
        field="partitioner",
    ),
)


BASE_PATH: Final = "hoodie.bootstrap.base.path"
_SELECTORS: Final = "org.apache.hudi.client.bootstrap.selector."
_TRANSLATORS: Final = "org.apache.hudi.client.bootstrap.translator."
_DECODED: Final = "DecodedBootstrapPartitionPathTranslator"
_INDEX_CLASS: Final = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_OLD_INDEX_CLASS: Final = "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex"
_PROVIDER: Final = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"


class BootstrapMode(StrEnum):
    """How a folder of the source is bootstrapped."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"

    @property
    def other(self) -> BootstrapMode:
        """The other mode."""
        is_full = self is BootstrapMode.FULL_RECORD
        return BootstrapMode.METADATA_ONLY if is_full else BootstrapMode.FULL_RECORD


_MODES: Final = {
    "MetadataOnlyBootstrapModeSelector": BootstrapMode.METADATA_ONLY,
    "FullRecordBootstrapModeSelector": BootstrapMode.FULL_RECORD,
    "BootstrapRegexModeSelector": None,
}
_REGEX_KEY: Final = "hoodie.bootstrap.mode.selector.regex"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Settings of a bootstrap.

    Attributes:
        source: address of the source folder.
        selector: Hudi's mode selector class.
        regex, regex_mode: for BootstrapRegexModeSelector, the pattern and the mode of the folders that match
            it; the others get the other mode.
        translator: Hudi's class that translates folder names to partition paths; None for the class that
            fits the table's URL-encoding.
    """

    source: str | None
    selector: str
    regex: str
    regex_mode: str
    translator: str | None
    has_index: bool

    def decodes(self, *, url_encode: bool) -> bool:
        """Return whether escaped characters in folder names are decoded in partition paths.

        Args:
            url_encode: whether the table URL-encodes partition paths.
        """
        return not url_encode if self.translator is None else self.translator.endswith(_DECODED)

    def mode_of(self, folder: str) -> BootstrapMode:
        """Return the bootstrap mode of a folder.

        Args:
            folder: path relative to the source's root.

        Raises:
            InvalidError: the pattern is not a regular expression.
        """
        fixed = _MODES[self.selector.rpartition(".")[2]]
        if fixed is not None:
            return fixed
        try:
            matches = re.fullmatch(self.regex, folder)
        except re.error as error:
            raise InvalidError(
                f"{_REGEX_KEY} is {self.regex!r}, which is not a regular expression ({error}). Correct it."
            ) from error
        mode = BootstrapMode(self.regex_mode)
        return mode if matches else mode.other


BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(BASE_PATH, "Folder of Parquet files that the bootstrap operation reads.", field="source"),
    Option(
        "hoodie.bootstrap.mode.selector",
        "Hudi's class that selects the bootstrap mode: leave the rows in the source files, copy them into the"
        " table, or decide by folder.",
        default=f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        choices=class_names(_SELECTORS, _MODES),
        field="selector",
    ),
    Option(
        _REGEX_KEY,
        "With BootstrapRegexModeSelector, the regular expression that the whole path of a folder below the"
        " source has to match.",
        default=".*",
        field="regex",
    ),
    Option(
        f"{_REGEX_KEY}.mode",
        "Bootstrap mode of the folders that match; the others get the other mode.",
        default=BootstrapMode.METADATA_ONLY.value,
        choices=tuple(BootstrapMode),
        field="regex_mode",
    ),
    Option(
        "hoodie.bootstrap.partitionpath.translator.class",
        "Hudi's class that translates folder names to partition paths, unchanged or decoded; by default the"
        " one that fits the table's URL-encoding.",
        choices=class_names(_TRANSLATORS, ("IdentityBootstrapPartitionPathTranslator", _DECODED)),
        field="translator",
    ),
    Option(
        "hoodie.bootstrap.index.enable",
        "Whether there is an index of the source files, without which this release does not bootstrap.",
        kind=Kind.FLAG,
        default=True,
        field="has_index",
    ),
)
"""Options of the bootstrap operation."""

CHECKED_BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.bootstrap.index.class",
        "Hudi's class of that index.",
        only=(_INDEX_CLASS.upper(), _OLD_INDEX_CLASS.upper()),
    ),
    Option("hoodie.bootstrap.index.type", "Type of that index.", only=("HFILE",)),
    Option(
        "hoodie.bootstrap.full.input.provider",
        "Hudi's class that reads the rows to copy into the table.",
        only=(_PROVIDER.upper(),),
    ),
)
"""Options that are accepted with one value only."""


def bootstrap_properties(source: str, version: int, *, has_index: bool = True) -> dict[str, str]:
    """Return the table properties of a bootstrapped table.

    Args:
        source: address of the source's root.
        version: table version.
        has_index: whether base files may refer to source files.
    """
    stored = {BASE_PATH: source, "hoodie.bootstrap.index.enable": str(has_index).lower()}
    if not VERSION_RULES[version].stores_bootstrap_index_type:
        return {**stored, "hoodie.bootstrap.index.class": _INDEX_CLASS}
    return {**stored, "hoodie.bootstrap.index.type": "HFILE"}


COMMIT_METADATA_PREFIX: Final = "hoodie.datasource.write.commitmeta.key.prefix"
WRITE_BASE_PATH: Final = "hoodie.base.path"
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
        WRITE_BASE_PATH,
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
