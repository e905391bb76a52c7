"""A user's own key generators, by the name that tables ask for them.

Looked up by the process that opens a table; the table's configuration carries what was found to the
tasks, so workers need no registration of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from drawstring.base.errors import InvalidError

KeyFunction: TypeAlias = Callable[[pa.RecordBatch], tuple[pa.Array, pa.Array]]
"""Given the key and partition columns of some rows, returns their record keys and partition paths."""

_generators: dict[str, KeyFunction] = {}


def register_key_generator(name: str, generator: KeyFunction) -> None:
    """Let tables with a key generator of one's own be written, with a function that stands for it.

    Register before the table is opened. A second registration of a name takes the place of the first.

    Args:
        name: what the table asks for: its key generator class
            (`hoodie.datasource.write.keygenerator.class` when it is created), in full or without the
            package.
        generator: called with a record batch of the table's record key and partition columns, as the
            table types them. Returns two text columns of the same length: the record keys, none of
            them null or empty, and the partition paths, empty for none. The same row has to give the
            same key and path every time. On Spark it is pickled to the workers.

    Raises:
        InvalidError: the name is empty, or the generator cannot be called.

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
        >>> sorted(part.partition for part in by_city.file_slices())
        ['l', 'o']
    """
    if not name.strip():
        raise InvalidError("a key generator needs a name: the key generator class of the tables")
    if not callable(generator):
        raise InvalidError(
            f"the key generator of {name!r} is a {type(generator).__name__}, which cannot be called"
        )
    _generators[name.strip()] = generator


def registered_key_generator(name: str) -> KeyFunction | None:
    """Return the generator that is registered by a class name, in full or without the package."""
    return _generators.get(name) or _generators.get(name.rpartition(".")[2])
