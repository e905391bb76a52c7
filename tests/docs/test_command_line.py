"""The page of the command line lists the commands, with the first sentence of their help."""

from __future__ import annotations

import re
from pathlib import Path

from drawstring.cli.app import GROUPS, TOP

PAGE = Path(__file__).parents[2] / "docs/reference/command-line.md"
ROW = re.compile(r"^\| `drawstring ([\w -]+)` \| (.+?) \|$", re.MULTILINE)


def test_the_page_lists_every_command_with_its_help() -> None:
    commands = {command.__name__: command for command in TOP}
    commands |= {
        f"{name} {word}": each for name, (_, group) in GROUPS.items() for word, each in group.items()
    }
    helped = {
        name: (command.__doc__ or "").strip().splitlines()[0].rstrip(".")
        for name, command in commands.items()
    }
    assert dict(ROW.findall(PAGE.read_text())) == helped
