"""No case of Apache Hudi's SQL tests differs without a reason."""

from __future__ import annotations

from tests.conformance.results import REASONS, page, results
from tests.docs.pages import ROOT


def test_every_case_that_differs_has_a_reason() -> None:
    assert [each.case for each in results() if each.needs_a_reason and each.kind not in REASONS] == []
    assert [each.case for each in results() if each.reason and not each.needs_a_reason] == []


def test_the_page_shows_the_results() -> None:
    shown = (ROOT / "docs/reference/conformance.md").read_text()
    assert shown == "\n".join(page(results())) + "\n", (
        "run: python -m tests.conformance.results > docs/reference/conformance.md"
    )
