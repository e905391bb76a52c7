"""Tables of rides in object stores."""

from __future__ import annotations

import itertools

from drawstring.table import Table
from tests.support.store_server import StoreServer
from tests.support.tables import create

_numbers = itertools.count()


def table_in(store: StoreServer, table_type: str, version: int) -> Table:
    """Create an empty table in the bucket `lake`."""
    path = store.address(f"tables/{next(_numbers)}")
    return create(path=path, table_type=table_type, version=version, storage_options=store.options)
