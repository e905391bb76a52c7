r"""Make the properties of a new table, and encode and decode `hoodie.properties`.

`new_table_properties` returns every key that readers of versions 6, 8, 9 and 10 need:

| | 6 | 8 | 9, 10 |
|---|---|---|---|
| merge mode | - | yes | yes |
| strategy id, payload class | yes | yes | - |
| ordering columns also as `precombine.field` | yes | yes | - |
| initial version, several base formats | - | yes | yes |

`index_properties` and `key_properties` return the properties of the index and of the key generator.

Merging of records (`merge_properties`), by merge mode, payload class and ordering fields:

| payload class | 6 and 8 | 9 |
|---|---|---|
| none, or one of a merge mode | the class of the mode, strategy id | mode; the class as legacy class |
| another, which Hudi replaces in 9 | the class, strategy id of payloads, mode CUSTOM in 8 | see below |
| any other, with a registered merger | the same | mode CUSTOM, the class, strategy id of payloads |

If Hudi replaces the class, version 9 stores its mode, partial update mode, merge properties and ordering
fields, and the class as legacy class.

Format of `hoodie.properties` and `.hoodie_partition_metadata`: Java properties.

    #Updated at 2026-11-21T09:30:36.020Z
    #Sat Nov 21 09:30:36 UTC 2026
    hoodie.table.create.schema={"type"\:"record"}      \: \= \# \! \\ \t \n \r \f escape
    hoodie.table.name=caf\u00e9                        UTF-16 code units outside of 0x20..0x7e

The encoding is ISO-8859-1; a line that ends in an odd number of backslashes continues on the next line
(specification: Table properties).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.index import BUCKET_COUNT_KEYS, DEFAULT_BUCKET_COUNT, HASH_FIELDS
from drawstring.config.merge_config import MERGE_PROPERTY_PREFIX, asked_mode
from drawstring.config.payload_classes import (
    COMMIT_TIME_STRATEGY,
    DEFAULT,
    DELETE_FIELD,
    DELETE_MARKER,
    EVENT_TIME_STRATEGY,
    OVERWRITE,
    PAYLOAD_STRATEGY,
    MergeMode,
    MergeRule,
    PayloadClass,
    payload_class,
)
from drawstring.config.table.key_settings import (
    BARE_SINGLE_KEY,
    KEY_SETTINGS,
    SLASHED_DATES,
    TEXTS_OF_TIMESTAMPS,
    TIMEBASED,
    timestamp_settings,
)
from drawstring.config.table.storage_layout import BASE_FORMAT, layout_property
from drawstring.config.table.virtual_keys import (
    check_leaner_files,
    meta_field_properties,
)
from drawstring.config.table_types import (
    KeyGeneratorType,
    TableType,
    default_generator,
    generator_of_class,
    generator_of_type,
    has_some_meta_fields,
    registered_key_generator,
    split_list,
    typed_columns,
)
from drawstring.model.table_version import WRITABLE_VERSIONS, VersionRules, writable_rules

_TYPE: Final = "hoodie.index.type"
_COUNT: Final = BUCKET_COUNT_KEYS[0]


def index_properties(extra: Mapping[str, str], record_key: Sequence[str]) -> dict[str, str]:
    """Return what a table stores of its index besides what the user says.

    A table with buckets stores their number, by which look-ups of keys rule files out.

    A table with a compound key stores which columns are hashed: writers of Apache Hudi may hash some of them
    without a trace in the table, so readers rule buckets out only if the table says it.

    Args:
        extra: further properties of the new table.
        record_key: columns of the record key.

    Raises:
        InvalidError: there are settings of buckets without a bucket index, or a hash field is not a column of
            the record key.
    """
    index_type = extra.get(_TYPE, "")
    stray = next((key for key in BUCKET_COUNT_KEYS if extra.get(key)), None)
    if stray and index_type.upper() != "BUCKET":
        problem = f"the table has {_TYPE}={index_type}" if index_type else "no index type is given"
        raise InvalidError(f"{stray} needs a bucket index, but {problem}. Set {_TYPE}=BUCKET, or drop it.")
    strays = [name for name in split_list(extra.get(HASH_FIELDS)) if name not in record_key]
    if strays:
        raise InvalidError(
            f"{HASH_FIELDS} has {', '.join(strays)}, which is not a column of the record key"
            f" ({', '.join(record_key)}). Use columns of the record key, or drop the option."
        )
    if index_type.upper() != "BUCKET":
        return {}
    is_hashed_by_all = len(record_key) > 1 and not extra.get(HASH_FIELDS)
    by_key = {HASH_FIELDS: ",".join(record_key)} if is_hashed_by_all else {}
    return {_COUNT: extra.get(_COUNT) or str(DEFAULT_BUCKET_COUNT)} | by_key


TYPE_KEY: Final = "hoodie.table.keygenerator.type"
CLASS_KEY: Final = "hoodie.table.keygenerator.class"
KEY_PROPERTIES: Final = frozenset({TYPE_KEY, CLASS_KEY, *(option.stored_as for option in KEY_SETTINGS)})
"""Keys that `key_properties` returns or replaces."""

_PATHLESS: Final = (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE)
_ONE_KEY_ONE_COLUMN: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP)


def key_properties(
    record_key: tuple[str, ...], partition_by: tuple[str, ...], rules: VersionRules, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the key generator properties of a new table.

    Args:
        record_key: columns of the record key.
        partition_by: partition columns, with their types for a CUSTOM generator.
        rules: of the table version.
        extra: further properties of the new table.

    Raises:
        InvalidError: the properties contradict each other.
        UnsupportedError: the generator is not registered.
    """
    columns, types = typed_columns(partition_by)
    generator = _generator(extra, record_key, columns, types)
    _check_numbers(generator, record_key, columns)
    _check_slashes(generator, columns, extra)
    stores_types = bool(types) and rules.stores_partition_types
    stored = (
        tuple(f"{name}:{kind}" for name, kind in zip(columns, types, strict=True))
        if stores_types
        else columns
    )
    properties = {TYPE_KEY: generator.value, "hoodie.table.partition.fields": ",".join(stored)}
    if generator is KeyGeneratorType.USER_PROVIDED:
        properties[CLASS_KEY] = _registered(extra.get(CLASS_KEY, ""))
    if generator is KeyGeneratorType.TIMESTAMP or "TIMESTAMP" in types:
        timestamp_settings(extra)
        properties |= {key: value for key, value in extra.items() if key.startswith(TIMEBASED)}
    return properties | _spellings(generator, rules, extra)


