"""The bucket of a key, as Apache Hudi computes it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.clock import SeededIds
from drawstring.base.errors import InvalidError
from drawstring.index.bucket import BucketIndex, bucket_numbers
from drawstring.index.protocol import Location
from drawstring.model.files import FileSlice, bucket_of

FIELDS = ("a", "b", "c")


def java_hash(text: str) -> int:
    total = 0
    data = text.encode("utf-16-be")
    for at in range(0, len(data), 2):
        total = (31 * total + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    return total


def list_hash(values: list[str | None]) -> int:
    total = 1
    for value in values:
        total = (31 * total + (0 if value is None else java_hash(value))) & 0xFFFFFFFF
    return total


def values_of(key: str, fields: tuple[str, ...]) -> list[str | None]:
    """Read a key from left to right: a pair ends at the last comma before the next colon."""
    if "," not in key or ":" not in key:
        return [key]
    pairs, start, colon = [], 0, key.index(":")
    while colon >= 0:
        following = key.find(":", colon + 1)
        end = len(key) if following < 0 else key.rfind(",", colon + 1, following)
        if end >= 0:
            pairs.append((key[start : key.index(":", start)], key[key.index(":", start) + 1 : end]))
            start = end + 1
        colon = following
    special = {"__null__": None, "__empty__": ""}
    return [special.get(value, value) for name, value in pairs if name in fields] or [key]


def expected(key: str, buckets: int, fields: tuple[str, ...]) -> int:
    return (list_hash(values_of(key, fields)) & 0x7FFFFFFF) % buckets


@pytest.mark.parametrize(
    ("key", "fields", "buckets", "bucket"),
    [
        ("5", ("id",), 4, 0),
        ("5", ("id",), 16, 4),
        ("5", ("id",), 256, 84),
        ("a:5,b:x", ("a", "b"), 16, 4),
        ("a:5,b:x", ("a",), 256, 84),
        ("a:1,b:5", ("b",), 256, 84),
        ("a:5,b:__null__", ("a",), 256, 84),
    ],
)
def test_known_keys_go_to_known_buckets(key: str, fields: tuple[str, ...], buckets: int, bucket: int) -> None:
    assert bucket_numbers(pa.array([key]), buckets, fields).tolist() == [bucket]
    assert expected(key, buckets, fields) == bucket


texts = st.text(alphabet="ab1:,é\U0001f600 ", max_size=5)
values = st.one_of(texts, st.sampled_from(["__null__", "__empty__", ""]))
compound = st.lists(st.tuples(st.sampled_from([*FIELDS, "d"]), values), min_size=1, max_size=4).map(
    lambda pairs: ",".join(f"{name}:{value}" for name, value in pairs)
)


@given(
    st.lists(st.one_of(compound, texts), min_size=1, max_size=8),
    st.sampled_from([1, 4, 16, 256, 7]),
    st.sampled_from([FIELDS, ("a",), ("c", "b"), ("zz",)]),
)
def test_buckets_follow_the_rule_for_any_key(keys: list[str], buckets: int, fields: tuple[str, ...]) -> None:
    found = bucket_numbers(pa.array(keys, pa.string()), buckets, fields).tolist()
    assert found == [expected(key, buckets, fields) for key in keys]


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_regular_compound_keys_are_hashed_as_irregular_ones_are(rows: list[tuple[str, str]]) -> None:
    keys = [f"a:{one},b:{other}" for one, other in rows]
    together = bucket_numbers(pa.array(keys), 64, ("a", "b")).tolist()
    assert together == [int(bucket_numbers(pa.array([key]), 64, ("a", "b"))[0]) for key in keys]


def test_a_file_id_names_its_bucket() -> None:
    index = BucketIndex(16, ("id",))
    locations = index.locations(pa.array(["5", "6"]), pa.array(["", ""]))
    assert locations is not None
    file_id = index.new_file_id(Location.decode(locations[0].as_py(), is_hashed=True), SeededIds(1))
    assert file_id.startswith("00000004-")
    assert (len(file_id), bucket_of(file_id)) == (38, 4)
    assert bucket_of("a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0") is None


def slice_of(file_id: str) -> FileSlice:
    return FileSlice("rome", file_id, "1", None)


def test_a_location_finds_its_slice_or_none() -> None:
    index = BucketIndex(4, ("id",))
    slices = [slice_of("00000001-x"), slice_of("00000003-x")]
    assert index.slice_for(Location.bucket("00000001"), slices) is slices[0]
    assert index.slice_for(Location.bucket("00000003"), slices) is slices[1]
    assert index.slice_for(Location.bucket("00000002"), slices) is None
    assert index.slice_for(Location.bucket("00000002"), []) is None


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("00000004-x", r"not one of 4 buckets.*hoodie\.bucket\.index\.num\.buckets"),
        ("a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0", "has no buckets.*Drop the option hoodie.index.type"),
    ],
)
def test_slices_of_another_index_are_refused(other: str, told: str) -> None:
    with pytest.raises(InvalidError, match=told) as caught:
        BucketIndex(4, ("id",)).slice_for(
            Location.bucket("00000001"), [slice_of("00000001-x"), slice_of(other)]
        )
    assert caught.value.path == "rome"
