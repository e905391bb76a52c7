"""Options of a write that repeat what the table is, or contradict it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions, check_against, check_place
from drawstring.config.table_config import table_config
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


@pytest.mark.parametrize(
    ("named", "address", "is_same"),
    [
        ("/lake/rides/", "/lake/rides", True),
        ("file:/lake/rides", "file:///lake/rides", True),
        ("s3a://lake/rides", "s3://lake/rides/", True),
        ("", "/lake/rides", True),
        ("/lake/trips", "/lake/rides", False),
        ("s3://lake/rides", "s3://other/rides", False),
    ],
)
def test_a_base_path_has_to_be_the_folder_of_the_table(named: str, address: str, is_same: bool) -> None:
    given = {"hoodie.Base.Path": named}
    with (
        nullcontext() if is_same else pytest.raises(InvalidError, match="Drop the option, or open the other")
    ):
        check_place(given, address)