def _generator(
    extra: Mapping[str, str], record_key: tuple[str, ...], columns: tuple[str, ...], types: tuple[str, ...]
) -> KeyGeneratorType:
    implied = KeyGeneratorType.CUSTOM if types else default_generator(record_key, columns)
    if name := extra.get(TYPE_KEY):
        requested = generator_of_type(name)
    elif name := extra.get(CLASS_KEY):
        requested = generator_of_class(name)
    else:
        return implied
    if types and requested is not KeyGeneratorType.CUSTOM:
        raise InvalidError(
            f"The key generator {name} takes partition columns without types. Give {', '.join(columns)},"
            " or use CUSTOM."
        )
    if requested is KeyGeneratorType.CUSTOM and columns and not types:
        raise InvalidError(
            f"The key generator {name} needs the type of each partition column. Give"
            f" {', '.join(f'{column}:SIMPLE' for column in columns)}, with TIMESTAMP for date columns."
        )
    return requested


def _check_numbers(
    generator: KeyGeneratorType, record_key: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    implied = default_generator(record_key, columns)
    too_many = generator in _ONE_KEY_ONE_COLUMN and implied is KeyGeneratorType.COMPLEX
    too_few = generator is KeyGeneratorType.TIMESTAMP and not columns
    if too_many or too_few or (generator in _PATHLESS and columns):
        raise InvalidError(
            f"The key generator {generator} does not support {len(record_key)} key and {len(columns)} "
            f"partition columns. Use {implied}, or drop the option."
        )


def _check_slashes(generator: KeyGeneratorType, columns: tuple[str, ...], extra: Mapping[str, str]) -> None:
    if not _is_true(extra, SLASHED_DATES):
        return
    is_hive = _is_true(extra, "hoodie.datasource.write.hive_style_partitioning")
    if is_hive or len(columns) != 1 or generator not in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX):
        raise InvalidError(
            f"{SLASHED_DATES} needs one partition column, a SIMPLE or COMPLEX key generator, and paths that"
            " are not hive-style. Drop the option, or change these."
        )


