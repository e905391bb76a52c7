from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drawstring.storage import Storage, open_storage
from drawstring.storage.protocol import Subfolder
from tests.support.store_server import StoreServer

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _files_are_flushed(fsync: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fsync)


@pytest.fixture(params=["local", "memory", "subfolder", "s3", "gcs", "azure"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Every storage, at a root that is empty and holds characters that need care."""
    if request.param == "local":
        return open_storage(tmp_path / "my täble")
    if request.param == "memory":
        return open_storage(f"memory://{request.node.name}/{next(_numbers)}")
    if request.param == "subfolder":
        return Subfolder(open_storage(tmp_path / "table"), "my täble/inside")
    server: StoreServer = request.getfixturevalue(request.param)
    return open_storage(server.address(f"my täble/{next(_numbers)}"), server.options)


@pytest.fixture
def bucket(store: StoreServer) -> Storage:
    """An empty prefix in every object store."""
    return open_storage(store.address(f"bucket/{next(_numbers)}"), store.options)
