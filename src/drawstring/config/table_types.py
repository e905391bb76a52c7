"""Name the table types, the kinds of key generators and the meta columns, and register users' own functions.

`register_key_generator` and `register_merger` register a user's key generator and record merger. The process
that opens a table looks up the function. The table's configuration carries it to the tasks, so workers need
no registration of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.payload_classes import built_in_rule

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


KeyFunction: TypeAlias = Callable[[pa.RecordBatch], tuple[pa.Array, pa.Array]]
"""A function of the key and partition columns of rows that returns their record keys and partition paths."""

_generators: dict[str, KeyFunction] = {}


def register_key_generator(name: str, generator: KeyFunction) -> None:
    """Register a function as a key generator, so that tables with a custom key generator can be written.

    Register it before opening the table. Registering a name again replaces the function.

    Args:
        name: the table's key generator class (`hoodie.datasource.write.keygenerator.class` when it is
            created), in full or without the package.
        generator: called with a record batch of the table's record key and partition columns, in the types
            of the table. It returns two text columns of the same length: the record keys, none of them null
            or empty, and the partition paths, empty for none. It has to return the same key and path for the
            same row every time. On Spark it is pickled to the workers.

    Raises:
        InvalidError: the name is empty, or the generator is not callable.

    Example:
        >>> import pyarrow.compute as pc
        >>> def by_initial(rows):
        ...     keys = pc.cast(rows["id"], pa.string())
        ...     return keys, pc.utf8_slice_codeunits(rows["city"], 0, 1)
        >>> drawstring.register_key_generator("com.example.ByInitial", by_initial)
        >>> by_city = drawstring.create(
        ...     "memory://trips", rides.schema, record_key="id", partition_by="city",
        ...     properties={"hoodie.datasource.write.keygenerator.class": "com.example.ByInitial"},
        ... )
        >>> result = by_city.insert(rides)
        >>> sorted(part.partition for part in by_city.inspect.files())
        ['l', 'o']
    """
    if not name.strip():
        raise InvalidError("The name of the key generator is empty. Give the tables' key generator class.")
    if not callable(generator):
        raise InvalidError(
            f"The key generator {name!r} is a {type(generator).__name__}, which is not callable. Give a"
            " function."
        )
    _generators[name.strip()] = generator


def registered_key_generator(name: str) -> KeyFunction | None:
    """Return the function registered under a class name, in full or without the package."""
    return _generators.get(name) or _generators.get(name.rpartition(".")[2])


RecordMerger: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
"""A function of the older and the newer versions of records that returns the merged records."""

_mergers: dict[str, RecordMerger] = {}


def register_merger(name: str, merger: RecordMerger) -> None:
    """Register a function as a record merger, so that tables with merge mode CUSTOM can be merged.

    Register it before opening the table. Registering a name again replaces the function.

    Args:
        name: the table's merge strategy id (`hoodie.record.merge.strategy.id`), or its payload class
            (`hoodie.compaction.payload.class`) in full or without the package.
        merger: called with two tables of all columns, the older versions and the newer ones, which have the
            same length and the same key in each row. Meta columns are included, except for records without
            a commit time yet (duplicates within a batch, rewrites). It returns a table with one merged row
            for each pair, in the same order; a row with `_hoodie_is_deleted` true deletes the record.
            Versions of a key are merged oldest first: the log records among themselves, and the result with
            the base file; therefore `merger(merger(a, b), c)` should equal `merger(a, merger(b, c))`. It is
            not called for deletes: a delete wins over everything before it. On Spark it is pickled to the
            workers.

    Raises:
        InvalidError: the name is empty, the merger is not callable, or tables of that name merge without a
            function.

    Example:
        >>> import pyarrow.compute as pc
        >>> def add_fares(older, newer):
        ...     fares = pc.add(older["fare"], newer["fare"])
        ...     return newer.set_column(newer.schema.get_field_index("fare"), "fare", fares)
        >>> drawstring.register_merger("com.example.AddFares", add_fares)
        >>> drawstring.open("/lake/trips").services.compact()  # doctest: +SKIP
    """
    untyped_name: Any = name
    if not isinstance(untyped_name, str) or not untyped_name.strip():
        raise InvalidError(
            "The name of the merger is empty. Give the tables' merge strategy id or payload class."
        )
    if not callable(merger):
        raise InvalidError(
            f"The merger {name!r} is a {type(merger).__name__}, which is not callable. Give a function."
        )
    if rule := built_in_rule(name.strip()):
        raise InvalidError(
            f"{rule}, so that the merger {name!r} would never run. Register it under a name of your own, and"
            " create the table with that name as hoodie.datasource.write.payload.class."
        )
    _mergers[name.strip()] = merger


def registered_merger(*names: str | None) -> RecordMerger | None:
    """Return the merger registered under the first of the names that has one, None if none has."""
    return next((_mergers[name] for name in names if name in _mergers), None)