def _spellings(generator: KeyGeneratorType, rules: VersionRules, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that change the texts of values."""
    stored = {key: "true" for key in (SLASHED_DATES, TEXTS_OF_TIMESTAMPS) if _is_true(extra, key)}
    has_choice = generator is KeyGeneratorType.COMPLEX and not rules.prefixes_single_keys
    if has_choice and _is_true(extra, BARE_SINGLE_KEY):
        stored[BARE_SINGLE_KEY] = "true"
    return stored


def _registered(name: str) -> str:
    if not name:
        raise InvalidError(f"The key generator USER_PROVIDED needs a class name. Set {CLASS_KEY}.")
    if registered_key_generator(name) is None:
        raise UnsupportedError(
            f"There is no key generator {name!r}. Use one of Hudi's, or register a function under that name"
            " with drawstring.register_key_generator."
        )
    return name


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").lower() == "true"


PAYLOAD_KEYS: Final = ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class")
MODE_KEY: Final = "hoodie.record.merge.mode"
STRATEGY_KEY: Final = "hoodie.record.merge.strategy.id"


@dataclass(frozen=True, slots=True)
class MergeProperties:
    """How the records of a new table merge.

    Attributes:
        ordering: the ordering fields that the table stores.
        properties: the properties about merging, without the ordering fields.
    """

    ordering: tuple[str, ...]
    properties: dict[str, str]


def merge_properties(
    extra: Mapping[str, str], ordering: tuple[str, ...], rules: VersionRules
) -> MergeProperties:
    """Return how the records of a new table merge, as Hudi 1.2.0 creates such a table.

    Args:
        extra: further properties of the new table, with merge mode or payload class, if they are given.
        ordering: the ordering fields that are given.
        rules: of the table version.

    Raises:
        InvalidError: mode, class and ordering fields contradict each other.
        UnsupportedError: the mode or class needs Java code, and no merger is registered for it.
    """
    given = next((extra[key] for key in PAYLOAD_KEYS if extra.get(key)), None)
    known = payload_class(given)
    payload = known.full_name if known else given
    _check_delete_marker(extra, payload, rules)
    asked = asked_mode(extra.get(MODE_KEY), payload, extra.get(STRATEGY_KEY))
    stored = _stored_rule(known) if known else None
    prescribed = stored.ordering_fields if stored else ()
    if asked is MergeMode.EVENT_TIME_ORDERING and not (ordering or prescribed):
        raise InvalidError("EVENT_TIME_ORDERING needs an ordering field. Set hoodie.table.ordering.fields.")
    mode = asked or (MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING)
    runs_class = mode is MergeMode.CUSTOM or (
        rules.stores_payload_class and known is not None and not known.is_plain
    )
    if payload and runs_class:
        return MergeProperties(ordering, _by_code(payload, rules))
    if rules.stores_payload_class:
        return MergeProperties(ordering, _by_mode(mode, payload, rules))
    properties = {MODE_KEY: mode.value}
    if stored is not None and payload is not None:
        properties["hoodie.table.legacy.payload.class"] = payload
        properties |= {MERGE_PROPERTY_PREFIX + key: value for key, value in stored.properties.items()}
        if stored.partial_update_mode:
            properties["hoodie.table.partial.update.mode"] = stored.partial_update_mode
    return MergeProperties(prescribed or ordering, properties)


def _stored_rule(payload: PayloadClass) -> MergeRule:
    """Return the rule of a new table with a payload class.

    Raises:
        UnsupportedError: Hudi 1.2.0 does not have the class.
    """
    if payload.stored is None:
        raise UnsupportedError(
            f"Apache Hudi 1.2.0 has no payload class {payload.name}, so no new table can have it. Tables that"
            f" have it already are read and written. Use {DEFAULT.name}, or register a function under a name"
            " of your own with drawstring.register_merger."
        )
    return payload.stored


def _check_delete_marker(extra: Mapping[str, str], payload: str | None, rules: VersionRules) -> None:
    """Check a delete marker of a new table; Hudi stores one for the class DefaultHoodieRecordPayload only.

    Raises:
        InvalidError: column and value are not both given, or there is another payload class.
        UnsupportedError: the table version cannot store it.
    """
    given = [key for key in (DELETE_FIELD, DELETE_MARKER) if extra.get(MERGE_PROPERTY_PREFIX + key)]
    if not given:
        return
    if len(given) == 1:
        raise InvalidError(f"{given[0]} is given alone. Set both {DELETE_FIELD} and {DELETE_MARKER}.")
    if payload != DEFAULT.full_name:
        raise InvalidError(
            f"{DELETE_FIELD} needs the payload class DefaultHoodieRecordPayload. Set"
            f" {PAYLOAD_KEYS[1]}={DEFAULT.full_name}."
        )
    if not rules.has_merge_properties:
        raise UnsupportedError(
            f"A table of version {rules.number} does not store {DELETE_FIELD}. Use version 9, or mark deletes"
            " by a boolean column _hoodie_is_deleted."
        )


def _by_code(payload: str, rules: VersionRules) -> dict[str, str]:
    """Return the properties of a table that runs the code of a payload class."""
    properties = {PAYLOAD_KEYS[0]: payload, STRATEGY_KEY: PAYLOAD_STRATEGY}
    return properties | ({MODE_KEY: MergeMode.CUSTOM.value} if rules.stores_merge_mode else {})


def _by_mode(mode: MergeMode, payload: str | None, rules: VersionRules) -> dict[str, str]:
    """Return the properties of versions 6 and 8 for a merge mode."""
    by_event_time = mode is MergeMode.EVENT_TIME_ORDERING
    properties = {
        PAYLOAD_KEYS[0]: payload or (DEFAULT if by_event_time else OVERWRITE).full_name,
        STRATEGY_KEY: EVENT_TIME_STRATEGY if by_event_time else COMMIT_TIME_STRATEGY,
    }
    return properties | ({MODE_KEY: mode.value} if rules.stores_merge_mode else {})


_NEW_LINE: Final = re.compile(r"\r\n|\n|\r")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*")
_BETWEEN: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_BLANKS: Final = " \t\f"
_UNSAFE: Final = re.compile(r"[^ -~]|[\\=:#!]")
_DECODED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ENCODED: Final = {
    "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f",
    "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!",
}  # fmt: skip
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def decode_properties(data: bytes) -> dict[str, str]:
    """Return the entries of a properties file; the last of repeated keys counts."""
    return properties_in_text(data.decode("latin-1"))


def properties_in_text(text: str) -> dict[str, str]:
    """Return the entries in the text of a properties file, by the rules of `java.util.Properties`."""
    entries: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _SEPARATOR.match(line).end()  # type: ignore[union-attr]
        value_start = _BETWEEN.match(line, key_end).end()  # type: ignore[union-attr]
        entries[unescape(line[:key_end])] = unescape(line[value_start:])
    return entries


def encode_properties(entries: Mapping[str, str], now_ms: int, by: str = "") -> bytes:
    """Return the bytes of a properties file with the entries in the given order.

    Args:
        entries: keys and values.
        now_ms: the time in the two comment lines, milliseconds since the epoch.
        by: the process that changes them, for a third one; empty to leave it out.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = f"#Updated at {at}\n#{_java_date(now)}\n"
    if by:
        head += f"#Changed by {_escape(by)}\n"
    body = "".join(f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in entries.items())
    return (head + body).encode("latin-1")


def table_checksum(name: str, database: str) -> int:
    """Return the value of `hoodie.table.checksum`; the dot remains if there is no database."""
    return zlib.crc32(f"{database}.{name}".encode())


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither comments nor blank, with continuation lines joined."""
    pending: list[str] = []
    for natural in _NEW_LINE.split(text):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending.append(line[:-1])
            continue
        yield "".join([*pending, line])
        pending = []
    if pending:
        yield "".join(pending)


def unescape(text: str) -> str:
    """Return a key or value without the escapes of a properties file."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape_one, text)
    # Characters outside the basic plane are stored as two escapes, a surrogate pair.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape_one(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _DECODED.get(escaped, escaped)


def _escape(text: str, *, is_key: bool = False) -> str:
    escaped = _UNSAFE.sub(_escape_one, text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ENCODED:
        return _ENCODED[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4].upper()}" for at in range(0, len(units), 4))


def _java_date(now: datetime) -> str:
    """Return `java.util.Date.toString()`, regardless of the locale."""
    day, month = _DAYS[now.weekday()], _MONTHS[now.month - 1]
    return f"{day} {month} {now.day:02d} {now:%H:%M:%S} UTC {now.year}"


_CHOICE: Final = f"Choose one of {', '.join(map(str, WRITABLE_VERSIONS))}."
_EXTRACTORS: Final = "org.apache.hudi.hive."
CDC_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"
_HANDLED_KEYS: Final = frozenset(
    {
        MODE_KEY,
        STRATEGY_KEY,
        "hoodie.table.checksum",
        "hoodie.table.initial.version",
        *KEY_PROPERTIES,
        "hoodie.timeline.layout.version",
        *PAYLOAD_KEYS,
    }
)
"""Keys of `extra` that determine other keys, or that users cannot set."""


def new_table_properties(
    *,
    name: str,
    table_type: TableType,
    version: int,
    record_key: Sequence[str],
    partition_by: Sequence[str],
    ordering: Sequence[str],
    schema_json: str | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return the properties of a new table, including the checksum.

    Args:
        name: name of the table.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        version: table version, 6, 8, 9 or 10.
        record_key, partition_by, ordering: column names; partition columns have types with a CUSTOM key
            generator.
        schema_json: Avro schema of the table without meta columns.
        extra: further keys that a table stores, as returned by `options.table_scope`.

    Raises:
        InvalidError: the name is not valid, or the properties contradict each other.
        UnsupportedError: drawstring cannot write the version or the merge mode.
    """
    _check_name(name)
    if not isinstance(version, int):
        raise InvalidError(f"The table version {version!r} is not a number. {_CHOICE}")
    rules = writable_rules(version)
    if rules is None:
        raise UnsupportedError(f"A table of version {version} cannot be created. {_CHOICE}")
    merging = merge_properties(extra, tuple(ordering), rules)
    of_index = index_properties(extra, record_key)
    keys = key_properties(tuple(record_key), tuple(partition_by), rules, extra)
    properties = _identity(name, TableType(table_type), rules, extra)
    properties |= _columns(tuple(record_key), merging.ordering, rules) | merging.properties
    properties |= keys | _layout(len(partition_by), extra)
    if schema_json:
        properties["hoodie.table.create.schema"] = schema_json
    properties |= {key: value for key, value in extra.items() if key not in _HANDLED_KEYS}
    properties |= _change_logs(extra)
    properties[BASE_FORMAT] = _base_format(properties[BASE_FORMAT], rules)
    if not has_some_meta_fields(properties):
        properties |= meta_field_properties(properties, has_mode=rules.stores_meta_fields_mode)
    properties |= of_index | layout_property(properties, record_key, rules)
    columns, _ = typed_columns(partition_by)
    check_leaner_files(properties, record_key, columns, merging.ordering)
    properties["hoodie.table.checksum"] = str(table_checksum(name, extra.get("hoodie.database.name", "")))
    return properties


def _base_format(name: str, rules: VersionRules) -> str:
    base_format = name.upper()
    if base_format not in rules.base_formats:
        raise InvalidError(
            f"{BASE_FORMAT}={name} needs a later table version: no reader of version {rules.number} knows it."
            " Change that, or drop the option."
        )
    return base_format


def _check_name(name: str) -> None:
    if not name or name != name.strip() or "/" in name:
        raise InvalidError(
            f"{name!r} is not a valid table name. Give a name without slashes and without outer blanks."
        )


def _identity(
    name: str, table_type: TableType, rules: VersionRules, extra: Mapping[str, str]
) -> dict[str, str]:
    properties = {
        "hoodie.table.name": name,
        "hoodie.table.type": table_type.value,
        "hoodie.table.version": str(rules.number),
        "hoodie.timeline.layout.version": str(rules.layout.number),
        "hoodie.table.format": "native",
        BASE_FORMAT: "PARQUET",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": rules.archive_folder,
        "hoodie.populate.meta.fields": "true",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.cdc.enabled": "false",
    }
    if rules.stores_initial_version:
        properties["hoodie.table.initial.version"] = str(rules.number)
        properties["hoodie.table.multiple.base.file.formats.enable"] = "false"
    return properties


def _columns(record_key: tuple[str, ...], ordering: tuple[str, ...], rules: VersionRules) -> dict[str, str]:
    properties = {}
    if record_key:
        properties["hoodie.table.recordkey.fields"] = ",".join(record_key)
    if ordering:
        properties["hoodie.table.ordering.fields"] = ",".join(ordering)
        if rules.stores_precombine_field:
            # Releases before 1.1 read only this key.
            properties["hoodie.table.precombine.field"] = ",".join(ordering)
    return properties


def _change_logs(extra: Mapping[str, str]) -> dict[str, str]:
    is_on = extra.get("hoodie.table.cdc.enabled", "").lower() == "true"
    mode = extra.get(CDC_MODE)
    if mode and not is_on:
        raise InvalidError(f"{CDC_MODE} needs hoodie.table.cdc.enabled=true. Set it, or drop the mode.")
    return {CDC_MODE: mode or "DATA_BEFORE_AFTER"} if is_on else {}


def _layout(partition_columns: int, extra: Mapping[str, str]) -> dict[str, str]:
    hive_style = extra.get("hoodie.datasource.write.hive_style_partitioning", "false").lower()
    if partition_columns != 1:
        extractor = "MultiPartKeysValueExtractor"
    elif hive_style == "true":
        extractor = "HiveStylePartitionValueExtractor"
    else:
        extractor = "SinglePartPartitionValueExtractor"
    return {
        "hoodie.table.partition_extractor_class": _EXTRACTORS + extractor,
        "hoodie.datasource.write.hive_style_partitioning": hive_style,
        "hoodie.datasource.write.partitionpath.urlencode": "false",
    }
