from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from drawstring.storage import Storage, open_storage
from tests.support.s3_server import S3Server

_numbers = itertools.count()


@pytest.fixture(params=["local", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Every storage, at a root that is empty and holds characters that need care."""
    if request.param == "local":
        return open_storage(tmp_path / "my täble")
    if request.param == "memory":
        return open_storage(f"memory://{request.node.name}/{next(_numbers)}")
    server: S3Server = request.getfixturevalue("s3")
    return open_storage(f"s3://lake/my täble/{next(_numbers)}", server.options)


@pytest.fixture
def bucket(s3: S3Server) -> Storage:
    """An empty prefix on S3."""
    return open_storage(f"s3://lake/bucket/{next(_numbers)}", s3.options)
