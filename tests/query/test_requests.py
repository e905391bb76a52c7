"""How many requests to an object store it takes to plan a query by the metadata table."""

from __future__ import annotations

import pyarrow as pa

import drawstring
from tests.support.limits import SetLimits
from tests.support.s3_server import S3Server
from tests.support.slow_proxy import SlowProxy, slow_proxy
from tests.support.tables import WITHOUT_SERVICES

REQUEST_SECONDS = 0.03


def planned(proxy: SlowProxy, options: dict[str, str], partitions: int) -> list[str]:
    """Return the requests of planning a table with some partitions, of two files each."""
    uri = f"s3://lake/planned{partitions}"
    ids = [str(number) for number in range(4 * partitions)]
    rows = pa.table({"id": ids, "day": [f"d{number % partitions}" for number in range(len(ids))]})
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    drawstring.create(
        uri,
        rows.schema,
        name="planned",
        record_key="id",
        partition_by="day",
        properties=buckets,
        storage_options=options,
    )
    by_metadata = {"hoodie.metadata.enable": True}
    table = drawstring.open(uri, storage_options=options, options=by_metadata)
    table.insert(rows, options=WITHOUT_SERVICES)
    proxy.requests.clear()
    proxy.seconds = REQUEST_SECONDS
    scan = drawstring.open(uri, storage_options=options, options=by_metadata).scan()
    assert partitions <= len(scan.tasks()) == scan.explain().file_slices
    proxy.seconds = 0
    return list(proxy.requests)


def test_planning_takes_as_many_requests_of_many_partitions_as_of_few(s3: S3Server, limit: SetLimits) -> None:
    limit(sliced_files_min=0)
    with slow_proxy(s3.endpoint, 0) as proxy:
        options = {**s3.options, "endpoint": proxy.endpoint}
        few, many = (planned(proxy, options, partitions) for partitions in (2, 12))
    assert len(many) == len(few) < 25, many
