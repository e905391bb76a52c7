"""What a write's key generator goes by: the table, what the options add, and the keys that are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.config.table.key_settings import BARE_SINGLE_KEY
from drawstring.config.table.kinds import typed_columns
from drawstring.keygen.keys import KeyGenerator
from drawstring.write.facts import WriteFacts
from drawstring.write.timestamp_folders import with_known_folders


def key_config(facts: WriteFacts, options: WriteOptions, schema: pa.Schema) -> TableConfig:
    """Return the table's configuration as the write's key generator has to see it.

    A table may leave out settings of its generator, which every write then has to say.

    Args:
        facts: the table as the write finds it.
        options: the caller's options.
        schema: columns that keys and partition paths are made from.

    Raises:
        InvalidError: the generator lacks a setting, or the keys in the table were made in another way.
        UnsupportedError: the table's key generator is not available, or the names of its partition folders
            do not tell how those of timestamps are made.
    """
    config = facts.session.config
    types = config.partition_types or typed_columns(options.partition_path)[1]
    properties = {**config.properties, **options.key_settings, **_spelling(facts, options)}
    if not config.populate_meta_fields:
        # Keys are made anew by whoever reads, who knows what the table stores and nothing else.
        properties[BARE_SINGLE_KEY] = config.properties.get(BARE_SINGLE_KEY, "false")
    config = replace(config, partition_types=types, properties=properties)
    KeyGenerator(config).check_columns(schema, number_texts=facts.timeline.latest_write() is not None)
    return with_known_folders(facts, config, schema)


def _spelling(facts: WriteFacts, options: WriteOptions) -> Mapping[str, str]:
    """Return how a COMPLEX generator spells keys of one column: as the table has them, if it has any."""
    config = facts.session.config
    is_open = not config.rules.prefixes_single_keys and config.path_generator is KeyGeneratorType.COMPLEX
    if not is_open or len(config.record_key_fields) != 1 or BARE_SINGLE_KEY in config.properties:
        return {}
    key = next((key for key, _ in facts.written_table().known_keys()), None)
    if key is None:
        return {}
    is_bare = "false" if key.startswith(f"{config.record_key_fields[0]}:") else "true"
    if options.key_settings.get(BARE_SINGLE_KEY, is_bare) != is_bare:
        raise InvalidError(
            f"the table has record keys such as {key!r}: leave out {BARE_SINGLE_KEY}, or set it to {is_bare}"
        )
    return {BARE_SINGLE_KEY: is_bare}
