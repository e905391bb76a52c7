"""Code blocks of Markdown pages: which there are, and a run of them.

Fenced blocks in `python` and `bash` are run from top to bottom, in one namespace for each page. Bash blocks
may only call `drawstring`, which runs in this process. A `text` block is not run; after a block that is run
it says what that one prints, where `...` stands for any text. An HTML comment before a block keeps it from
being run, and says why: `<!-- not run: it needs a cluster -->`.

In code and output `/tmp/` stands for a folder of the test, and `http://localhost:9000` for an S3 server
with a bucket `lake`.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawstring.cli.app import run

FOLDER = "/tmp/"
S3 = "http://localhost:9000"
RUN = frozenset({"python", "bash"})
_FENCE = re.compile(r"```(.*)$")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
_SPARK = re.compile(r"\bspark\b|\bdf\.")
_IN_OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: the file that it is in.
        line: of its first line of code, from 1.
        language: what stands after the fence.
        code: its text.
        reason: why it is not run, None where it is.
        output: what it prints, None where the page does not say.
    """

    page: Path
    line: int
    language: str
    code: str
    reason: str | None = None
    output: str | None = None

    @property
    def is_run(self) -> bool:
        return self.language in RUN and self.reason is None

    @property
    def needs_spark(self) -> bool:
        return self.language == "python" and bool(_SPARK.search(self.code))


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    found: list[Block] = []
    is_output = False
    reason = None
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            code = "".join(f"{text}\n" for text in _until_closed(lines))
            block = Block(page, number + 1, fence[1], code, reason)
            if is_output and block.language == "text":
                last = found[-1]
                found[-1] = Block(last.page, last.line, last.language, last.code, last.reason, code)
            found.append(block)
            is_output, reason = block.is_run, None
        elif comment := _NOT_RUN.match(line):
            reason, is_output = comment[1], False
        elif line.strip():
            reason, is_output = None, False
    return found


def _until_closed(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line == "```":
            return
        yield line


def run_block(block: Block, names: dict[str, Any], places: Mapping[str, str]) -> None:
    """Run a block, and compare what it prints with what the page says.

    Args:
        block: one that is run.
        names: what earlier blocks of the page defined; grows.
        places: by address in the page, the one that stands for it here.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "bash":
            for command in _commands(_placed(block.code, places)):
                assert run(command) == 0, f"{block.page}:{block.line}: {shlex.join(command)}"
        else:
            # Lines before it make the line numbers of a traceback those of the page.
            code = "\n" * (block.line - 1) + _placed(block.code, places)
            exec(compile(code, block.page, "exec"), names)
    if block.output is not None:
        wanted = _placed(block.output, places)
        same = doctest.OutputChecker().check_output(wanted, printed.getvalue(), _IN_OUTPUT)
        assert same, f"{block.page}:{block.line} prints\n{printed.getvalue()}"


def _placed(text: str, places: Mapping[str, str]) -> str:
    for address, place in places.items():
        text = text.replace(address, place)
    return text


def _commands(code: str) -> Iterator[list[str]]:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] == "drawstring", f"only drawstring is run, mark this as not run: {line}"
            yield words[1:]
