"""Table types, kinds of key generators, and which meta columns records have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

META_FIELDS: Final = "hoodie.populate.meta.fields"
META_FIELDS_MODE: Final = "hoodie.meta.fields.mode"
ALL_META_FIELDS: Final = "ALL"
NO_META_FIELDS: Final = "NONE"


class TableType(StrEnum):
    """How updates are stored: rewritten base files, or log files on top of them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class KeyGeneratorType(StrEnum):
    """How record keys and partition paths are made from columns; the writer generates AUTO keys."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    AUTO = "AUTO"
    USER_PROVIDED = "USER_PROVIDED"


_BY_CLASS: Final[Mapping[str, KeyGeneratorType]] = {
    "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
    "SimpleAvroKeyGenerator": KeyGeneratorType.SIMPLE,
    "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
    "ComplexAvroKeyGenerator": KeyGeneratorType.COMPLEX,
    "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "TimestampBasedAvroKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
    "CustomAvroKeyGenerator": KeyGeneratorType.CUSTOM,
    "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
    "GlobalAvroDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
}


def columns_of(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that hold key, partition or ordering fields, of which some are nested (`a.k`)."""
    return tuple(dict.fromkeys(field.partition(".")[0] for field in fields))


def split_list(text: str | None) -> tuple[str, ...]:
    """Return the non-empty parts of a comma-separated list, without outer blanks."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def typed_columns(columns: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and types of partition columns; only CUSTOM generators have types (`column:TYPE`)."""
    pairs = [column.partition(":") for column in columns]
    names = tuple(name.strip() for name, _, _ in pairs)
    if not any(separator for _, separator, _ in pairs):
        return names, ()
    return names, tuple((kind.strip() or "SIMPLE").upper() for _, _, kind in pairs)


def generator_of_class(name: str) -> KeyGeneratorType:
    """Return the kind of a key generator class, by its simple name."""
    return _BY_CLASS.get(name.rpartition(".")[2], KeyGeneratorType.USER_PROVIDED)


def generator_of_type(name: str) -> KeyGeneratorType:
    """Return the kind of a stored enum name; the `_AVRO` variants make the same keys."""
    try:
        return KeyGeneratorType(name.upper().removesuffix("_AVRO"))
    except ValueError:
        return KeyGeneratorType.USER_PROVIDED


def type_name_of_class(name: str) -> str:
    """Return the enum name that Hudi stores for a key generator class."""
    generator = generator_of_class(name)
    return f"{generator}_AVRO" if "Avro" in name.rpartition(".")[2] else generator.value


def class_of_type(name: str) -> str:
    """Return the class of a stored enum name, empty if it has none."""
    is_avro = name.upper().endswith("_AVRO")
    generator = generator_of_type(name)
    classes = [
        known for known, kind in _BY_CLASS.items() if kind is generator and ("Avro" in known) == is_avro
    ]
    return f"org.apache.hudi.keygen.{classes[0]}" if classes else ""


def default_generator(record_key: tuple[str, ...], partition_by: tuple[str, ...]) -> KeyGeneratorType:
    """Return the generator that Hudi chooses by the numbers of key and partition columns."""
    if not partition_by:
        return KeyGeneratorType.NON_PARTITION
    if len(partition_by) == 1 and len(record_key) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def has_meta_fields(properties: Mapping[str, str]) -> bool:
    """Return whether the records of a table have all meta columns.

    Version 10 stores a mode, which says so before the older flag does.
    """
    mode = _mode(properties)
    return (
        mode == ALL_META_FIELDS if mode else (properties.get(META_FIELDS) or "true").strip().lower() == "true"
    )


def has_some_meta_fields(properties: Mapping[str, str]) -> bool:
    """Return whether the records of a table have some of the meta columns, as a mode other than both says."""
    return _mode(properties) not in ("", ALL_META_FIELDS, NO_META_FIELDS)


def _mode(properties: Mapping[str, str]) -> str:
    return properties.get(META_FIELDS_MODE, "").strip().upper()
