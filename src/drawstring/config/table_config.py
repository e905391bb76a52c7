"""The table configuration: `hoodie.properties` as typed fields.

`table_config` reads the properties of tables of versions 2 to 6 and 8 to 10, written by any release;
`new_table_properties` returns those of a new table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.base.resources import BUCKETS_MAX
from drawstring.config.keys.index import HASH_FIELDS
from drawstring.config.merge_config import merge_rule
from drawstring.config.payload_classes import PAYLOAD_STRATEGY, MergeMode, PayloadRule
from drawstring.config.table.key_settings import SLASHED_DATES, TEXTS_OF_TIMESTAMPS, PathTimestamps
from drawstring.config.table.properties import CDC_MODE, new_table_properties, table_checksum
from drawstring.config.table.schema_versions import Renames, SchemaHistory
from drawstring.config.table.storage_layout import DEFAULT_LAYOUT, LSM_TREE, STORAGE_LAYOUT
from drawstring.config.table_types import (
    KeyFunction,
    KeyGeneratorType,
    RecordMerger,
    TableType,
    columns_of,
    default_generator,
    generator_of_class,
    generator_of_type,
    has_meta_fields,
    split_list,
    typed_columns,
)
from drawstring.model.table_version import (
    NEWEST_VERSION,
    VERSION_RULES,
    VERSIONS_WITH_SHARED_LOGS,
    TimelineLayout,
    VersionRules,
)

__all__ = [
    "KeyGeneratorType",
    "MergeMode",
    "PayloadRule",
    "TableConfig",
    "TableType",
    "new_table_properties",
    "table_config",
]

_BUCKETS: Final = "hoodie.bucket.index.num.buckets"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The typed properties of a table; picklable.

    Attributes:
        name, database: names of the table and its database; the latter is empty if it has none.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        version: table version, 6, 8, 9 or 10; 2 to 5 in tables that can only be read.
        record_key_fields: columns of the record key, empty when keys are generated.
        partition_fields: columns of the partition path, without the types of CUSTOM generators.
        partition_types: type of each partition column (`SIMPLE`, `TIMESTAMP`) for CUSTOM, else empty.
        ordering_fields: columns that determine which version of a record is newer.
        merge_mode, partial_update_mode, merge_properties: how versions of a record merge.
        payload_class: the payload class as stored, None if there is none.
        payload_rule: how the code of the payload class differs from the three fields above, None if the table
            does not run it.
        merger: the registered merger of merge mode CUSTOM, None if there is none.
        key_generator: kind of key generator.
        key_function: the registered function of a USER_PROVIDED key generator, None if there is none.
        path_timestamps: how partition paths show timestamps, as a write found it in the folder names; None
            for as `texts_of_timestamps` says.
        hive_style: whether partition folders are named `column=value`.
        url_encode: whether partition values are URL-encoded in paths.
        drop_partition_columns: whether base files lack the partition columns.
        populate_meta_fields: whether records have the meta columns.
        cdc_enabled, cdc_mode: whether writers write CDC log files, and with what contents.
        timeline_path: folder of the active timeline below `.hoodie`, empty in layout 1.
        history_path: folder of the archived timeline, below `.hoodie` in layout 1, below the timeline in 2.
        timezone: time zone of instant times, `UTC` or `LOCAL`.
        base_file_format, log_file_format: file formats, in upper case.
        metadata_partitions: partitions of the metadata table that are ready.
        create_schema: Avro schema (JSON) of the table at its creation.
        index_type, bucket_count, bucket_hash_fields: settings of the index, if the table stores them.
        properties: all keys and values as stored.
        history: versions of the schema, of a table with schema-on-read evolution; set by those who load its
            schema (`timeline.schema`).
    """

    name: str
    table_type: TableType
    version: int
    database: str = ""
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    partition_types: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    merge_mode: MergeMode = MergeMode.COMMIT_TIME_ORDERING
    payload_class: str | None = None
    payload_rule: PayloadRule | None = None
    merger: RecordMerger | None = field(default=None, hash=False, compare=False, repr=False)
    partial_update_mode: str | None = None
    merge_properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    key_generator: KeyGeneratorType = KeyGeneratorType.SIMPLE
    key_function: KeyFunction | None = field(default=None, hash=False, compare=False, repr=False)
    path_timestamps: PathTimestamps | None = None
    hive_style: bool = False
    url_encode: bool = False
    drop_partition_columns: bool = False
    populate_meta_fields: bool = True
    cdc_enabled: bool = False
    cdc_mode: str = "DATA_BEFORE_AFTER"
    timeline_path: str = "timeline"
    history_path: str = "history"
    timezone: str = "UTC"
    base_file_format: str = "PARQUET"
    log_file_format: str = "HOODIE_LOG"
    metadata_partitions: tuple[str, ...] = ()
    create_schema: str | None = None
    index_type: str | None = None
    bucket_count: int | None = None
    bucket_hash_fields: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    history: SchemaHistory | None = field(default=None, hash=False, repr=False)

    @property
    def rules(self) -> VersionRules:
        """What the table's version prescribes."""
        return VERSION_RULES[self.version]

    @property
    def texts_of_timestamps(self) -> bool:
        """Whether keys show timestamps as dates and times instead of numbers."""
        return self.properties.get(TEXTS_OF_TIMESTAMPS, "").lower() == "true"

    @property
    def has_slashed_dates(self) -> bool:
        """Whether partition folders of dates are `2024/01/15` instead of `2024-01-15`."""
        return self.properties.get(SLASHED_DATES, "").lower() == "true"

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that hold the record key and partition fields."""
        return columns_of((*self.record_key_fields, *self.partition_fields))

    @property
    def layout(self) -> TimelineLayout:
        """How the table's timeline is stored."""
        return self.rules.layout

    @property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the table."""
        return self.layout.folder(self.timeline_path)

    @property
    def history_folder(self) -> str:
        """Folder of the archived timeline, relative to the table."""
        return f"{self.timeline_folder}/{self.history_path}"

    @property
    def bucket_engine(self) -> str:
        """The engine of the bucket index: SIMPLE (fixed number of buckets) or CONSISTENT_HASHING."""
        return (self.properties.get("hoodie.index.bucket.engine") or "SIMPLE").upper()

    @property
    def merger_names(self) -> tuple[str, ...]:
        """The names under which a merger may be registered: strategy id, payload class in full and short."""
        strategy = self.properties.get("hoodie.record.merge.strategy.id") or self.properties.get(
            "hoodie.compaction.record.merger.strategy"
        )
        payload = self.payload_class or ""
        names = (None if strategy == PAYLOAD_STRATEGY else strategy, payload, payload.rpartition(".")[2])
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def path_generator(self) -> KeyGeneratorType:
        """The kind of key generator that makes the partition paths, also for AUTO record keys."""
        if self.key_generator is not KeyGeneratorType.AUTO:
            return self.key_generator
        return _stored_generator(self.properties, self.record_key_fields, self.partition_fields)

    @property
    def formatted_partition_fields(self) -> tuple[str, ...]:
        """The partition columns that the key generator formats as dates."""
        if self.path_generator is KeyGeneratorType.TIMESTAMP:
            return self.partition_fields
        kinds = zip(self.partition_fields, self.partition_types, strict=False)
        return tuple(name for name, kind in kinds if kind == "TIMESTAMP")

    @property
    def key_generator_class(self) -> str:
        """Name of the key generator's class, empty if the table stores none."""
        return self.properties.get("hoodie.table.keygenerator.class", "")

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates may go to log files."""
        return self.table_type is TableType.MERGE_ON_READ

    @property
    def is_bootstrapped(self) -> bool:
        """Whether base files may refer to bootstrap source files."""
        has_index = self.properties.get("hoodie.bootstrap.index.enable", "true").lower() == "true"
        return has_index and bool(self.properties.get("hoodie.bootstrap.base.path"))

    @property
    def shares_log_files(self) -> bool:
        """Whether log files may be named after their slice and contain several writes, as in version 6."""
        initial = self.properties.get("hoodie.table.initial.version")
        return self.rules.names_logs_by_slice or initial in VERSIONS_WITH_SHARED_LOGS

    @property
    def has_sorted_files(self) -> bool:
        """Whether base and log files are sorted by record key: the storage layout `lsm_tree`.

        drawstring creates no COPY_ON_WRITE tables of this layout, but Apache Hudi's Spark does.
        """
        return self.properties.get(STORAGE_LAYOUT, "").lower() == LSM_TREE

    def renames(self, instant: str) -> Renames | None:
        """Return the names of columns in the files of an instant; None if they are those of the table."""
        return None if self.history is None else self.history.renames(instant)

    @property
    def storage_layout(self) -> str:
        """The storage layout: `lsm_tree` or `default`."""
        return LSM_TREE if self.has_sorted_files else DEFAULT_LAYOUT

    @property
    def base_extension(self) -> str:
        """The ending of the names of base files and of native log files, with its dot."""
        return f".{self.base_file_format.lower()}"

    @property
    def has_written_format(self) -> bool:
        """Whether base files have a format that this release writes to tables of their version."""
        return self.base_file_format in self.rules.base_formats

    @property
    def has_several_base_formats(self) -> bool:
        """Whether base files may have other formats than `base_file_format`."""
        return _flag(self.properties, "hoodie.table.multiple.base.file.formats.enable")


def table_config(properties: Mapping[str, str]) -> TableConfig:
    """Parse the properties of a table.

    Args:
        properties: keys and values of `hoodie.properties`.

    Raises:
        CorruptTableError: a mandatory key is missing, or values contradict each other.
        UnsupportedError: the table version is not 2 to 6, 8, 9 or 10.
    """
    rules = _rules(properties)
    layout = rules.layout
    partition_fields, partition_types = _partition_fields(properties)
    record_key_fields = split_list(properties.get("hoodie.table.recordkey.fields"))
    stored_ordering = _stored_ordering(properties)
    rule = merge_rule(properties, rules, stored_ordering)
    return TableConfig(
        name=_required(properties, "hoodie.table.name"),
        database=_checked_database(properties),
        table_type=_table_type(properties),
        version=rules.number,
        record_key_fields=record_key_fields,
        partition_fields=partition_fields,
        partition_types=partition_types,
        ordering_fields=rule.ordering_fields or stored_ordering,
        merge_mode=rule.mode,
        partial_update_mode=rule.partial_update_mode,
        merge_properties=rule.properties,
        payload_rule=rule.payload,
        payload_class=_payload_class(properties),
        key_generator=_key_generator(properties, record_key_fields, partition_fields),
        hive_style=_flag(properties, "hoodie.datasource.write.hive_style_partitioning"),
        url_encode=_flag(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        drop_partition_columns=_flag(properties, "hoodie.datasource.write.drop.partition.columns"),
        populate_meta_fields=has_meta_fields(properties),
        cdc_enabled=_flag(properties, "hoodie.table.cdc.enabled"),
        cdc_mode=(properties.get(CDC_MODE) or "DATA_BEFORE_AFTER").upper(),
        timeline_path=_folder(properties, layout.path_key, "timeline") if layout.path_key else "",
        history_path=_folder(properties, layout.history_key, layout.history_default),
        timezone=(properties.get("hoodie.table.timeline.timezone") or "LOCAL").upper(),
        base_file_format=(properties.get("hoodie.table.base.file.format") or "PARQUET").upper(),
        log_file_format=(properties.get("hoodie.table.log.file.format") or "HOODIE_LOG").upper(),
        metadata_partitions=split_list(properties.get("hoodie.table.metadata.partitions")),
        create_schema=properties.get("hoodie.table.create.schema") or None,
        index_type=(properties.get("hoodie.index.type") or "").upper() or None,
        bucket_count=_bucket_count(properties),
        bucket_hash_fields=split_list(properties.get(HASH_FIELDS)) or record_key_fields,
        properties=dict(properties),
    )


def _folder(properties: Mapping[str, str], key: str, default: str) -> str:
    """Return a folder below `.hoodie`."""
    value = properties.get(key) or default
    if any(part in ("", ".", "..") for part in value.split("/")):
        raise _wrong(key, value, "a folder in .hoodie")
    return value


def _stored_ordering(properties: Mapping[str, str]) -> tuple[str, ...]:
    current = properties.get("hoodie.table.ordering.fields")
    return split_list(current or properties.get("hoodie.table.precombine.field"))


def _payload_class(properties: Mapping[str, str]) -> str | None:
    current = properties.get("hoodie.compaction.payload.class")
    return current or properties.get("hoodie.table.legacy.payload.class")


def _required(properties: Mapping[str, str], key: str) -> str:
    value = properties.get(key)
    if not value:
        raise CorruptTableError(
            f"hoodie.properties has no {key}. Restore the file from its backup, or add the key.",
            path=".hoodie/hoodie.properties",
        )
    return value


def _whole_number(properties: Mapping[str, str], key: str) -> int | None:
    text = properties.get(key)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise _wrong(key, text, "a whole number") from None


def _bucket_count(properties: Mapping[str, str]) -> int | None:
    count = _whole_number(properties, _BUCKETS)
    if count is not None and not 0 <= count <= BUCKETS_MAX:
        raise UnsupportedError(
            f"{_BUCKETS} is {count}, but tables can have at most {BUCKETS_MAX} buckets. Correct the property."
        )
    return count


def _flag(properties: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    text = properties.get(key)
    return default if not text else text.strip().lower() == "true"


def _rules(properties: Mapping[str, str]) -> VersionRules:
    """Return the rules of the table version, having checked that the timeline has its layout."""
    _required(properties, "hoodie.table.version")
    version = _whole_number(properties, "hoodie.table.version") or 0
    rules = VERSION_RULES.get(version)
    if rules is None:
        raise UnsupportedError(
            f"The table has version {version}, but this release reads only versions 2 to 6, 8, 9 and 10,"
            " and writes 6, 8, 9 and 10. "
            + ("Upgrade the table with Apache Hudi." if version < NEWEST_VERSION else "Upgrade drawstring.")
        )
    layout = _whole_number(properties, "hoodie.timeline.layout.version")
    if layout is not None and layout != rules.layout.number:
        raise CorruptTableError(
            f"The timeline layout {layout} does not fit table version {version}, "
            f"which has layout {rules.layout.number}. An upgrade was interrupted, "
            "or hoodie.properties was edited. Restore the file from its backup.",
            path=".hoodie/hoodie.properties",
        )
    return rules


def _table_type(properties: Mapping[str, str]) -> TableType:
    text = _required(properties, "hoodie.table.type")
    try:
        return TableType(text.upper())
    except ValueError:
        raise _wrong("hoodie.table.type", text, "COPY_ON_WRITE or MERGE_ON_READ") from None


def _checked_database(properties: Mapping[str, str]) -> str:
    """Return the database, after verifying the table checksum if there is one."""
    name, database = _required(properties, "hoodie.table.name"), properties.get("hoodie.database.name") or ""
    stored = properties.get("hoodie.table.checksum")
    if stored and stored != str(table_checksum(name, database)):
        raise _wrong("hoodie.table.checksum", stored, f"{table_checksum(name, database)} for {name!r}")
    return database


def _partition_fields(properties: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields = split_list(properties.get("hoodie.table.partition.fields"))
    return typed_columns(fields) if fields else ((), ())


def _key_generator(
    properties: Mapping[str, str], record_key: tuple[str, ...], partition_by: tuple[str, ...]
) -> KeyGeneratorType:
    if not record_key:
        return KeyGeneratorType.AUTO
    return _stored_generator(properties, record_key, partition_by)


def _stored_generator(
    properties: Mapping[str, str], record_key: tuple[str, ...], partition_by: tuple[str, ...]
) -> KeyGeneratorType:
    if name := properties.get("hoodie.table.keygenerator.type"):
        return generator_of_type(name)
    if name := properties.get("hoodie.table.keygenerator.class"):
        return generator_of_class(name)
    return default_generator(record_key, partition_by)


def _wrong(key: str, value: str, expected: str) -> CorruptTableError:
    return CorruptTableError(
        f"{key} is {value!r}, but should be {expected}. Restore hoodie.properties from its backup.",
        path=".hoodie/hoodie.properties",
    )
