"""Which blocks of a slice count, and in which order."""

from __future__ import annotations

import pytest

from drawstring.filegroups.log_scanner import PlacedBlock, blocks_to_merge, torn_blocks
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats.log_inline import BlockType, HeaderKey, LogBlock
from drawstring.model.files import FileStatus, LogFile

FILE = LogFile(FileStatus(".g_10.log.1_0-0-0", 1), "g", "10", 1, "0-0-0")
ALL = InstantRange(frozenset(str(time) for time in range(10, 99)))


def data(instant: str, compacted: str = "", kind: BlockType = BlockType.PARQUET_DATA) -> PlacedBlock:
    header = {HeaderKey.INSTANT_TIME: instant}
    if compacted:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = compacted
    return PlacedBlock(FILE, LogBlock(kind, 0, 0, 0, 0, header))


def rollback(target: str) -> PlacedBlock:
    header = {
        HeaderKey.INSTANT_TIME: "90",
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    return PlacedBlock(FILE, LogBlock(BlockType.COMMAND, 0, 0, 0, 0, header))


def merged(blocks: list[PlacedBlock], instants: InstantRange = ALL) -> list[str]:
    return [placed.instant for placed in blocks_to_merge(blocks, instants)]


def test_torn_and_change_data_blocks_are_skipped() -> None:
    blocks = [
        data("10"),
        data("11", kind=BlockType.CORRUPT),
        data("12", kind=BlockType.CDC_DATA),
        data("13", kind=BlockType.DELETE),
    ]
    assert merged(blocks) == ["10", "13"]


def test_blocks_of_instants_that_do_not_count_are_skipped() -> None:
    blocks = [data("05"), data("10"), data("11"), data("12")]
    assert merged(blocks, InstantRange(frozenset({"10", "12"}), start="10")) == ["05", "10", "12"]
    assert merged(blocks, InstantRange(frozenset({"10", "12"}), start="10", as_of="11")) == ["05", "10"]


def test_a_rollback_takes_back_earlier_blocks_only() -> None:
    assert merged([data("10"), data("11"), rollback("10"), data("10")]) == ["11", "10"]


def test_a_log_compaction_stands_where_the_newest_of_its_blocks_stood() -> None:
    blocks = [data("10"), data("11"), data("12"), data("13", compacted="10,11")]
    assert merged(blocks) == ["13", "12"]


def test_log_compactions_of_log_compactions_are_followed() -> None:
    blocks = [
        data("10"),
        data("11"),
        data("12", compacted="10,11"),
        data("13"),
        data("14", compacted="12"),
        data("14", kind=BlockType.DELETE),
    ]
    assert merged(blocks) == ["14", "14", "13"]


def test_a_log_compaction_whose_blocks_are_gone_stands_for_itself() -> None:
    assert merged([data("12", compacted="10,11"), data("13")]) == ["12", "13"]


def test_a_rollback_accounts_for_torn_blocks_before_it() -> None:
    torn = data("10", kind=BlockType.CORRUPT)
    assert torn_blocks([torn, rollback("10"), data("11")]) == []
    assert torn_blocks([rollback("10"), torn]) == [torn]


def counted_merge(blocks: list[PlacedBlock], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many blocks are merged, and how often an instant of one was looked at."""
    looks = 0

    def instant(placed: PlacedBlock) -> str:
        nonlocal looks
        looks += 1
        return placed.block.instant or placed.file.instant

    monkeypatch.setattr(PlacedBlock, "instant", property(instant))
    everything = InstantRange(frozenset(placed.block.instant or "" for placed in blocks))
    return len(blocks_to_merge(blocks, everything)), looks


def test_many_rollbacks_cost_no_look_at_all_blocks_each(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [each for number in range(1_000) for each in (data(str(number)), rollback("none"))]

    count, looks = counted_merge(blocks, monkeypatch)

    assert count == 1_000
    assert looks < 10_000


def test_many_log_compactions_cost_no_look_at_all_blocks_each(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [data(str(number), compacted=str(number - 1)) for number in range(1, 500)]
    pairs = [each for n in range(500) for each in (data(f"a{n}"), data(f"b{n}", compacted=f"a{n}"))]

    count, looks = counted_merge([data("0"), *chain, *pairs], monkeypatch)

    assert count == 1 + 500
    assert looks < 20_000


def test_log_compactions_that_name_one_another_end() -> None:
    blocks = [data("10", compacted="11"), data("11", compacted="10"), data("12")]

    assert merged(blocks)[-1] == "12"
