from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from drawstring.base.errors import ConflictError
from drawstring.base.resources import map_in_threads
from drawstring.filegroups.write.markers import TOGETHER_MIN, MarkerDirState, Markers
from drawstring.storage.memory import MemoryStorage
from tests.support.faulty_storage import FaultyStorage
from tests.support.storages import memory, paths

T = "20240131100000000"


def test_every_noted_file_is_found() -> None:
    storage = memory()
    markers = Markers(storage, T)
    markers.create(f"lima/f_0-1-0_{T}.parquet", "CREATE")
    markers.create(f"g_0-1-0_{T}.parquet", "MERGE")
    markers.create(f"year=2024/month=1/.h_{T}.log.1_0-1-0", "APPEND")
    assert markers.files() == [
        f"g_0-1-0_{T}.parquet", f"lima/f_0-1-0_{T}.parquet", f"year=2024/month=1/.h_{T}.log.1_0-1-0",
    ]  # fmt: skip
    assert f".hoodie/.temp/{T}/lima/f_0-1-0_{T}.parquet.marker.CREATE" in paths(storage)


def test_markers_in_text_files_are_read() -> None:
    storage = memory()
    folder = f".hoodie/.temp/{T}"
    storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{folder}/MARKERS0", b"lima/a.parquet.marker.CREATE\nlima/b.parquet.marker.MERGE\n")
    storage.put(f"{folder}/MARKERS17", b"c.parquet.marker.CREATE\nlima/torn.parq")
    assert Markers(storage, T).files() == ["c.parquet", "lima/a.parquet", "lima/b.parquet"]


UNUSUAL = (
    " lima", "lima ", "a\nb", "a\rb", "a\r\nb", "\n", "a\x0bb", "a\x0cb", "\x1c", "a\x1d\x1eb", "a\x85b",
    "a\u2028b", "\u2029", "\u3000", "a\tb\t", "\U0001f600", "%0A", "..a", "a..", "=",
)  # fmt: skip


@pytest.mark.parametrize("partition", UNUSUAL, ids=ascii)
def test_a_marker_names_a_path_exactly(partition: str) -> None:
    storage = memory()
    path = f"{partition}/f_0-1-0_{T}.parquet"
    Markers(storage, T).create(path, "CREATE")
    Markers(storage, T).confirm(path, "CREATE")
    assert Markers(storage, T).files() == [path]


@pytest.mark.parametrize("partition", UNUSUAL, ids=ascii)
def test_only_line_feeds_end_the_markers_of_a_text_file(partition: str) -> None:
    storage = memory()
    made = [f"{partition}/{name}_0-1-0_{T}.parquet" for name in ("f", "g")]
    storage.put(f".hoodie/.temp/{T}/MARKERS0", "".join(f"{path}.marker.CREATE\n" for path in made).encode())
    assert Markers(storage, T).files() == made


@pytest.mark.parametrize("other", ["20240131100000001", "2024013110000000"])
def test_markers_of_other_instants_are_left_alone(other: str) -> None:
    storage = memory()
    Markers(storage, other).create("a.parquet", "CREATE")
    markers = Markers(storage, T)
    markers.create("b.parquet", "CREATE")
    assert markers.files() == ["b.parquet"]
    markers.remove()
    assert markers.files() == []
    assert Markers(storage, other).files() == ["a.parquet"]


def test_a_name_that_holds_the_word_marker_is_read_whole() -> None:
    storage = memory()
    path = f"a.marker.CREATE/f_0-1-0_{T}.parquet"
    Markers(storage, T).create(path, "CREATE")
    assert Markers(storage, T).files() == [path]


def test_a_file_that_comes_after_the_end_of_its_write_goes() -> None:
    storage = memory()
    late, done = f"f_0-1-7_{T}.parquet", f"f_0-1-6_{T}.parquet"
    markers = Markers(storage, T)
    for path in (late, done):
        markers.create(path, "CREATE")
    storage.put(done, b"")
    markers.confirm(done, "CREATE")
    markers.remove()
    storage.put(late, b"")
    with pytest.raises(ConflictError, match="ended"):
        markers.confirm(late, "CREATE")
    assert paths(storage) == [done]


def named(count: int, start: int = 0) -> list[tuple[str, str]]:
    return [(f"p{number}/f_0-1-0_{T}.parquet", "CREATE") for number in range(start, start + count)]


def files_of(marked: Sequence[tuple[str, str]]) -> list[str]:
    return sorted(path for path, _ in marked)


def begin(storage: MemoryStorage, state: MarkerDirState, files: Sequence[tuple[str, str]]) -> None:
    """Announce files, and begin the first of them."""
    Markers(storage, T, state).expect(files)
    Markers(storage, T, state).create(*files[0])


