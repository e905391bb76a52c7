"""Options of writes and reads under Hudi's keys."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.ingest import INGEST_OPTIONS
from drawstring.config.keys.unsupported import CHECKED_OPTIONS
from drawstring.config.keys.without_effect import options_without_effect
from drawstring.config.options.option import text_of
from drawstring.config.options.read_options import table_options
from drawstring.config.options.reference import reference_page
from drawstring.config.options.registry import ALL_OPTIONS, OPTION_OF_KEY
from drawstring.config.options.unknown_keys import hudi_options
from drawstring.config.options.write_options import ReadOptions, WriteOptions, table_scope
from drawstring.config.payload_classes import MergeMode
from drawstring.config.table_types import KeyGeneratorType, TableType

DOCS = Path(__file__).parents[2] / "docs/options.md"

SCRIPT = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city, day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.datasource.hive_sync.table": "trips",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": 2,
    "hoodie.metadata.index.column.stats.parallelism": "2",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "10",
    "hoodie.keep.min.commits": "20",
    "hoodie.embed.timeline.server": "false",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "path": "/tmp/trips",
}
"""What a PySpark script for the Hudi bundle passes."""


def test_a_script_for_the_hudi_bundle_keeps_its_options() -> None:
    options = WriteOptions.parse(SCRIPT)
    assert options.table_name == "trips"
    assert options.table_type is TableType.MERGE_ON_READ
    assert options.record_key == ("uuid",)
    assert options.partition_path == ("city", "day")
    assert options.ordering == ("ts",)
    assert options.hive_style is True
    assert (options.compaction.inline, options.compaction.commits) == (True, 3)


def test_options_that_do_nothing_are_noted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "drawstring.config"):
        WriteOptions.parse(SCRIPT)
    assert "hoodie.metadata.index.column.stats.parallelism" in caplog.text
    assert "hoodie.upsert.shuffle.parallelism" in caplog.text
    assert "hoodie.table.name" not in caplog.text


def test_one_set_of_options_serves_reads_and_writes(caplog: pytest.LogCaptureFixture) -> None:
    reads = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "0"}
    with caplog.at_level(logging.DEBUG, "drawstring.config"):
        assert WriteOptions.parse({**SCRIPT, **reads}) == WriteOptions.parse(SCRIPT)
        assert ReadOptions.parse({**SCRIPT, **reads}) == ReadOptions.parse(reads)
    to_write, to_read = (each for each in caplog.messages if "do not apply" in each)
    assert all(key in to_write for key in reads)
    assert "do not apply to a write:" in to_write
    assert "hoodie.datasource.write.recordkey.field" in to_read
    assert "do not apply to a read:" in to_read


def test_without_options_a_write_is_an_upsert_with_defaults() -> None:
    options = WriteOptions.parse({})
    assert options.operation == "upsert"
    assert options.record_key == options.partition_path == options.ordering == ()
    assert options.sizing.base_file_size_max_bytes == 125_829_120
    assert (options.log_block_format, options.bloom_enabled, options.locking.wait_ms) == (
        "parquet",
        True,
        60_000,
    )
    assert (options.table_version, options.index_type, options.merge_mode) == (None, None, None)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"hoodie.datasource.write.operation": "BULK_INSERT"}, "operation", "bulk_insert"),
        ({"hoodie.table.ordering.fields": "a,b"}, "ordering", ("a", "b")),
        ({"hoodie.table.precombine.field": "a", "hoodie.table.ordering.fields": "a"}, "ordering", ("a",)),
        ({"HOODIE.Table.Name": "t"}, "table_name", "t"),
        ({"hoodie.write.table.version": "8"}, "table_version", 8),
        ({"hoodie.write.table.version": 6}, "table_version", 6),
        ({"hoodie.datasource.write.recordkey.field": ["a", "b"]}, "record_key", ("a", "b")),
        ({"hoodie.datasource.write.partitionpath.field": ""}, "partition_path", ()),
        ({"hoodie.table.name": None}, "table_name", None),
        ({"hoodie.index.type": "global_bloom"}, "index_type", "GLOBAL_BLOOM"),
        ({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"}, "bucket_count", 8),
        ({"hoodie.parquet.compression.codec": "GZIP"}, "compression", "gzip"),
        ({"hoodie.record.merge.mode": "commit_time_ordering"}, "merge_mode", MergeMode.COMMIT_TIME_ORDERING),
        (
            {"hoodie.datasource.write.payload.class": "x.DefaultHoodieRecordPayload"},
            "merge_mode",
            MergeMode.EVENT_TIME_ORDERING,
        ),
        (
            {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"},
            "key_generator",
            KeyGeneratorType.COMPLEX,
        ),
        ({"hoodie.precommit.validators": ""}, "operation", "upsert"),
        ({"hoodie.write.concurrency.mode": "single_writer"}, "operation", "upsert"),
        ({"hoodie.datasource.query.type": "nonsense for a write"}, "operation", "upsert"),
    ],
)
def test_write_options_parse(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(WriteOptions.parse(given), field) == value


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.datasource.write.precombine.fied", "hoodie.datasource.write.precombine.field"),
        ("hoodie.datasource.write.opperation", "hoodie.datasource.write.operation"),
        ("hoodie.tabel.name", "hoodie.table.name"),
        ("hoodie.upsert.shuffle.paralelism", "hoodie.upsert.shuffle.parallelism"),
        ("drawstring.wher", "drawstring.where"),
        ("as.of.instnat", "as.of.instant"),
        ("hoodie.datasource.write.recordkey.column", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.datasource.write.partition.columns", "hoodie.table.partition.fields"),
        ("hoodie.write.datasource.operation", "hoodie.datasource.write.operation"),
    ],
)
def test_a_typo_is_told_the_right_key(key: str, meant: str) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse, table_scope):
        with pytest.raises(InvalidError, match=f"{key}.*Did you mean '{meant}'"):
            parse({key: "x"})


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.zzz",
        "hoodie.index.bucket.num",
        "hoodie.datasource.write.schema.evolution.enable",
        "hoodie.datasource.write.hive_sync.enable",
        "hoodie.hive_sync.mode",
        "hoodie.payload.combined.schema.validate",
    ],
)
def test_a_key_like_no_other_is_passed_over_with_one_warning(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse, table_scope, WriteOptions.parse):
        parse({key: "1"})
    assert [record.levelname for record in caplog.records if key in record.getMessage()] == ["WARNING"]
    for parse in (WriteOptions.parse, ReadOptions.parse, table_scope):
        with pytest.raises(InvalidError, match=r"python -m drawstring\.config\.options\.reference"):
            parse({key: "1", "drawstring.options.unknown": "error"})


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.bootstrap.index.enable": "false"},
        {"hoodie.datasource.write.record.merger.impls": "org.apache.hudi.DefaultSparkRecordMerger"},
        {
            "hoodie.write.record.merge.custom.implementation.classes": (
                "org.apache.hudi.DefaultSparkRecordMerger"
            )
        },
        {"hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.index.type": "SIMPLE", "hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.keep.max.commits": "3"},
        {"hoodie.keep.min.commits": "50"},
        {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.commits.retained": "2"},
        {"hoodie.clean.max.commits.to.clean": "9223372036854775807"},
    ],
    ids=str,
)
def test_known_options_without_effect_in_a_combination_refuse_nothing(given: dict[str, str]) -> None:
    assert table_scope(given).keys() <= {"hoodie.index.type"}
    WriteOptions.parse(given)


def test_a_bound_of_the_timeline_that_is_given_alone_raises_the_other_one() -> None:
    for given, bounds in (
        ({}, (20, 30)),
        ({"hoodie.keep.max.commits": "3"}, (20, 21)),
        ({"hoodie.keep.max.commits": "40"}, (20, 40)),
        ({"hoodie.keep.min.commits": "50"}, (50, 60)),
        ({"hoodie.keep.min.commits": "2"}, (2, 12)),
        ({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}, (2, 3)),
    ):
        archiving = WriteOptions.parse(given).archiving
        assert (archiving.commits_min, archiving.commits_max) == bounds


def test_an_index_in_memory_is_the_simple_one() -> None:
    assert WriteOptions.parse({"hoodie.index.type": "inmemory"}).index_type == "SIMPLE"
    assert table_scope({"hoodie.index.type": "INMEMORY"}) == {"hoodie.index.type": "SIMPLE"}


def test_a_key_that_reads_like_a_lock_is_never_passed_over() -> None:
    for key in ("hoodie.write.lock.own.timeout", "hoodie.write.concurrency.anything"):
        with pytest.raises(InvalidError, match=f"There is no option '{key}'"):
            WriteOptions.parse({key: "1"})


def test_each_option_of_hudi_has_one_state() -> None:
    acting = {key for option in ALL_OPTIONS if option not in CHECKED_OPTIONS for key in option.keys}
    refused = {key for option in CHECKED_OPTIONS for key in option.keys}
    only_ingesting = {key for option in INGEST_OPTIONS for key in option.keys} - refused
    states = (acting | only_ingesting, refused, set(options_without_effect()))
    keys = {key for option in hudi_options() for key in option.keys}
    assert len(keys) > 1000
    assert {key: sum(key in state for state in states) for key in keys} == dict.fromkeys(keys, 1)
    assert not any(key.endswith((".", "*")) for key in options_without_effect())


def test_hudis_default_of_each_option_is_taken() -> None:
    given = [(key, each.default) for each in hudi_options() if each.default for key in each.keys]
    assert len(given) > 500
    for key, default in given:
        for parse in (WriteOptions.parse, ReadOptions.parse, table_scope):
            parse({key: default})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("hoodie.datasource.write.recordkey", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.precombine", "hoodie.datasource.write.precombine.field"),
        ("hoodie.datasource.write.precombine", "hoodie.datasource.write.precombine.field"),
        ("hoodie.table.partition", "hoodie.table.partition.fields"),
        ("hoodie.clean.partition.regex", "hoodie.clean.partition.filter.regex"),
        ("hoodie.clean.enabled", "hoodie.clean.automatic"),
        ("hoodie.lock.provider", "hoodie.write.lock.provider"),
    ],
)
def test_a_segment_that_is_missing_from_what_must_not_be_lost_is_refused(key: str, meant: str) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse, table_scope):
        with pytest.raises(InvalidError, match=f"There is no option '{key}'. Did you mean '{meant}'"):
            parse({key: "x"})


@pytest.mark.parametrize("word", ["clean", "archiv", "retain", "merge.mode", "lock.provider", "expir"])
def test_no_option_that_deletes_or_keeps_is_without_effect(word: str) -> None:
    harmless = {
        "hoodie.clean.parallelism", "hoodie.cleaner.parallelism", "hoodie.archive.delete.parallelism",
        "hoodie.archive.async", "hoodie.archivelog.folder", "hoodie.clean.async",
        "hoodie.clean.async.enabled", "hoodie.clean.multiple.enabled", "hoodie.clean.allow.multiple",
        "hoodie.fail.on.timeline.archiving", "hoodie.clean.optimize.using.local.engine.context",
        "hoodie.metadata.derive.from.datatable.clean.policy", "hoodie.commits.archival.batch",
        "hoodie.datasource.meta.sync.glue.skip_table_archive",
        "hoodie.datasource.read.table.valued.function.timeline.relation.archived",
    }  # fmt: skip
    assert {key for key in options_without_effect() if word in key} <= harmless


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"hoodie.datasource.write.operation": "upsrt"}, InvalidError, "Choose one of upsert"),
        ({"hoodie.datasource.write.operation": "upsert_prepped"}, UnsupportedError, "upsert_prepped"),
        ({"hoodie.compact.inline": "yes"}, InvalidError, "true or false"),
        ({"hoodie.bucket.index.num.buckets": "0"}, InvalidError, "at least 1"),
        ({"hoodie.bucket.index.num.buckets": "x"}, InvalidError, "whole number"),
        ({"hoodie.datasource.write.recordkey.field": "a,a"}, InvalidError, "twice"),
        ({"hoodie.write.table.version": "11"}, UnsupportedError, "Use 6 or 8 or 9 or 10"),
        (
            {"hoodie.table.ordering.fields": "a", "hoodie.table.precombine.field": "b"},
            InvalidError,
            "Drop one of them",
        ),
        ({"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "5"}, InvalidError, "not greater"),
        ({"hoodie.index.type": "HBASE"}, UnsupportedError, "GLOBAL_BLOOM"),
        ({"hoodie.index.bucket.engine": "EXTENDIBLE"}, InvalidError, "CONSISTENT_HASHING"),
        (
            {"hoodie.bucket.index.hash.field": "b", "hoodie.datasource.write.recordkey.field": "a"},
            InvalidError,
            "not a column of the record key",
        ),
        ({"hoodie.record.merge.mode": "CUSTOM"}, UnsupportedError, "CUSTOM"),
        (
            {
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.datasource.write.payload.class": "x.OverwriteWithLatestAvroPayload",
            },
            InvalidError,
            "Drop one of them",
        ),
        ({"hoodie.datasource.write.payload.class": "com.OwnPayload"}, UnsupportedError, "AWSDms"),
        ({"hoodie.datasource.write.keygenerator.type": "TIMESTMP"}, InvalidError, "Choose one of SIMPLE"),
        ({"hoodie.keygen.timebased.timestamp.type": "SECONDS"}, InvalidError, "Choose one of UNIX_TIMESTAMP"),
        (
            {
                "hoodie.datasource.write.keygenerator.type": "SIMPLE",
                "hoodie.datasource.write.keygenerator.class": "x.ComplexKeyGenerator",
            },
            InvalidError,
            "differ",
        ),
        ({"hoodie.write.concurrency.mode": "PESSIMISTIC"}, InvalidError, "Choose one of SINGLE_WRITER"),
        (
            {
                "hoodie.write.lock.storage.validity.timeout.secs": "60",
                "hoodie.write.lock.storage.renew.interval.secs": "30",
            },
            InvalidError,
            "ten times",
        ),
        ({"hoodie.errortable.enable": "true"}, UnsupportedError, "Use FALSE"),
        ({"hoodie.index.class": "mine.Index"}, UnsupportedError, "Drop the option"),
        ({"hoodie.datasource.write.partitions.to.delete": "p"}, InvalidError, "needs the operation"),
        ({"hoodie.combine.before.upsert": "false"}, UnsupportedError, "several records"),
        ({"hoodie.datasource.write.secondarykey.column": "a"}, UnsupportedError, "Drop the option"),
        (
            {"hoodie.table.name": "t", "hoodie.datasource.write.table.name": "other"},
            InvalidError,
            "are the same option but differ",
        ),
    ],
)
def test_write_options_that_cannot_be_say_why(
    given: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        WriteOptions.parse(given)


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("hoodie.bucket.index.num.bucket", "hoodie.bucket.index.num.buckets"),
        ("hoodie.compact.inlin", "hoodie.compact.inline"),
        ("hoodie.compact.inline.max.delta.commit", "hoodie.compact.inline.max.delta.commits"),
        ("hoodie.logfile.data.block.fromat", "hoodie.logfile.data.block.format"),
        ("hoodie.parquet.compresion.codec", "hoodie.parquet.compression.codec"),
        ("hoodie.parquet.max.file.sizes", "hoodie.parquet.max.file.size"),
        ("hoodie.clean.asnyc", "hoodie.clean.async"),
    ],
)
def test_a_slip_in_a_key_is_no_tuning_option(slip: str, meant: str) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse, table_scope):
        with pytest.raises(InvalidError, match=f"{slip}.*Did you mean '{meant}'"):
            parse({slip: "4"})


def test_keys_of_hudi_that_are_left_aside_are_no_slips_of_each_other() -> None:
    WriteOptions.parse(
        dict.fromkeys(options_without_effect(), "1")
        | {"hoodie.write.lock.provider": "own", "drawstring.options.unknown": "error"}
    )


def test_a_sync_of_catalogs_is_asked_for_by_either_key() -> None:
    for key in ("hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable"):
        sync = WriteOptions.parse({key: "true", "hoodie.datasource.hive_sync.mode": "hms"}).sync
        assert (sync.hive_enabled, sync.meta_enabled) == ("hive" in key, "meta" in key)
        assert ReadOptions.parse({key: "true"}) == ReadOptions.parse({})


@pytest.mark.parametrize(
    ("text", "layout"), [("z-order", "ZORDER"), ("hilbert", "HILBERT"), ("linear", "LINEAR")]
)
def test_the_order_of_clustered_rows_is_spelled_as_in_hudi(text: str, layout: str) -> None:
    assert WriteOptions.parse({"hoodie.layout.optimize.strategy": text}).clustering.layout == layout


def test_a_plugins_own_keys_are_passed_over() -> None:
    WriteOptions.parse({"hoodie.metrics.graphics.colour": "red", "hoodie.streamer.source.mine.topic": "t"})


def test_reads_take_what_the_hudi_bundle_takes() -> None:
    assert ReadOptions.parse({"hoodie.datasource.view.type": "read_optimized"}).query_type == "read_optimized"
    assert ReadOptions.parse({"hoodie.datasource.view.type": "realtime"}).query_type == "snapshot"
    assert ReadOptions.parse({"as.of.instant": "2024-01-01"}).as_of == "2024-01-01"
    options = ReadOptions.parse(
        {
            **SCRIPT,
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "20240101000000000",
            "hoodie.datasource.read.end.time": "20240102000000000",
            "drawstring.columns": "a,b",
            "drawstring.where": "a > 1",
            "hoodie.enable.data.skipping": "true",
        }
    )
    assert (options.begin, options.end) == ("20240101000000000", "20240102000000000")
    assert (options.columns, options.where) == (("a", "b"), "a > 1")


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"hoodie.datasource.query.type": "snapshots"}, InvalidError, "Choose one of snapshot"),
        ({"hoodie.datasource.read.begin.instanttime": "1"}, InvalidError, "query.type=incremental"),
        (
            {"hoodie.datasource.query.type": "incremental", "as.of.instant": "1"},
            InvalidError,
            "as.of.instant",
        ),
        (
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.query.incremental.format": "cdc",
                "drawstring.columns": "a",
            },
            InvalidError,
            "columns of its own",
        ),
        ({"hoodie.read.timeline.holes.resolution.policy": "WAIT"}, InvalidError, "USE_TRANSITION_TIME"),
        ({"drawstring.streaming.max_commits": "0"}, InvalidError, "at least 1"),
        ({"hoodie.datasource.merge.type": "skip_merge"}, UnsupportedError, "PAYLOAD_COMBINE"),
        ({"hoodie.datasource.read.paths": "x"}, UnsupportedError, "Drop the option"),
    ],
)
def test_read_options_that_cannot_be_say_why(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        ReadOptions.parse(given)


def test_a_new_table_stores_what_is_about_tables() -> None:
    assert table_scope(
        {
            **SCRIPT,
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": 4,
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        }
    ) == {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    }


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("hoodie.parquet.max.file.size", "an option of a write"),
        ("hoodie.table.name", "an argument of its own"),
        ("as.of.instant", "an option of a read"),
    ],
)
def test_properties_of_a_table_are_no_place_for_options_of_a_write(key: str, text: str) -> None:
    with pytest.raises(InvalidError, match=text):
        table_scope({key: "1"}, strict=True)


def test_every_key_means_one_thing() -> None:
    keys = [key for option in ALL_OPTIONS for key in option.keys]
    assert len(keys) == len(set(keys)) == len(OPTION_OF_KEY)
    assert not set(keys) & set(options_without_effect())
    assert all(key == key.lower() for key in keys)


def test_every_default_is_a_value_that_parses() -> None:
    for option in ALL_OPTIONS:
        if option.default not in (None, ()):
            text = text_of(option.default)
            assert text is not None and option.parse(option.key, text) == option.default


def test_the_reference_page_is_the_one_in_the_docs() -> None:
    assert DOCS.read_text() == reference_page(), (
        "run: python -m drawstring.config.options.reference > docs/options.md"
    )


def test_options_with_a_prefix_are_metadata_of_the_commit() -> None:
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "job_", "job_name": "nightly", "job_try": 2}
    assert WriteOptions.parse(prefix).commit_metadata == {"job_name": "nightly", "job_try": "2"}
    assert WriteOptions.parse({"_run": "7"}).commit_metadata == {"_run": "7"}, "Hudi's default"
    assert WriteOptions.parse({"job_name": "nightly"}).commit_metadata == {}


@pytest.mark.parametrize("prefix", ["hoodie.", "Hoodie.job.", "hoodie", "drawstring.x"])
def test_a_prefix_of_metadata_with_which_options_begin_is_refused(prefix: str) -> None:
    given = {"hoodie.datasource.write.commitmeta.key.prefix": prefix, "hoodie.upsert.shufle": "2"}
    with pytest.raises(InvalidError, match="Give a prefix of your own, such as 'job_'"):
        WriteOptions.parse(given)


@pytest.mark.parametrize("name", ["_run", "index_type"])
def test_what_no_commit_stores_is_no_option_of_an_opened_or_new_table(name: str) -> None:
    for parse in (table_options, partial(table_scope, strict=True)):
        with pytest.raises(InvalidError, match=f"There is no option '{name}'"):
            parse({name: "7"})
