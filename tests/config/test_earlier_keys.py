"""Options of scripts for earlier releases of Hudi, which Hudi 1.2.0 does not define any more."""

from __future__ import annotations

import pytest

from drawstring.base.errors import UnsupportedError
from drawstring.config.options.write_options import WriteOptions


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.auto.commit", "true"),
        ("hoodie.assume.date.partitioning", "false"),
        ("hoodie.avro.schema.external.transformation", "true"),
        ("hoodie.datasource.read.use.new.parquet.file.format", "true"),
        ("hoodie.index.hbase.zkquorum", "host"),
        ("hoodie.hbase.index.update.partition.path", "true"),
        ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.HoodieSparkRecordMerger"),
        ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.DefaultSparkRecordMerger"),
    ],
)
def test_options_of_earlier_releases_of_hudi_are_passed_over(key: str, value: str) -> None:
    assert WriteOptions.parse({key: value}) == WriteOptions.parse({})


def test_an_index_in_hbase_and_a_merger_of_ones_own_stay_refused() -> None:
    for key, value in {
        "hoodie.index.type": "HBASE",
        "hoodie.datasource.write.record.merger.impls": "com.example.Merger",
    }.items():
        with pytest.raises(UnsupportedError, match=f"{key}={value}"):
            WriteOptions.parse({key: value})
