"""The results of Apache Hudi's SQL tests as a page.

`python -m tests.conformance.results > docs/reference/conformance.md` writes the page.

`results.tsv` has a line for each case: its result on drawstring, whether Apache Hudi 1.2.0 has the same
outcomes, and the reason where drawstring differs from both. `--update DRAWSTRING.json [HUDI.json]` writes it
anew from the answers of two runs, and keeps the reasons.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.conformance.__main__ import ACCEPTS, DIFFERS, PARTLY, UNTRANSLATED, UPSTREAM, judged, outcomes

RESULTS = Path(__file__).with_name("results.tsv")
SAME, OTHER, NOT_RUN = "same", "other", ""
ORDER = (UPSTREAM, PARTLY, DIFFERS, ACCEPTS, UNTRANSLATED)
REASONS = {
    "spark": "Spark 4 behaves or answers otherwise than the Spark 3.5 of the bundle.",
    "newer": "The test is newer than Apache Hudi 1.2.0, which does as drawstring.",
    "jvm": "The test calls classes of the JVM that the interpreter replaces or lacks.",
    "text": "The test compares a text: a path, the words of an error, or an order that nothing promises.",
    "difference": "Listed in [differences](differences.md).",
    "open": "Not built yet; [features](features.md#not-yet) names it.",
}
"""Why a case differs from upstream: a word in `results.tsv`, maybe with a note behind a colon."""

HEAD = """# Conformance with Apache Hudi's SQL tests

Apache Hudi has tests of its SQL, written in Scala. An interpreter (`tests/conformance`) runs their statements
on drawstring and compares the rows with those that the tests expect. `make conformance SOURCES=FOLDER` runs
them from a checkout of Apache Hudi's sources; `ENGINE=hudi` runs them on Apache Hudi 1.2.0 itself. A script
makes this page from `tests/conformance/results.tsv`.
"""


@dataclass(frozen=True)
class Result:
    """Result of a case.

    Attributes:
        case: class and name of the test.
        result: beside the answers that upstream expects.
        hudi: whether Apache Hudi 1.2.0, run by the same interpreter, has the same outcomes.
        reason: why drawstring differs, empty where it does not, or where Apache Hudi has the same outcomes.
    """

    case: str
    result: str
    hudi: str = NOT_RUN
    reason: str = ""

    @property
    def needs_a_reason(self) -> bool:
        return self.result in (DIFFERS, ACCEPTS) and self.hudi != SAME

    @property
    def kind(self) -> str:
        return self.reason.partition(":")[0]


def results() -> list[Result]:
    with RESULTS.open(newline="") as file:
        return [Result(**row) for row in csv.DictReader(file, delimiter="\t")]


def update(ours: Path, theirs: Path | None) -> None:
    """Write the results of two runs, and keep the reasons of cases that still differ."""
    reasons = {each.case: each.reason for each in results()} if RESULTS.exists() else {}
    left = json.loads(ours.read_text())
    right = json.loads(theirs.read_text()) if theirs else {}
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(Result.__dataclass_fields__), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for case in sorted(left):
            hudi = NOT_RUN
            if case in right:
                hudi = SAME if outcomes(left[case]) == outcomes(right[case]) else OTHER
            found = Result(case, judged(left[case]), hudi)
            reason = reasons.get(case, "") if found.needs_a_reason else ""
            writer.writerow(asdict(found) | {"reason": reason})


def page(found: list[Result]) -> Iterator[str]:
    yield HEAD
    yield "| Result | Cases | of these with the same outcomes on Apache Hudi 1.2.0 |"
    yield "|---|---:|---:|"
    for result in ORDER:
        these = [each for each in found if each.result == result]
        yield f"| {result} | {len(these)} | {sum(each.hudi == SAME for each in these)} |"
    yield f"| all | {len(found)} | {sum(each.hudi == SAME for each in found)} |"
    same = sum(each.hudi == SAME for each in found if each.result in (DIFFERS, ACCEPTS))
    yield (
        f"\nOf the cases that differ, {same} have the same outcomes on Apache Hudi 1.2.0: the tests are newer"
        " than it, or parts of them\nare not translated."
    )
    yield "\n## Why cases differ\n"
    yield "| Reason | Cases |"
    yield "|---|---:|"
    counts = Counter(each.kind for each in found if each.needs_a_reason)
    for kind, text in REASONS.items():
        if counts[kind]:
            yield f"| {text} | {counts[kind]} |"
    yield "\n## By class\n"
    yield f"| Class | {' | '.join(ORDER)} |"
    yield f"|---|{'---:|' * len(ORDER)}"
    by_class: dict[str, Counter[str]] = {}
    for each in found:
        by_class.setdefault(each.case.split(" / ")[0], Counter())[each.result] += 1
    for name, kinds in sorted(by_class.items()):
        yield f"| `{name}` | {' | '.join(str(kinds[result] or '') for result in ORDER)} |"
    yield "\n## Cases that differ\n"
    yield "| Case | Reason |"
    yield "|---|---|"
    for each in found:
        if each.needs_a_reason:
            _, _, note = each.reason.partition(":")
            reason = " ".join(part for part in (REASONS.get(each.kind, ""), note.strip()) if part)
            yield f"| {each.case.replace('|', '/')} | {reason} |"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--update", ours, *theirs]:
            update(Path(ours), Path(theirs[0]) if theirs else None)
        case []:
            print(*page(results()), sep="\n")
        case _:
            sys.exit(__doc__)
