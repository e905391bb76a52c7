"""Facts of a table before a write: timeline, instant, key generator, naming of partition folders.

Names of the partition folders of a timestamp column:

    part=1704477600000000                DataFrame writes of Hudi, and drawstring: microseconds since 1970
    part=2024-01-05 18%3A00%3A00         Spark SQL writes of Hudi: date and time, in the time zone of the JVM
    part=2024-01-05 18%3A00%3A00.0       DataFrame writes with consistent logical timestamps enabled

No table property records the form; the folders show it. A write that names them differently would write an
existing key a second time. If folders have dates and times, the rows in them show whether these are in UTC.

Other folders, both forms in one table, or rows of another time zone refuse the write. A table property would
not bind Hudi's writers, and a zone found by trying may fit all rows that exist and not the next one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import worker_threads
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.threads import at_once
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.config.table.key_settings import BARE_SINGLE_KEY, SINGLE_KEY_ENCODING, TIMESTAMPS_AS_TEXTS
from drawstring.config.table.kinds import typed_columns
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.index.existing_writes import ExistingWrites
from drawstring.keygen.keys import KeyGenerator
from drawstring.keygen.paths import split_path
from drawstring.keygen.texts import is_moment
from drawstring.model.files import FileSlice
from drawstring.schema.fields import type_at
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The table before a write.

    Attributes:
        locked: the table, locked.
        timeline: timeline before the write.
        time: requested time of the write.
    """

    locked: LockedTable
    timeline: Timeline
    time: str

    def existing_writes(self, *, names_index: bool = True) -> ExistingWrites:
        """Return the table with its earlier writes, for the checks of an index.

        Args:
            names_index: whether the options or the table name the index.
        """
        locked = self.locked
        return ExistingWrites(locked.context.storage, locked.config, locked.store, self.timeline, names_index)


