from __future__ import annotations

import pytest

from drawstring.base.errors import ConflictError
from drawstring.filegroups.write.markers import Markers
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
