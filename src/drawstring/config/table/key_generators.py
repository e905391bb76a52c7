"""The registry of a user's own key generators.

The process that opens a table looks up the function; the table's configuration carries it to the tasks, so
workers need no registration of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from drawstring.base.errors import InvalidError

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
        >>> sorted(part.partition for part in by_city.file_slices())
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
