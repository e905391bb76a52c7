"""The page of the scripts that run on both lists all of them."""

from __future__ import annotations

from tests.interop.scripts_compared import DIFFERENCES, PAGE, SHORT, page, scripts


def test_the_page_is_generated_from_the_scripts() -> None:
    command = "python -m tests.interop.scripts_compared > docs/reference/scripts.md"
    assert PAGE.read_text() == page(), f"run: {command}"


def test_what_differs_and_what_is_short_are_scripts_that_there_are() -> None:
    names = {each.stem for each in scripts()}
    assert names >= {*SHORT, *(each.script for each in DIFFERENCES)}
