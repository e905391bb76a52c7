"""Which blocks of a slice count, and in which order."""

from __future__ import annotations

from drawstring.filegroups.log_blocks import PlacedBlock, blocks_to_merge, torn_blocks
from drawstring.filegroups.tasks import InstantRange
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
