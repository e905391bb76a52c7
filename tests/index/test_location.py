"""Locations of records: what their texts mean, and that a file group is told from a new one and a bucket."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from drawstring.index.protocol import UNKNOWN, Location, LocationKind, file_group_locations, is_unknown

FILE_ID = "a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0"


@pytest.mark.parametrize(
    ("location", "text", "is_hashed"),
    [
        (UNKNOWN, None, False),
        (UNKNOWN, None, True),
        (Location.file_group(FILE_ID), FILE_ID, False),
        (Location.new_file_group(0), "+0", False),
        (Location.new_file_group(12), "+12", False),
        (Location.bucket("00000007"), "00000007", True),
        (Location.bucket(FILE_ID[:-2]), FILE_ID[:-2], True),
    ],
)
def test_a_location_is_read_back_from_its_text(location: Location, text: str | None, is_hashed: bool) -> None:
    assert location.encode() == text
    assert Location.decode(text, is_hashed=is_hashed) == location
    assert pickle.loads(pickle.dumps(location)) == location


def test_only_a_new_file_group_is_new() -> None:
    assert Location.new_file_group(1).is_new
    known = (UNKNOWN, Location.file_group(FILE_ID), Location.bucket("00000001"))
    assert not any(location.is_new for location in known)
    assert {location.kind for location in known} == {*LocationKind} - {LocationKind.NEW_FILE_GROUP}


def test_rows_that_come_from_no_file_group_have_an_unknown_location() -> None:
    locations = file_group_locations(pa.array([FILE_ID, None]))
    assert is_unknown(locations).to_pylist() == [False, True]
    assert Location.decode(locations[0].as_py(), is_hashed=False) == Location.file_group(FILE_ID)
