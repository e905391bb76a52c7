"""From listed files to slices, in both layouts."""

from __future__ import annotations

from collections.abc import Mapping

from drawstring.filegroups.view.slicing import (
    Visibility,
    group_files,
    slices_by_completion,
    slices_by_name,
)
from drawstring.model.files import FileSlice, FileStatus

GROUP = "11111111-0"


def base(instant: str, token: str = "0-1-1") -> str:
    return f"{GROUP}_{token}_{instant}.parquet"


def log(instant: str, version: int = 1, token: str = "0-1-1", suffix: str = "") -> str:
    return f".{GROUP}_{instant}.log.{version}_{token}{suffix}"


def shapes(slices: list[FileSlice]) -> list[tuple[str, bool, list[str]]]:
    return [(s.base_instant, s.base is not None, [each.status.name for each in s.logs]) for s in slices]


def by_name(
    names: list[str], committed: set[str], as_of: str | None = None, pending: str | None = None
) -> list[tuple[str, bool, list[str]]]:
    files = group_files(FileStatus(name, 1) for name in names)[GROUP]
    visible = Visibility(lambda time: time if time in committed else None, as_of)
    return shapes(slices_by_name("", GROUP, files, visible, pending))


def by_completion(
    names: list[str], completed: Mapping[str, str], as_of: str | None = None
) -> list[tuple[str, bool, list[str]]]:
    files = group_files(FileStatus(name, 1) for name in names)[GROUP]
    return shapes(slices_by_completion("", GROUP, files, Visibility(completed.get, as_of)))


def test_layout_1_puts_logs_on_the_base_that_they_name() -> None:
    names = [log("20"), base("10"), log("10", 2), base("20"), log("10", 1)]
    assert by_name(names, {"10", "20"}) == [
        ("10", True, [log("10", 1), log("10", 2)]),
        ("20", True, [log("20")]),
    ]


def test_layout_1_keeps_logs_of_a_pending_compaction_on_the_slice_before() -> None:
    names = [base("10"), log("10"), log("20"), base("20")]
    assert by_name(names, {"10"}, pending="20") == [("10", True, [log("10"), log("20")])]
    assert by_name(names, {"10", "20"}) == [("10", True, [log("10")]), ("20", True, [log("20")])]


def test_layout_1_does_not_show_a_compaction_requested_later_than_asked_for() -> None:
    names = [base("10"), log("10"), log("20")]
    assert by_name(names, {"10"}, as_of="15", pending="20") == [("10", True, [log("10")])]


def test_log_files_come_by_version_number_and_not_as_text() -> None:
    names = [base("10"), log("10", 10), log("10", 2), log("10", 1, "0-2-1"), log("10", 1, "0-10-1")]
    order = [log("10", 1, "0-10-1"), log("10", 1, "0-2-1"), log("10", 2), log("10", 10)]
    assert by_name(names, {"10"}) == [("10", True, order)]


def test_change_data_and_foreign_files_are_left_out() -> None:
    names = [
        base("10"),
        log("10", suffix=".cdc"),
        ".hoodie_partition_metadata",
        f".{base('10')}.crc",
        "x.txt",
    ]
    assert by_name(names, {"10"}) == [("10", True, [])]


def test_uncommitted_files_do_not_show() -> None:
    names = [base("10"), base("20"), log("30")]
    assert by_name(names, {"10"}) == [("10", True, [])]
    assert by_completion(names, {"10": "11"}) == [("10", True, [])]


def test_layout_2_puts_a_log_on_the_newest_base_older_than_its_completion() -> None:
    names = [base("10"), log("12"), log("15"), base("20"), log("25")]
    completed = {"10": "11", "12": "13", "15": "22", "20": "23", "25": "26"}
    assert by_completion(names, completed) == [
        ("10", True, [log("12")]),
        ("20", True, [log("15"), log("25")]),
    ]


def test_layout_2_shows_a_late_log_on_the_old_base_before_the_compaction() -> None:
    names = [base("10"), log("12"), log("15"), base("20")]
    completed = {"10": "11", "12": "13", "15": "22", "20": "23"}
    assert by_completion(names, completed, as_of="19") == [("10", True, [log("12"), log("15")])]


def test_layout_2_names_a_slice_without_base_by_its_first_log() -> None:
    completed = {"10": "11", "12": "13", "20": "21"}
    assert by_completion([log("12"), log("10"), base("20")], completed) == [
        ("10", False, [log("10"), log("12")]),
        ("20", True, []),
    ]
