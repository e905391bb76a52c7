"""A page that names a test as its proof names one that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import PAGES, ROOT

NAMED = re.compile(r"`(test_\w+)(?:\.py)?(?:\[([^\]`]+)\])?`")


def existing_tests() -> dict[str, list[set[str]]]:
    """Return by name of a test, or of a file of tests, the texts of each of its files, as ids of cases."""
    found: dict[str, list[set[str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        texts = {
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        for name in (path.stem, *(node.name for node in nodes if isinstance(node, ast.FunctionDef))):
            found.setdefault(name, []).append(texts)
    return found


def unknown_tests(text: str, tests: dict[str, list[set[str]]]) -> Iterator[str]:
    for name, case in NAMED.findall(text):
        if not any(not case or case in texts for texts in tests.get(name, ())):
            yield f"{name}[{case}]" if case else name


@pytest.fixture(scope="module")
def tests() -> dict[str, list[set[str]]]:
    return existing_tests()


def test_the_tests_that_pages_name_exist(tests: dict[str, list[set[str]]]) -> None:
    faults = {str(page.relative_to(ROOT)): [*unknown_tests(page.read_text(), tests)] for page in PAGES}
    assert {page: names for page, names in faults.items() if names} == {}


def test_a_name_or_a_case_that_is_not_there_is_found(tests: dict[str, list[set[str]]]) -> None:
    named = "`test_named_tests`, `test_both_write_at_the_same_time[cow]`"
    wrong = "`test_side_by_side_by_side`, `test_both_write_at_the_same_time[bull]`"
    assert [*unknown_tests(f"{named}, {wrong}", tests)] == [
        "test_side_by_side_by_side",
        "test_both_write_at_the_same_time[bull]",
    ]
