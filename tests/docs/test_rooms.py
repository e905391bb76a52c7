"""The page of the architecture shows the rooms as they are, and files that exist."""

from __future__ import annotations

import re

from scripts.rooms import ROOT, SOURCE, arrows, drawing, layers

PAGE = ROOT / "docs/architecture.md"
FILES_MAX = 10
"""Files of a journey."""


def section(title: str) -> str:
    """Return the text below a heading, up to the next heading of its level or a higher one."""
    level = len(title) - len(title.lstrip("#"))
    return re.split(rf"^#{{1,{level}}} ", PAGE.read_text().split(f"\n{title}\n")[1], flags=re.MULTILINE)[0]


def test_the_picture_of_the_rooms_is_the_one_of_the_imports() -> None:
    assert (ROOT / "docs/rooms.svg").read_text() == drawing(), "run: make rooms"


def test_imports_that_follow_from_others_have_no_arrow() -> None:
    assert arrows({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == [("a", "b"), ("b", "c")]


def test_the_table_of_rooms_has_each_room_and_the_row_below_it() -> None:
    listed = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", section("## Rooms"), re.MULTILINE)
    below: list[str] = []
    expected = []
    for rooms in layers():
        expected += [(room, below) for room in reversed(rooms)]
        below = rooms
    assert [(room, re.findall(r"`(\w+)`", may)) for room, may in listed] == expected[::-1]


def test_a_journey_has_at_most_ten_files_in_order() -> None:
    journeys = re.split(r"^### .+$", section("## Five journeys"), flags=re.MULTILINE)[1:]
    assert len(journeys) == 5
    for journey in journeys:
        steps = [int(number) for number in re.findall(r"^\| (\d+) \| `", journey, re.MULTILINE)]
        assert {*steps} == {*range(1, FILES_MAX + 1)}, journey


def test_files_that_the_page_names_exist() -> None:
    text = PAGE.read_text()
    named = re.findall(r"`([\w/]+(?:\.py|\.java|/))`", text)
    missing = [name for name in named if not any((root / name).exists() for root in (SOURCE, ROOT))]
    assert missing == []
    assert len(named) > 80
