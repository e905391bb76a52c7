"""What a write knows about its table: timeline, instant, key generator, names of partition folders.

How the partition folders of a timestamp column are named:

    part=1704477600000000                DataFrame writes of Hudi, and drawstring: microseconds since 1970
    part=2024-01-05 18%3A00%3A00         Spark SQL writes of Hudi: date and time, in the time zone of the JVM
    part=2024-01-05 18%3A00%3A00.0       DataFrame writes that ask for consistent logical timestamps

No property of the table says which of them it has; its folders do. A write that names them in another way
would put a known key into the table twice. Where folders have dates and times, the rows in them show whether
these are in UTC.
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
from drawstring.config.table.key_settings import BARE_SINGLE_KEY
from drawstring.config.table.kinds import typed_columns
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.index.written import WrittenTable
from drawstring.keygen.keys import KeyGenerator
from drawstring.keygen.paths import split_path
from drawstring.keygen.texts import is_moment
from drawstring.model.files import FileSlice
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The table before a write.

    Attributes:
        session: the table, locked.
        timeline: as it is before the write.
        time: requested time that the write is going to have.
    """

    session: LockedTable
    timeline: Timeline
    time: str

    def written_table(self, *, names_index: bool = True) -> WrittenTable:
        """Return the table as an index checks it.

        Args:
            names_index: whether the caller or the table names the index of the write.
        """
        session = self.session
        return WrittenTable(session.state.storage, session.config, session.store, self.timeline, names_index)


_GENERATORS: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)
_NUMBER: Final = re.compile(r"-?\d+", re.ASCII)
_DATE_AND_TIME: Final = re.compile(r"-?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)
_PARTITIONS_READ_MAX: Final = 256
"""Partitions of which rows are read."""


class Form(StrEnum):
    """How a partition folder names a timestamp."""

    NUMBER = "a number"
    DATE_AND_TIME = "a date and time"
    OTHER = "neither a number nor a date and time"


def with_known_folders(facts: WriteFacts, config: TableConfig, schema: pa.Schema) -> TableConfig:
    """Return a configuration that names partition folders of timestamps as the table has them.

    Args:
        facts: the table as the write finds it.
        config: as the write's key generator sees it.
        schema: columns that keys and partition paths are made from, as the table types them.

    Raises:
        UnsupportedError: the folders do not tell how they are named, or not all are named in one way.
    """
    columns = _timestamp_columns(config, schema)
    if not columns or facts.timeline.latest_write() is None:
        return config
    spec = facts.session.state.storage.spec
    lookup = SliceLookup(spec, facts.session.config, facts.timeline)
    forms = _forms([path for path in lookup.partitions() if lookup.slices(path)], columns, config)
    if set(forms) <= {Form.NUMBER}:
        return config
    if set(forms) != {Form.DATE_AND_TIME}:
        found = " and ".join(f"{form} in {paths[0]!r}" for form, paths in forms.items())
        raise _refusal(f"the folders of timestamps have {found}", spec)
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
    """Return the partition columns whose folders may be named in one way or another."""
    if config.path_generator not in _GENERATORS:
        return ()
    kinds = config.partition_types or ("SIMPLE",) * len(config.partition_fields)
    simple = (name for name, kind in zip(config.partition_fields, kinds, strict=True) if kind == "SIMPLE")
    return tuple(name for name in simple if name in schema.names and is_moment(schema.field(name).type))


def _forms(paths: Sequence[str], columns: Sequence[str], config: TableConfig) -> Mapping[Form, Sequence[str]]:
    """Return the partition paths by the form of the timestamps in them; nulls have none."""
    found: dict[Form, list[str]] = {}
    fields = config.partition_fields
    for path in paths:
        texts = split_path(path, fields, hive_style=config.hive_style, url_encode=config.url_encode)
        if texts is None:
            found.setdefault(Form.OTHER, []).append(path)
            continue
        for name, text in zip(fields, texts, strict=True):
            if name in columns and text is not None:
                found.setdefault(_form(text), []).append(path)
    return found


def _form(text: str) -> Form:
    if _NUMBER.fullmatch(text):
        return Form.NUMBER
    return Form.DATE_AND_TIME if _DATE_AND_TIME.fullmatch(unquote(text)) else Form.OTHER


def _spread(paths: Sequence[str]) -> Sequence[str]:
    """Return the paths, or as many as are looked at, from the first to the last."""
    count = min(len(paths), _PARTITIONS_READ_MAX)
    return [paths[number * (len(paths) - 1) // max(count - 1, 1)] for number in range(count)]


@dataclass(frozen=True, slots=True)
class _HasRowsOfPath:
    """Tells whether a partition has rows that belong there, or none that it could be told by.

    Attributes:
        spec: opens the table.
        config: makes the paths.
        schema: the partition columns.
        instants: which log blocks count.
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
            # A global index leaves records where they are whose column changes: one that fits is enough.
            read = replace(file_slice, logs=()) if file_slice.base else file_slice
            columns = tuple(self.schema.names)
            task = ReadTask(self.spec, self.config, read, self.schema, columns, instants=self.instants)
            for batch in read_slice(task):
                if batch.num_rows:
                    return bool(pc.any(pc.equal(generator.partition_paths(batch), path)).as_py())
        return True


def _refusal(what: str, spec: StorageSpec) -> UnsupportedError:
    return UnsupportedError(
        f"The names of the partition folders do not tell where a row belongs, and a known key could come into"
        f" the table twice: {what}. Write with what wrote the table, or copy its rows to a new one.",
        table=spec.uri,
    )


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
    types = config.partition_types
    if options.partition_path and not types:
        types = typed_columns(options.partition_path)[1]
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
