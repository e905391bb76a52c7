"""Which file group has a key."""

from __future__ import annotations

import pyarrow as pa

from drawstring.metadata.table import group_numbers


def test_groups_are_those_of_java() -> None:
    keys = pa.array(["plain$", r"a\$b$", r"back\\slash$", ""])
    assert group_numbers(keys, 10).tolist() == [8, 9, 0, 0]
    assert group_numbers(keys, 1).tolist() == [0, 0, 0, 0]


def test_the_smallest_hash_has_no_absolute_value_in_java() -> None:
    assert group_numbers(pa.array(["polygenelubricants"]), 10).tolist() == [8]
