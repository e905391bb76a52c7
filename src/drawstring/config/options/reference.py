"""Generator of the options reference page: `python -m drawstring.config.options.reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from drawstring.config.keys.ingest import INGEST_OPTIONS
from drawstring.config.keys.read import READ_OPTIONS, STORAGE_OPTIONS
from drawstring.config.keys.unsupported import CHECKED_OPTIONS
from drawstring.config.keys.without_effect import options_without_effect
from drawstring.config.keys.write import IDENTITY_OPTIONS, WRITE_OPTIONS
from drawstring.config.options.option import NOTHING, Kind, Option, text_of

_HEAD = """# Options

Keys are Hudi's own, so that scripts written for the Hudi bundle need not change them. Each of the options of
Apache Hudi 1.2 has one state: it acts as in Hudi; it is refused unless its value describes what drawstring
does; or it has nothing to act on here, for a reason that this page names.

A key that Hudi does not have either is an error if it is close to a known one, with that as a suggestion;
else it has no effect, and one warning in a process names it. `drawstring.options.unknown=error` refuses all
of them.

A script can pass one set of options to reads and writes: as in Hudi, writes ignore the options of reads and
the other way round, with a log message (level DEBUG). This page is generated:
`python -m drawstring.config.options.reference`.
"""


def reference_page() -> str:
    """Return the page as Markdown."""
    writes = [option for option in WRITE_OPTIONS if option not in IDENTITY_OPTIONS]
    return "\n".join(
        [
            _HEAD,
            "## Properties of a new table\n",
            "An existing table keeps its properties; an option that contradicts them is an error.\n",
            *_table(IDENTITY_OPTIONS),
            "\n## Writes\n",
            *_table(writes),
            "\n## Reads\n",
            *_table(READ_OPTIONS),
            "\n## Storage\n",
            "These apply to all operations on a table. Give them in `storage_options` in Python, as"
            " `--storage-option` on the command line, and as options of reads and writes in Spark.\n",
            *_table(STORAGE_OPTIONS),
            "\n## Ingestion\n",
            "These apply to `drawstring.ingest` and `drawstring ingest` ([guide](guides/ingest.md)).\n",
            *_table(INGEST_OPTIONS),
            "\n## Refused with other values\n",
            "Any other value would change the result in a way that this release does not support.\n",
            "| key | accepted value | meaning |",
            "|---|---|---|",
            *(_checked_row(option) for option in CHECKED_OPTIONS),
            "\n## Nothing to act on\n",
            "These options are accepted; a log message (level INFO) lists those that were given.\n",
            "| key | reason |",
            "|---|---|",
            *(f"| `{key}` | {why} |" for key, why in sorted(options_without_effect().items())),
            "",
        ]
    )


def _table(options: Iterable[Option]) -> list[str]:
    head = ["| key | value | default | meaning |", "|---|---|---|---|"]
    return [*head, *(_row(option) for option in options)]


def _row(option: Option) -> str:
    also = ", ".join(f"`{key}`" for key in option.alternatives)
    doc = option.doc + (f" Also: {also}." if also else "")
    default = text_of(option.default)
    return f"| `{option.key}` | {_values(option)} | {f'`{default}`' if default else ''} | {doc} |"


def _values(option: Option) -> str:
    allowed = [choice for choice in option.choices if not option.only or choice.upper() in option.only]
    if not allowed and option.kind is Kind.NUMBER:
        allowed = list(option.only)
    return ", ".join(f"`{value}`" for value in allowed) or option.kind.value


def _listed(option: Option) -> str:
    """Return the value that changes nothing, or all of them if the others only give a warning."""
    return ", ".join(f"`{value.lower()}`" for value in option.only[: None if option.warning else 1])


def _checked_row(option: Option) -> str:
    accepted = "nothing" if option.only == (NOTHING,) else _listed(option)
    also = "".join(f", `{key}`" for key in option.alternatives)
    return f"| `{option.key}`{also} | {accepted} | {option.doc} |"


if __name__ == "__main__":
    sys.stdout.write(reference_page())
