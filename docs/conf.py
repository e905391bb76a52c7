"""Settings of the documentation site; `make docs` builds it."""

from __future__ import annotations

import re
from typing import Any

from sphinx.ext.autodoc.mock import _MockModule

import drawstring
from drawstring.cli.app import build

project = "drawstring"
author = "the drawstring contributors"
copyright = "the drawstring contributors; Apache License 2.0"
version = release = drawstring.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
nitpicky = False
default_role = "code"
smartquotes = False

myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_mock_imports = ["pyspark", "py4j", "pandas"]
_MockModule.__version__ = "4.0.0"  # what drawstring.spark asks of PySpark
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"drawstring {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False

COMMAND_LINE = "reference/command-line"
_CODE_LINE = re.compile(r"[\w.]+\(.*\)$")
_EXAMPLE = re.compile(r"Examples?:$")


def add_commands(app: Any, name: str, source: list[str]) -> None:
    """Write the commands below the page's text, from their help."""
    if name == COMMAND_LINE:
        text: str = build().generate_docs(output_format="markdown")
        source[0] += text[text.index("## drawstring ") :].replace("```console", "```text")


def mark_code(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make literal blocks of the code in a docstring, which stands there as it is typed.

    Code is the content of an `Example` section, a paragraph that is a call, and a paragraph whose second line
    is indented deeper than its first.
    """
    marked: list[str] = []
    for paragraph in _paragraphs(lines):
        first = paragraph[0]
        margin = first[: len(first) - len(first.lstrip())]
        if _EXAMPLE.match(first.strip()) and len(paragraph) > 1:
            marked += [f"{margin}Example::", "", *paragraph[1:], ""]
        elif _is_code(paragraph, margin):
            marked += [f"{margin}::", "", *(f"    {line}" for line in paragraph), ""]
        else:
            marked += [*paragraph, ""]
    lines[:] = marked


def _paragraphs(lines: list[str]) -> list[list[str]]:
    text = "\n".join(lines).strip("\n")
    return [part.splitlines() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _is_code(paragraph: list[str], margin: str) -> bool:
    first = paragraph[0].strip()
    if len(paragraph) == 1:
        return bool(_CODE_LINE.match(first))
    is_deeper = paragraph[1].startswith(f"{margin} ")
    return is_deeper and not first.endswith(":") and not first.startswith(("- ", "* "))


def setup(app: Any) -> None:
    """Connect what is made while the site is built."""
    app.connect("source-read", add_commands)
    # Before napoleon, which takes docstrings apart.
    app.connect("autodoc-process-docstring", mark_code, priority=100)
