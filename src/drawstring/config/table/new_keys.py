"""Key generator properties of a new table, and checks of their consistency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.key_generators import registered_key_generator
from drawstring.config.table.key_settings import (
    BARE_SINGLE_KEY,
    KEY_SETTINGS,
    SLASHED_DATES,
    TEXTS_OF_TIMESTAMPS,
    TIMEBASED,
    timestamp_settings,
)
from drawstring.config.table.kinds import (
    KeyGeneratorType,
    default_generator,
    generator_of_class,
    generator_of_type,
    typed_columns,
)
from drawstring.model.table_version import VersionRules

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
