"""Key generators: columns to record keys and partition paths (specification: Keys).

| generator | record key | partition path |
|---|---|---|
| SIMPLE | `value` | `value` |
| COMPLEX | `field:value,field:value`, also for one field | values joined by `/` |
| NON_PARTITION | `value`; several fields as COMPLEX | empty |
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table import KeyGeneratorType, TableConfig
from drawstring.keygen.paths import DEFAULT_PARTITION, escape
from drawstring.keygen.texts import java_text, map_distinct
from drawstring.model.files import HOODIE_FOLDER, PARTITION_METADATA

NULL_KEY: Final = "__null__"
EMPTY_KEY: Final = "__empty__"

_RESERVED: Final = frozenset({HOODIE_FOLDER, PARTITION_METADATA})
_BARE_SINGLE_KEY: Final = "hoodie.write.complex.keygen.new.encoding"
_SLASHED_DATES: Final = "hoodie.datasource.write.slash.separated.date.partitioning"
_FIRST_VERSION_ALWAYS_PREFIXED: Final = 9
_GENERATORS: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)


class KeyGenerator:
    """Makes the keys of one table.

    Args:
        config: the table.

    Raises:
        UnsupportedError: the table's key generator is not available.
    """

    def __init__(self, config: TableConfig) -> None:
        if config.key_generator not in _GENERATORS:
            raise UnsupportedError(
                f"writing to a table with the {config.key_generator} key generator is not available yet"
            )
        if config.properties.get(_SLASHED_DATES, "").lower() == "true":
            raise UnsupportedError(f"writing to a table with {_SLASHED_DATES} is not available yet")
        self._config = config

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the record key of each row, text.

        Args:
            batch: rows with the key columns.

        Raises:
            InvalidError: a key column is missing, or the key of a row is null or empty.
        """
        fields = self._config.record_key_fields
        if not self._is_prefixed():
            return _plain_key(column_texts(batch, fields[0]), fields[0])
        return _compound_key([column_texts(batch, field) for field in fields], fields)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the partition path of each row, text.

        Args:
            batch: rows with the partition columns.

        Raises:
            InvalidError: a partition column is missing, or a value leads into Hudi's own folder.
        """
        fields = self._config.partition_fields
        if self._config.key_generator is KeyGeneratorType.NON_PARTITION or not fields:
            return pa.repeat(pa.scalar("", pa.string()), batch.num_rows)
        parts = [self._path_part(column_texts(batch, field), field) for field in fields]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")

    def _is_prefixed(self) -> bool:
        config = self._config
        if len(config.record_key_fields) > 1:
            return True
        if config.key_generator is not KeyGeneratorType.COMPLEX:
            return False
        is_bare = config.properties.get(_BARE_SINGLE_KEY, "").lower() == "true"
        return config.version >= _FIRST_VERSION_ALWAYS_PREFIXED or not is_bare

    def _path_part(self, texts: pa.Array, field: str) -> pa.Array:
        prefix = f"{field}=" if self._config.hive_style else ""
        url_encode = self._config.url_encode

        def part(value: str) -> str:
            path = prefix + ((escape(value) if url_encode else value) or DEFAULT_PARTITION)
            if not _RESERVED.isdisjoint(path.split("/")):
                raise InvalidError(
                    f"partition column {field} has the value {value!r}: Hudi keeps its own files under"
                    " that name, and no reader would look for rows there; change the value"
                )
            return path

        return map_distinct(texts.fill_null(""), part)


def column_texts(batch: pa.RecordBatch, field: str) -> pa.Array:
    """Return the texts of a column, or of a field inside one named with dots.

    Args:
        batch: rows.
        field: name of the column.

    Raises:
        InvalidError: there is no such column.
    """
    if field in batch.schema.names:
        return java_text(batch.column(field), field)
    name, _, inner = field.partition(".")
    if not inner or name not in batch.schema.names:
        raise InvalidError(f"the rows have no column {field}, which the record key or partition path needs")
    try:
        return java_text(pc.struct_field(batch.column(name), inner.split(".")), field)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise InvalidError(f"column {name} has no field {inner}, which the record key needs") from None


def _plain_key(texts: pa.Array, field: str) -> pa.Array:
    missing = _count_missing(texts)
    if missing:
        raise InvalidError(
            f"record key column {field} is null or empty in {missing} rows: every record needs a key"
        )
    return texts


def _compound_key(columns: list[pa.Array], fields: tuple[str, ...]) -> pa.Array:
    no_key = pa.scalar(True)
    parts = []
    for texts, field in zip(columns, fields, strict=True):
        no_key = pc.and_(no_key, _is_missing(texts))
        named = pc.if_else(pc.equal(texts, ""), EMPTY_KEY, texts).fill_null(NULL_KEY)
        parts.append(pc.binary_join_element_wise(f"{field}:", named, ""))
    missing = pc.sum(no_key).as_py() or 0
    if missing:
        raise InvalidError(
            f"record key columns {', '.join(fields)} are all null or empty in {missing} rows:"
            " every record needs a key"
        )
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")


def _is_missing(texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "").fill_null(True)


def _count_missing(texts: pa.Array) -> int:
    return int(pc.sum(_is_missing(texts)).as_py() or 0)
