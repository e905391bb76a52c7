"""What a new table says about its keys: generator, partition columns, settings; contradictions refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.key_generators import registered_key_generator
from drawstring.config.table.key_settings import (
    BARE_SINGLE_KEY,
    KEY_SETTINGS,
    SLASHED_DATES,
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
"""Keys that `key_properties` answers for."""

_PATHLESS: Final = (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE)
_ONE_KEY_ONE_COLUMN: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP)


def key_properties(
    record_key: tuple[str, ...], partition_by: tuple[str, ...], rules: VersionRules, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a new table that are about its key generator.

    Args:
        record_key: key columns.
        partition_by: partition columns, each with its type where a CUSTOM generator is meant.
        rules: of the table's version.
        extra: what else was said about the table.

    Raises:
        InvalidError: things that do not go together.
        UnsupportedError: a generator that nobody registered.
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
        asked = generator_of_type(name)
    elif name := extra.get(CLASS_KEY):
        asked = generator_of_class(name)
    else:
        return implied
    if types and asked is not KeyGeneratorType.CUSTOM:
        raise InvalidError(
            f"key generator {name} takes partition columns without types: give {', '.join(columns)},"
            " or use CUSTOM"
        )
    if asked is KeyGeneratorType.CUSTOM and columns and not types:
        raise InvalidError(
            f"key generator {name} needs the type of each partition column: give"
            f" {', '.join(f'{column}:SIMPLE' for column in columns)}, or TIMESTAMP for those that are dates"
        )
    return asked


def _check_numbers(
    generator: KeyGeneratorType, record_key: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    implied = default_generator(record_key, columns)
    too_many = generator in _ONE_KEY_ONE_COLUMN and implied is KeyGeneratorType.COMPLEX
    too_few = generator is KeyGeneratorType.TIMESTAMP and not columns
    if too_many or too_few or (generator in _PATHLESS and columns):
        raise InvalidError(
            f"key generator {generator} does not fit {len(record_key)} key and {len(columns)} partition "
            f"columns: use {implied}, or leave it out"
        )


def _check_slashes(generator: KeyGeneratorType, columns: tuple[str, ...], extra: Mapping[str, str]) -> None:
    if not _is_true(extra, SLASHED_DATES):
        return
    is_hive = _is_true(extra, "hoodie.datasource.write.hive_style_partitioning")
    if is_hive or len(columns) != 1 or generator not in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX):
        raise InvalidError(
            f"{SLASHED_DATES} needs one partition column, a SIMPLE or COMPLEX key generator and paths that"
            " are not hive-style: leave it out, or change those"
        )


def _spellings(generator: KeyGeneratorType, rules: VersionRules, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that change how values are spelled."""
    stored = {SLASHED_DATES: "true"} if _is_true(extra, SLASHED_DATES) else {}
    has_choice = generator is KeyGeneratorType.COMPLEX and not rules.prefixes_single_keys
    if has_choice and _is_true(extra, BARE_SINGLE_KEY):
        stored[BARE_SINGLE_KEY] = "true"
    return stored


def _registered(name: str) -> str:
    if not name:
        raise InvalidError(f"key generator USER_PROVIDED needs the name of one: set {CLASS_KEY}")
    if registered_key_generator(name) is None:
        raise UnsupportedError(
            f"there is no key generator {name!r}: use one of Hudi's, or register a function of that name"
            " with drawstring.register_key_generator"
        )
    return name


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").lower() == "true"
