"""Where the tables of the simulation lie: `SIM_STORE=memory`, `local`, `s3`, `gcs` or `azure`."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from tests.support.azure_server import azure_server
from tests.support.gcs_server import gcs_server
from tests.support.s3_server import s3_server
from tests.support.store_server import StoreServer

STORE: Final = os.environ.get("SIM_STORE", "memory")
_SERVERS: Final[Mapping[str, Callable[[str], AbstractContextManager[StoreServer]]]] = {
    "s3": s3_server,
    "gcs": gcs_server,
    "azure": azure_server,
}
_BUCKET: Final = "sim"
_numbers = itertools.count()


@dataclass
class Place:
    """Below which address new tables lie, and how their store is opened."""

    root: str = "memory://sim"
    options: dict[str, str] = field(default_factory=dict)


_place = Place()


@contextmanager
def place_of_tables() -> Iterator[None]:
    """Set the store up that tables lie in, for a process of tests."""
    if STORE in _SERVERS:
        with _SERVERS[STORE](_BUCKET) as server:
            _place.root, _place.options = server.address("t", _BUCKET), server.options
            yield
    elif STORE == "local":
        folder = tempfile.mkdtemp(prefix="sim-")
        # A death of the process takes nothing that was written; power cuts have a simulation of their own.
        _place.root, _place.options = f"{folder}/t", {"drawstring.storage.sync": "false"}
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    else:
        assert STORE == "memory", f"SIM_STORE={STORE}: memory, local, {', '.join(_SERVERS)}"
        yield


def new_place() -> tuple[str, dict[str, str]]:
    """Return the address of a table that is not there yet, and the options of its store."""
    return f"{_place.root}-{next(_numbers)}", dict(_place.options)


def new_storage() -> Storage:
    """Return the storage of such a table."""
    return open_storage(*new_place())


def has_leases() -> bool:
    """Whether writers keep each other out by leases, which a process loses that stands still."""
    return STORE != "local"


def drop(storage: Storage) -> None:
    """Delete a table that is not needed any more."""
    local = storage.local_path("")
    if local is not None:
        shutil.rmtree(Path(local), ignore_errors=True)
    else:
        storage.delete_tree("")
