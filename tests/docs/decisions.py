"""The index of decision records, from their headers: `python -m tests.docs.decisions > docs/adr/index.md`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs/adr"
INDEX = FOLDER / "index.md"
_TITLE = re.compile(r"# (\d+)\. (.+)$")
_HEADER = re.compile(r"- (Status|Date): (.+)$")

HEAD = """\
# Decisions

Decisions of architecture that somebody may reopen: their context, the decision, the runner-up and the
consequences. A record describes the decision as it holds today: a change of the decision changes the
record. A record whose decision no longer holds is deleted. Numbers are never reused, so the list has
gaps. Explanations of algorithms are in the docstrings of their modules, measurements in the
[benchmarks](../benchmarks.md).

| Nr. | Decision | Date |
|---:|---|---|
"""
FOOT = """
```{toctree}
:hidden:
:glob:

0*
```
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """A record.

    Attributes:
        path: of its file.
        number: which it is.
        title: the decision.
        header: the lines below the title, by their names.
    """

    path: Path
    number: int
    title: str
    header: dict[str, str]


def decisions() -> list[Decision]:
    """Return all records in their order."""
    return [decision_of(path) for path in sorted(FOLDER.glob("0*.md"))]


def decision_of(path: Path) -> Decision:
    """Return the record in a file."""
    first, empty, *rest = path.read_text().splitlines()
    title = _TITLE.match(first)
    assert title and empty == "", f"{path.name} begins with '# number. title' and an empty line"
    header: dict[str, str] = {}
    for line in rest:
        found = _HEADER.match(line)
        if found is None:
            break
        header[found[1]] = found[2]
    return Decision(path, int(title[1]), title[2], header)


def index() -> str:
    """Return the text of the index."""
    return HEAD + "".join(map(_row, decisions())) + FOOT


def _row(each: Decision) -> str:
    title = f"[{each.title}]({each.path.name})"
    return f"| {each.number} | {title} | {each.header['Date']} |\n"


if __name__ == "__main__":
    sys.stdout.write(index())
