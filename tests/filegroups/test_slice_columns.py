"""The latest slices of many file groups in columns, against those that are made one group after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drawstring.filegroups.columnar_view import FileColumns, SliceColumns, SliceRules, latest_in_columns
from drawstring.filegroups.view.slicing import GroupFiles, Visibility, group_files, slicer_of
from drawstring.model.files import FileSlice, FileStatus, join_path
from drawstring.model.table_version import LogFileAssignment

PATHS = ("", "a", "a/b")
FILE_IDS = ("a", "a-1", "00000001-0")
INSTANTS = tuple(map(str, range(10, 17)))
PENDING_COMPACTION = "15"

mostly_one = st.sampled_from([*FILE_IDS, "a", "a", "a"])
tokens = st.sampled_from(["0-1-1", "0-1-11"])
base_names = st.builds("{}_{}_{}.parquet".format, mostly_one, tokens, st.sampled_from(INSTANTS))
log_names = st.builds(
    ".{}_{}.log.{}_{}{}".format,
    mostly_one,
    st.sampled_from(INSTANTS),
    st.sampled_from([1, 2, 10]),
    tokens,
    st.sampled_from(["", "", "", ".cdc"]),
)
others = st.sampled_from([".hoodie_partition_metadata", "part-0.parquet", "a_b_c_1.parquet"])
listings = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 2]), st.one_of(base_names, base_names, log_names, log_names, others)
    ),
    unique=True,
    max_size=30,
)
groups = st.tuples(st.sampled_from(PATHS), st.sampled_from(FILE_IDS))


class Case:
    """What counts; instants below 12 are archived, with completion times of their own."""

    def __init__(self, assignment: LogFileAssignment, done: Sequence[int | None], as_of: str | None) -> None:
        self._slicer = slicer_of(assignment)
        self.visible = Visibility(
            dict(zip(INSTANTS, self._completed(done), strict=True)).get, as_of, self._archived
        )

    def _completed(self, done: Sequence[int | None]) -> list[str | None]:
        return [
            instant if instant < "12" else None if more is None else str(int(instant) + more)
            for instant, more in zip(INSTANTS, done, strict=True)
        ]

    def _archived(self, instant: str, later: str) -> str:
        return str(max(int(instant) + 1, int(later) + (int(instant) % 3) - 1))

    def slices_of(self, path: str, file_id: str, files: GroupFiles) -> list[FileSlice]:
        pending = {(path, FILE_IDS[0]): PENDING_COMPACTION for path in PATHS}
        return self._slicer(path, file_id, files, self.visible, lambda: pending)

    def latest(self, listed: Sequence[tuple[int, str]], replaced: set[tuple[str, str]]) -> list[FileSlice]:
        found = []
        for place, path in enumerate(PATHS):
            files = [
                FileStatus(join_path(path, name), at + 1)
                for at, (of, name) in enumerate(listed)
                if of == place
            ]
            for file_id, group in sorted(group_files(files).items()):
                slices = self.slices_of(path, file_id, group)
                found += [] if (path, file_id) in replaced else slices[-1:]
        return found

    def in_columns(self, listed: Sequence[tuple[int, str]], rules: SliceRules) -> SliceColumns:
        ordered = sorted(range(len(listed)), key=lambda at: listed[at])
        files = FileColumns(
            PATHS,
            np.array([listed[at][0] for at in ordered], np.int64),
            pa.array([listed[at][1] for at in ordered], pa.string()),
            np.array(ordered, np.int64) + 1,
        )
        return latest_in_columns(files, rules)


@settings(max_examples=4 * settings.get_profile(settings.get_current_profile_name()).max_examples)
@given(
    listed=listings,
    assignment=st.sampled_from(LogFileAssignment),
    done=st.lists(st.sampled_from([None, 1, 1, 2, 5]), min_size=len(INSTANTS), max_size=len(INSTANTS)),
    as_of=st.sampled_from([None, None, "14", "16"]),
    replaced=st.sets(groups, max_size=3),
)
@example(
    listed=[(0, "a_0-1-1_14.parquet"), (0, "a_0-1-11_14.parquet")],
    assignment=LogFileAssignment.BY_COMPLETION,
    done=[1] * len(INSTANTS),
    as_of=None,
    replaced=set(),
)
def test_slices_in_columns_are_those_of_each_file_group(
    listed: list[tuple[int, str]],
    assignment: LogFileAssignment,
    done: list[int | None],
    as_of: str | None,
    replaced: set[tuple[str, str]],
) -> None:
    case = Case(assignment, done, as_of)
    by_completion = assignment is LogFileAssignment.BY_COMPLETION
    columns = case.in_columns(listed, SliceRules(case.visible, by_completion, replaced, case.slices_of))
    expected = case.latest(listed, replaced)
    assert list(columns.each()) == expected
    assert [columns.slice_at(number) for number in range(len(columns))] == expected
    assert columns.size_bytes == sum(each.size_bytes for each in expected)
    assert columns.has_base.tolist() == [each.base is not None for each in expected]
    assert columns.has_logs.tolist() == [bool(each.logs) for each in expected]
    half = np.arange(0, len(expected), 2)
    assert list(columns.take(half).each()) == expected[::2]
    assert [each.base for each in columns.without_logs().each()] == [
        each.base for each in expected if each.base
    ]
    assert not any(each.logs for each in columns.without_logs().each())
