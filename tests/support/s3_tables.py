"""Tables of rides on S3."""

from __future__ import annotations

import itertools

from drawstring.table import Table
from tests.support.s3_server import S3Server
from tests.support.tables import create

_numbers = itertools.count()


def table_on_s3(s3: S3Server, table_type: str, version: int) -> Table:
    """Create an empty table in the bucket `lake`."""
    path = f"s3://lake/tables/{next(_numbers)}"
    return create(path=path, table_type=table_type, version=version, storage_options=s3.options)