_GENERATORS: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)
_NUMBER: Final = re.compile(r"-?\d+", re.ASCII)
_DATE_AND_TIME: Final = re.compile(r"-?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)
_PARTITIONS_READ_MAX: Final = 256
"""Maximum number of partitions whose rows are read."""


class Form(StrEnum):
    """Form of a timestamp in the name of a partition folder."""

    NUMBER = "a number"
    DATE_AND_TIME = "a date and time"
    OTHER = "neither a number nor a date and time"


def with_known_folders(facts: WriteFacts, config: TableConfig, schema: pa.Schema) -> TableConfig:
    """Return a configuration that names partition folders of timestamps like the existing folders.

    Args:
        facts: the table before the write.
        config: configuration for the key generator of the write.
        schema: key and partition columns with the types of the table.

    Raises:
        UnsupportedError: the form of the folder names cannot be determined, or it is not uniform.
    """
    columns = _timestamp_columns(config, schema)
    if not columns or facts.timeline.latest_write() is None:
        return config
    spec = facts.locked.context.storage.spec
    lookup = facts.locked.context.lookup(facts.locked.config, facts.timeline)
    forms = _forms([path for path in lookup.partitions() if lookup.slices(path)], columns, config)
    if set(forms) <= {Form.NUMBER}:
        return config
    if set(forms) != {Form.DATE_AND_TIME}:
        differing = " and ".join(f"{form} in {paths[0]!r}" for form, paths in forms.items())
        raise _refusal(f"the folders of timestamps have {differing}", spec)
    known = replace(config, timestamps_as_text=True)
    names = pa.schema([field for field in schema if field.name in config.partition_fields])
    check = _HasRowsOfPath(spec, known, names, InstantRange.of(facts.timeline))
    paths = _spread(forms[Form.DATE_AND_TIME])
    fits = at_once(check, [(path, lookup.slices(path)) for path in paths], worker_threads())
    for path, fit in zip(paths, fits, strict=True):
        if not fit:
            raise _refusal(f"the timestamps of the rows in {path!r} are another date and time in UTC", spec)
    return known


def _timestamp_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Return the partition columns whose folder names can have several forms."""
    if config.path_generator not in _GENERATORS:
        return ()
    kinds = config.partition_types or ("SIMPLE",) * len(config.partition_fields)
    simple = (name for name, kind in zip(config.partition_fields, kinds, strict=True) if kind == "SIMPLE")
    return tuple(name for name in simple if name in schema.names and is_moment(schema.field(name).type))


def _forms(paths: Sequence[str], columns: Sequence[str], config: TableConfig) -> Mapping[Form, Sequence[str]]:
    """Return the partition paths by the form of their timestamps; nulls have none."""
    paths_by_form: dict[Form, list[str]] = {}
    fields = config.partition_fields
    for path in paths:
        texts = split_path(path, fields, hive_style=config.hive_style, url_encode=config.url_encode)
        if texts is None:
            paths_by_form.setdefault(Form.OTHER, []).append(path)
            continue
        for name, text in zip(fields, texts, strict=True):
            if name in columns and text is not None:
                paths_by_form.setdefault(_form(text), []).append(path)
    return paths_by_form


def _form(text: str) -> Form:
    if _NUMBER.fullmatch(text):
        return Form.NUMBER
    return Form.DATE_AND_TIME if _DATE_AND_TIME.fullmatch(unquote(text)) else Form.OTHER


def _spread(paths: Sequence[str]) -> Sequence[str]:
    """Return an evenly spread sample of the paths, up to the maximum number."""
    count = min(len(paths), _PARTITIONS_READ_MAX)
    return [paths[number * (len(paths) - 1) // max(count - 1, 1)] for number in range(count)]


@dataclass(frozen=True, slots=True)
class _HasRowsOfPath:
    """Returns whether a partition has a row that belongs there, or no row to decide it by.

    Attributes:
        spec: opens the table.
        config: makes the paths.
        schema: the partition columns.
        instants: the visible instants of log blocks.
    """

    spec: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange

    def __call__(self, partition: tuple[str, Sequence[FileSlice]]) -> bool:
        """Read the first rows of a partition: its path and slices."""
        path, slices = partition
        generator = KeyGenerator(self.config)
        for file_slice in slices:
            # A global index does not move records whose column changes, so one matching row suffices.
            read = replace(file_slice, logs=()) if file_slice.base else file_slice
            columns = tuple(self.schema.names)
            task = ReadTask(self.spec, self.config, read, self.schema, columns, instants=self.instants)
            for batch in read_slice(task):
                if batch.num_rows:
                    return bool(pc.any(pc.equal(generator.partition_paths(batch), path)).as_py())
        return True


def _refusal(what: str, spec: StorageSpec) -> UnsupportedError:
    return UnsupportedError(
        f"The partition of a row cannot be determined from the names of the partition folders ({what}), so an"
        f" existing key could be written twice. Write with the engine that wrote the table, or copy its rows"
        f" to a new table.",
        table=spec.uri,
    )


def key_config(facts: WriteFacts, options: WriteOptions, schema: pa.Schema) -> TableConfig:
    """Return the table configuration for the key generator of a write.

    If the table does not store settings of its key generator, every write must supply them as options.

    Args:
        facts: the table before the write.
        options: options of the caller.
        schema: key and partition columns.

    Raises:
        InvalidError: the key generator lacks a setting, or existing keys were generated differently.
        UnsupportedError: the key generator of the table is not available, or the form of timestamps in the
            names of its partition folders cannot be determined.
    """
    config = facts.locked.config
    _check_timestamps(config, options, schema)
    types = config.partition_types
    if options.partition_path and not types:
        types = typed_columns(options.partition_path)[1]
    properties = {**config.properties, **options.key_settings, **_spelling(facts, options)}
    if not config.populate_meta_fields:
        # Readers generate virtual keys from the stored settings only.
        properties[BARE_SINGLE_KEY] = config.properties.get(BARE_SINGLE_KEY, "false")
    config = replace(config, partition_types=types, properties=properties)
    KeyGenerator(config).check_columns(schema, number_texts=facts.timeline.latest_write() is not None)
    return with_known_folders(facts, config, schema)


def _check_timestamps(config: TableConfig, options: WriteOptions, schema: pa.Schema) -> None:
    """Check that an option that writes timestamps in keys as texts has nothing to change.

    Raises:
        UnsupportedError: a key or partition column is a timestamp.
    """
    if options.key_settings.get(TIMESTAMPS_AS_TEXTS.key) != "true":
        return
    kinds = {name: type_at(name, schema) for name in (*config.record_key_fields, *config.partition_fields)}
    if named := [name for name, kind in kinds.items() if kind is not None and is_moment(kind)]:
        raise UnsupportedError(
            f"{TIMESTAMPS_AS_TEXTS.key}=true would write the timestamps of {', '.join(named)} in record"
            " keys or partition paths as dates and times. This release writes numbers: drop the"
            " option in a new table; let Apache Hudi write a table that has such keys."
        )


def _spelling(facts: WriteFacts, options: WriteOptions) -> Mapping[str, str]:
    """Return the setting for single-column keys of a COMPLEX generator, as in the existing keys if any."""
    config = facts.locked.config
    is_open = not config.rules.prefixes_single_keys and config.path_generator is KeyGeneratorType.COMPLEX
    is_stored = BARE_SINGLE_KEY in config.properties or SINGLE_KEY_ENCODING in config.properties
    if not is_open or len(config.record_key_fields) != 1 or is_stored:
        return {}
    key = next((key for key, _ in facts.existing_writes().known_keys()), None)
    if key is None:
        return {}
    is_bare = "false" if key.startswith(f"{config.record_key_fields[0]}:") else "true"
    if options.key_settings.get(BARE_SINGLE_KEY, is_bare) != is_bare:
        raise InvalidError(
            f"The table has record keys such as {key!r}. Remove {BARE_SINGLE_KEY}, or set it to {is_bare}."
        )
    return {BARE_SINGLE_KEY: is_bare}
