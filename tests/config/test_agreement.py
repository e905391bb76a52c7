"""Options of a write that repeat what the table is, or contradict it."""

from __future__ import annotations

import pytest

from drawstring.base.errors import InvalidError
from drawstring.config.options.agreement import check_against
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import table_config
from tests.support.table_configs import new_table


def test_options_that_repeat_what_the_table_is_are_fine() -> None:
    config = table_config(
        new_table(extra={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"})
    )
    for given in (
        {},
        {"hoodie.table.name": "t", "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
        {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
        },
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    ):
        check_against(WriteOptions.parse(given), config)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
            "COPY_ON_WRITE but the table has MERGE_ON_READ",
        ),
        ({"hoodie.datasource.write.recordkey.field": "uuid"}, "record key uuid but the table has id"),
        ({"hoodie.table.name": "other"}, "table name other"),
        ({"hoodie.table.ordering.fields": "seq"}, "ordering seq"),
        ({"hoodie.datasource.write.hive_style_partitioning": "true"}, "hive-style"),
        ({"hoodie.index.type": "SIMPLE"}, "bucket index"),
        ({"hoodie.bucket.index.num.buckets": "8"}, "buckets 8 but the table has 4"),
        ({"hoodie.write.table.version": "6"}, "version 6"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "merge mode"),
    ],
)
def test_options_that_contradict_the_table_are_refused(given: dict[str, str], text: str) -> None:
    config = table_config(
        new_table(extra={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"})
    )
    with pytest.raises(InvalidError, match=text):
        check_against(WriteOptions.parse(given), config)
