"""Decision records have a status and a date, and both sides of an amendment name each other."""

from __future__ import annotations

import re

from tests.docs.decisions import INDEX, Decision, decisions, index

STATUS = re.compile(r"accepted|accepted, amended by .+|superseded by .+")


def named_in(decision: Decision, text: str) -> set[int]:
    found = re.findall(r"\[(\d{4})\]\((\d{4})-[^)]+\)", text)
    assert all(shown == name for shown, name in found), decision.path.name
    return {int(number) for number, _ in found}


def test_every_decision_has_a_status_and_a_date() -> None:
    for each in decisions():
        assert STATUS.fullmatch(each.header.get("Status", "")), each.path.name
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", each.header.get("Date", "")), each.path.name


def test_numbers_are_those_of_the_files_and_none_is_left_out() -> None:
    assert [each.number for each in decisions()] == list(range(1, len(decisions()) + 1))
    assert all(each.path.name.startswith(f"{each.number:04}-") for each in decisions())


def test_who_amends_a_decision_is_told_there_and_here() -> None:
    by_status = {
        (each.number, later) for each in decisions() for later in named_in(each, each.header["Status"])
    }
    by_later = {
        (earlier, each.number)
        for each in decisions()
        for name in ("Amends", "Supersedes")
        for earlier in named_in(each, each.header.get(name, ""))
    }
    assert by_status == by_later


def test_the_index_lists_them() -> None:
    assert INDEX.read_text() == index(), "run: python -m tests.docs.decisions > docs/adr/index.md"