def text_files(storage: MemoryStorage) -> dict[str, list[str]]:
    """Return the markers of each text file as Hudi reads them: if there is none, all others count."""
    folder = f".hoodie/.temp/{T}"
    assert storage.read(f"{folder}/MARKERS.type") == b"TIMELINE_SERVER_BASED"
    texts = {path: storage.read(path).decode() for path in paths(storage) if "/MARKERS" in path}
    return {path: text.splitlines() for path, text in texts.items() if not path.endswith(".type")}


def test_files_that_are_known_ahead_share_a_text_file() -> None:
    storage = memory()
    markers = Markers(storage, T, MarkerDirState())
    markers.expect(named(12))
    assert not paths(storage)  # a write that fails before its first file leaves nothing
    markers.create(*named(12)[3])
    assert markers.files() == files_of(named(12))
    for each in named(12):
        markers.create(*each)
        markers.confirm(*each)
    [lines] = text_files(storage).values()
    assert lines == [f"{path}.marker.{kind}" for path, kind in named(12)]
    assert len(paths(storage)) == 2
    markers.remove()
    assert not paths(storage)


def test_few_files_have_markers_of_their_own() -> None:
    storage = memory()
    markers = Markers(storage, T, MarkerDirState())
    markers.expect(named(TOGETHER_MIN - 1))
    assert not paths(storage)
    markers.create(*named(1)[0])
    assert paths(storage) == [f".hoodie/.temp/{T}/{named(1)[0][0]}.marker.CREATE"]


def test_hudi_finds_all_markers_whatever_form_the_first_ones_had() -> None:
    storage, state = memory(), MarkerDirState()
    Markers(storage, T, state).create(*named(1, 50)[0])
    begin(storage, state, named(9))
    Markers(storage, T, state).create(*named(1, 60)[0])
    begin(storage, state, named(2, 70))
    made = named(9) + named(1, 50) + named(1, 60) + named(2, 70)
    assert Markers(storage, T).files() == files_of(made)
    seen = [line for lines in text_files(storage).values() for line in lines]
    assert sorted(seen) == sorted(f"{path}.marker.{kind}" for path, kind in made)


def test_no_text_file_is_replaced_by_another_process() -> None:
    storage, state = memory(), MarkerDirState()
    begin(storage, state, named(9))
    other = pickle.loads(pickle.dumps(state))
    begin(storage, other, named(9, 20))
    begin(storage, state, named(2, 40))
    assert Markers(storage, T).files() == files_of(named(9) + named(9, 20) + named(2, 40))
    assert len(text_files(storage)) == 3


def test_a_write_of_several_processes_marks_each_file_apart() -> None:
    storage, state = memory(), MarkerDirState()
    other = pickle.loads(pickle.dumps(state))
    for each, start in ((state, 0), (other, 20)):
        begin(storage, each, named(9, start))
    assert all(path.endswith(".marker.CREATE") for path in paths(storage))


def test_paths_that_hudi_would_read_as_two_have_markers_of_their_own() -> None:
    storage = memory()
    markers = Markers(storage, T, MarkerDirState())
    marked = [*named(9), (f"a\nb/f_0-1-0_{T}.parquet", "CREATE")]
    markers.expect(marked)
    for each in marked:
        markers.create(*each)
    assert markers.files() == files_of(marked)
    assert all(path.endswith(".marker.CREATE") for path in paths(storage))


def test_a_file_that_is_begun_after_the_end_of_its_write_is_marked_again() -> None:
    storage = memory()
    markers = Markers(storage, T, MarkerDirState())
    markers.expect(named(9))
    markers.create(*named(9)[4])
    markers.remove()  # by whoever rolled the write back
    late, _ = named(1)[0]
    markers.create(late, "CREATE")
    assert markers.files() == [late]


def test_a_file_marked_ahead_that_comes_after_the_end_of_its_write_goes() -> None:
    storage = memory()
    markers = Markers(storage, T, MarkerDirState())
    markers.expect(named(9))
    late, _ = named(1)[0]
    markers.create(late, "CREATE")
    storage.put(late, b"")
    markers.remove()
    with pytest.raises(ConflictError, match="ended"):
        markers.confirm(late, "CREATE")
    assert not paths(storage)


class EndsWhileRead(FaultyStorage):
    """The write ends between the listing of its markers and their reading."""

    def read(self, path: str) -> bytes:
        Markers(self._inner, T).remove()
        return super().read(path)


def test_markers_that_go_while_they_are_read_are_none() -> None:
    storage = memory()
    begin(storage, MarkerDirState(), named(9))
    assert Markers(EndsWhileRead(storage, 100), T).files() == []


def test_threads_that_mark_at_the_same_time_lose_no_marker() -> None:
    storage, state = memory(), MarkerDirState()

    def mark(number: int) -> None:
        markers, own = Markers(storage, T, state), named(10, 10 * number)
        markers.create(*own[0])
        markers.expect(own[1:])
        for each in own:
            markers.create(*each)

    map_in_threads(mark, range(24), 8)
    seen = {line for lines in text_files(storage).values() for line in lines}
    assert seen == {f"{path}.marker.{kind}" for path, kind in named(240)}
