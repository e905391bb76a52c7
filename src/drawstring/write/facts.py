"""Facts of a table before a write: timeline, instant, key generator, naming of partition folders.

Names of the partition folders of a timestamp column:

    part=1704477600000000                DataFrame writes of Hudi, and drawstring: microseconds since 1970
    part=2024-01-05 18%3A00%3A00         Spark SQL writes of Hudi: date and time, in the time zone of the JVM
    part=2024-01-05 18%3A00%3A00.0       DataFrame writes with consistent logical timestamps enabled

No table property of Hudi records the form; the folders show it. A write that names them differently would
write an existing key a second time. If folders have dates and times, the rows in them show whether these are
in UTC. The timestamps of record keys are numbers or dates and times with a fraction; stored keys show which.

Other folders, two forms in one table, or rows of another time zone refuse the write. A table property would
not bind Hudi's writers, and a zone found by trying may fit all rows that exist and not the next one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.lazy import evenly_spaced
from drawstring.base.resources import map_in_threads, worker_threads
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.key_settings import (
    BARE_SINGLE_KEY,
    SINGLE_KEY_ENCODING,
    TEXTS_OF_TIMESTAMPS,
    PathTimestamps,
)
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.config.table_types import columns_of, typed_columns
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.index.existing_writes import ExistingWrites
from drawstring.keygen.key_generator import KeyGenerator, has_timestamp
from drawstring.keygen.partition_path import split_path
from drawstring.keygen.texts import is_moment
from drawstring.model.files import FileSlice
from drawstring.schema.fields import RECORD_KEY
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
_DATE_AND_TIME: Final = re.compile(r"-?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,3})?", re.ASCII)
_TEXT_IN_KEY: Final = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d"
_PARTITIONS_READ_MAX: Final = 256
"""Maximum number of partitions whose rows are read."""

_PARTITIONS_OF_KEYS_MAX: Final = 16
"""Maximum number of partitions whose keys are read."""


class Form(StrEnum):
    """Form of a timestamp in the name of a partition folder, or in a record key."""

    NUMBER = "a number"
    DATE_AND_TIME = "a date and time"
    FRACTION = "a date and time with a fraction"
    OTHER = "neither a number nor a date and time"


_OF_FOLDERS: Final = {
    Form.NUMBER: PathTimestamps.NUMBERS,
    Form.DATE_AND_TIME: PathTimestamps.SECONDS,
    Form.FRACTION: PathTimestamps.TEXTS,
}


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
    known = _of_forms(forms, config)
    if set(forms) <= {Form.NUMBER}:
        return known
    form = next(iter(forms))
    if len(forms) > 1 or form not in _OF_FOLDERS:
        differing = " and ".join(f"{form} in {paths[0]!r}" for form, paths in forms.items())
        raise _refusal(f"the folders of timestamps have {differing}", spec)
    names = pa.schema([field for field in schema if field.name in config.partition_fields])
    check = _HasRowsOfPath(spec, known, names, InstantRange.of(facts.timeline))
    paths = evenly_spaced(forms[form], _PARTITIONS_READ_MAX)
    fits = map_in_threads(check, [(path, lookup.slices(path)) for path in paths], worker_threads())
    for path, fit in zip(paths, fits, strict=True):
        if not fit:
            raise _refusal(f"the timestamps of the rows in {path!r} are another date and time in UTC", spec)
    return known


def named_like_folders(config: TableConfig, schema: pa.Schema, paths: Sequence[str]) -> TableConfig:
    """Return a configuration that names partition folders of timestamps like some that there are.

    Args:
        config: the table.
        schema: columns of the table.
        paths: partition paths; if their forms differ, they do not count.
    """
    return _of_forms(_forms(paths, _timestamp_columns(config, schema), config), config)


def _of_forms(forms: Collection[Form], config: TableConfig) -> TableConfig:
    known = [_OF_FOLDERS[form] for form in forms if form in _OF_FOLDERS]
    return replace(config, path_timestamps=known[0]) if known and len(forms) == 1 else config


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
    found = _DATE_AND_TIME.fullmatch(unquote(text))
    if found is None:
        return Form.OTHER
    return Form.FRACTION if found[1] else Form.DATE_AND_TIME


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
        batch = _first_rows(self.spec, self.config, self.schema, self.instants, slices)
        # A global index does not move records whose column changes, so one matching row suffices.
        paths = None if batch is None else KeyGenerator(self.config).partition_paths(batch)
        return paths is None or bool(pc.any(pc.equal(paths, path)).as_py())


def _first_rows(
    spec: StorageSpec,
    config: TableConfig,
    schema: pa.Schema,
    instants: InstantRange,
    slices: Sequence[FileSlice],
) -> pa.RecordBatch | None:
    """Return the first rows of slices of a partition, from a base file if there is one; None if none."""
    for file_slice in slices:
        read = replace(file_slice, logs=()) if file_slice.base else file_slice
        task = ReadTask(spec, config, read, schema, tuple(schema.names), instants=instants)
        for batch in read_slice(task):
            if batch.num_rows:
                return batch
    return None


@dataclass(frozen=True, slots=True)
class _FormOfKeys:
    """Returns the form of the timestamps in the record keys of a partition; None if no row tells it.

    Attributes:
        spec: opens the table.
        config: makes the keys.
        schema: key columns and record key.
        instants: the visible instants of log blocks.
    """

    spec: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange

    def __call__(self, slices: Sequence[FileSlice]) -> Form | None:
        """Read the first rows of the slices of a partition."""
        batch = _first_rows(self.spec, self.config, self.schema, self.instants, slices)
        if batch is None:
            return None
        numbers, texts = (
            KeyGenerator(_with_texts(self.config, is_on)).record_keys(batch) for is_on in (False, True)
        )
        stored, tells = batch.column(RECORD_KEY), pc.not_equal(numbers, texts)
        for form, made in ((Form.NUMBER, numbers), (Form.FRACTION, texts)):
            if pc.any(pc.and_(tells, pc.equal(stored, made))).as_py():
                return form
        looks_so = pc.match_substring_regex(stored, _TEXT_IN_KEY)
        return Form.OTHER if pc.any(pc.and_(tells, looks_so)).as_py() else None


def _with_texts(config: TableConfig, is_on: bool) -> TableConfig:
    """Return a configuration whose keys show timestamps as dates and times, or as numbers."""
    return replace(config, properties={**config.properties, TEXTS_OF_TIMESTAMPS: str(is_on).lower()})


def _with_known_keys(facts: WriteFacts, config: TableConfig, schema: pa.Schema) -> TableConfig:
    """Return a configuration that makes record keys of timestamps like the stored keys.

    Args:
        facts: the table before the write.
        config: configuration for the key generator of the write.
        schema: key and partition columns with the types of the table.

    Raises:
        UnsupportedError: the form of the stored keys cannot be determined, or it is not uniform.
    """
    if not has_timestamp(config.record_key_fields, schema):
        return config
    if not config.populate_meta_fields or facts.timeline.latest_write() is None:
        return config
    spec = facts.locked.context.storage.spec
    lookup = facts.locked.context.lookup(facts.locked.config, facts.timeline)
    names = columns_of(config.record_key_fields)
    read = pa.schema([*(schema.field(name) for name in names), (RECORD_KEY, pa.string())])
    ask = _FormOfKeys(spec, config, read, InstantRange.of(facts.timeline))
    partitions = lookup.partitions()
    paths = evenly_spaced(partitions, _PARTITIONS_OF_KEYS_MAX)
    forms = {*map_in_threads(ask, [lookup.slices(path) for path in paths], worker_threads())} - {None}
    if not forms and len(paths) < len(partitions):  # perhaps those were emptied
        forms = {*islice(filter(None, (ask(lookup.slices(path)) for path in partitions)), 1)}
    if len(forms) > 1:
        raise _refusal(f"the timestamps of record keys are {' and '.join(sorted(map(str, forms)))}", spec)
    if Form.OTHER in forms:
        raise _refusal("the timestamps of record keys are another date and time in UTC", spec)
    return _with_texts(config, Form.FRACTION in forms) if forms else config


def _refusal(what: str, spec: StorageSpec) -> UnsupportedError:
    return UnsupportedError(
        f"The key and partition of a row cannot be determined from those that the table has ({what}), so an"
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
    types = config.partition_types
    if options.partition_path and not types:
        types = typed_columns(options.partition_path)[1]
    properties = {**config.properties, **options.key_settings, **_spelling(facts, options)}
    if not config.populate_meta_fields:
        # Readers generate virtual keys from the stored settings only.
        properties[BARE_SINGLE_KEY] = config.properties.get(BARE_SINGLE_KEY, "false")
    config = replace(config, partition_types=types, properties=properties)
    KeyGenerator(config).check_columns(schema, number_texts=facts.timeline.latest_write() is not None)
    known = with_known_folders(facts, _with_known_keys(facts, config, schema), schema)
    _check_timestamps(known, options)
    return known


def _check_timestamps(config: TableConfig, options: WriteOptions) -> None:
    """Check that keys and paths show timestamps as the options of a write say.

    Raises:
        InvalidError: the table has them in another form.
    """
    wanted = options.key_settings.get(TEXTS_OF_TIMESTAMPS)
    if wanted is None:
        return
    is_text = wanted == "true"
    has_other_paths = {
        True: config.path_timestamps is PathTimestamps.NUMBERS,
        False: config.path_timestamps is PathTimestamps.TEXTS,
    }[is_text]
    if has_other_paths or config.texts_of_timestamps != is_text:
        where = "partition paths" if has_other_paths else "record keys"
        form = "numbers" if is_text else "dates and times"
        raise InvalidError(
            f"{TEXTS_OF_TIMESTAMPS} is {wanted}, but the {where} of the table show timestamps as {form}: an"
            " existing key would be written twice. Drop the option."
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
