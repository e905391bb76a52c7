"""Which file groups a compaction takes, and when it is due: the strategies and triggers of Hudi."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.services import CompactionSettings
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionOperation
from drawstring.services.compaction import choose, is_due, partitions_to_plan
from drawstring.timeline.timeline import Timeline

MIB = 1 << 20
TODAY = date(2024, 3, 10)
DAYS = ["2024/03/09", "2024/02/01", "2024/03/10", "2024/03/12", "2024/02/29"]
TRIGGER = "hoodie.compact.inline.trigger.strategy"


def settings(*strategies: str, **more: Any) -> CompactionSettings:
    names = {name.replace("_", "."): value for name, value in more.items()}
    given = {f"hoodie.compaction.{name}": value for name, value in names.items()}
    return WriteOptions.parse(
        {"hoodie.compaction.strategy": ",".join(strategies) or None, **given}
    ).compaction


def operation(file_id: str, logs: int, log_mib: int, partition: str = "") -> CompactionOperation:
    metrics = {"TOTAL_LOG_FILES_SIZE": float(log_mib * MIB), "TOTAL_IO_MB": 2.0 * log_mib}
    names = tuple(f"{file_id}.log.{number}" for number in range(logs))
    return CompactionOperation(partition, file_id, "1", None, names, metrics)


SOME = [operation("few-large", 1, 100), operation("many-small", 9, 1), operation("middle", 4, 10)]


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (settings(), ["few-large", "middle", "many-small"]),
        (settings(logfile_size_threshold=5 * MIB), ["few-large", "middle"]),
        (settings(target_io=200), ["few-large"]),
        (settings(target_io=201), ["few-large", "middle"]),
        (settings("LogFileNumBasedCompactionStrategy"), ["many-small", "middle", "few-large"]),
        (settings("LogFileNumBased", logfile_num_threshold=4), ["many-small", "middle"]),
        (settings("BoundedIO", target_io=1), ["few-large"]),
        (settings("UnBoundedCompactionStrategy", target_io=1), ["few-large", "many-small", "middle"]),
        (settings("LogFileNumBased", "BoundedIO", target_io=3), ["many-small", "middle"]),
    ],
)
def test_a_strategy_orders_file_groups_and_leaves_some_out(
    given: CompactionSettings, taken: list[str]
) -> None:
    assert [each.file_id for each in choose(SOME, given)] == taken


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (settings(), DAYS),
        (settings("DayBased", daybased_target_partitions=2), ["2024/03/12", "2024/03/10"]),
        (
            settings("BoundedPartitionAware", daybased_target_partitions=1),
            ["2024/03/09", "2024/03/10", "2024/03/12"],
        ),
        (settings("UnBoundedPartitionAware", daybased_target_partitions=1), ["2024/02/01", "2024/02/29"]),
        (settings("PartitionRegexBased", partition_path_regex="/02/.*9$"), ["2024/02/29"]),
        (
            settings("PartitionRegexBased", "DayBased", partition_path_regex="/02/",
                     daybased_target_partitions=1),
            ["2024/02/29"],
        ),
    ],
)  # fmt: skip
def test_a_strategy_looks_at_some_partitions_only(given: CompactionSettings, taken: list[str]) -> None:
    assert partitions_to_plan(DAYS, given, TODAY) == taken


def test_days_are_found_in_hive_style_paths_and_the_newest_is_compacted_first() -> None:
    paths = ["year=2024/month=2/day=9", "year=2024/month=10/day=1"]
    given = settings("DayBasedCompactionStrategy")
    assert partitions_to_plan(paths, given, TODAY) == paths[::-1]
    chosen = choose([operation("old", 1, 1, paths[0]), operation("new", 1, 1, paths[1])], given)
    assert [each.file_id for each in chosen] == ["new", "old"]


@pytest.mark.parametrize("path", ["rome", "2024-01-01", "2024/13/01", ""])
def test_a_partition_that_is_no_day_is_refused_by_name(path: str) -> None:
    with pytest.raises(InvalidError, match="is not a day of the form yyyy/MM/dd"):
        partitions_to_plan(["2024/01/01", path], settings("DayBased"), TODAY)


def test_a_strategy_of_the_users_own_and_a_broken_expression_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"is not supported\. Use one of .*DayBasedComp"):
        settings("org.acme.MyStrategy")
    with pytest.raises(InvalidError, match="not a regular expression"):
        settings(partition_path_regex="(")


def timeline(*texts: str) -> Timeline:
    """`d5` is a delta commit of second 5, `c` a compaction, `p` a pending one."""
    kinds = {
        "d": (Action.DELTA_COMMIT, State.COMPLETED),
        "c": (Action.COMMIT, State.COMPLETED),
        "p": (Action.COMPACTION, State.REQUESTED),
    }
    return Timeline.of(
        Instant(at(int(text[1:])), *kinds[text[0]], completed=at(int(text[1:])) if text[0] != "p" else None)
        for text in texts
    )


def at(second: int) -> str:
    return f"20240310{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}000"


@pytest.mark.parametrize(
    ("trigger", "instants", "now", "due"),
    [
        ("NUM_COMMITS", ["d1", "d2"], 3, False),
        ("NUM_COMMITS", ["d1", "d2", "d3"], 4, True),
        ("NUM_COMMITS", ["d1", "d2", "c3", "d4", "d5"], 9, False),
        ("NUM_COMMITS", ["d1", "d2", "p3", "d4"], 9, True),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", ["d1", "d2", "p3", "d4"], 9, False),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", ["d1", "p3", "d4", "d5", "d6"], 9, True),
        ("TIME_ELAPSED", ["d1"], 100, False),
        ("TIME_ELAPSED", ["d1"], 101, True),
        ("TIME_ELAPSED", ["d1", "c50", "d60"], 149, False),
        ("TIME_ELAPSED", ["d1", "c50", "d60"], 150, True),
        ("TIME_ELAPSED", ["d1", "c50"], 999, False),
        ("NUM_AND_TIME", ["d1", "d2", "d3"], 50, False),
        ("NUM_AND_TIME", ["d1"], 500, False),
        ("NUM_AND_TIME", ["d1", "d2", "d3"], 500, True),
        ("NUM_OR_TIME", ["d1", "d2", "d3"], 50, True),
        ("NUM_OR_TIME", ["d1"], 500, True),
        ("NUM_OR_TIME", ["d1"], 50, False),
        ("NUM_OR_TIME", [], 5000, False),
    ],
)
def test_a_compaction_is_due_by_commits_or_time(
    trigger: str, instants: list[str], now: int, due: bool
) -> None:
    limits = {"hoodie.compact.inline.max.delta.commits": 3, "hoodie.compact.inline.max.delta.seconds": 100}
    given = WriteOptions.parse({TRIGGER: trigger, **limits}).compaction
    assert is_due(timeline(*instants), given, at(now)) is due
