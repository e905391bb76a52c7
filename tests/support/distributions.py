"""Distributions with plug-ins, as `pip install` leaves them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def installed(
    site: Path, monkeypatch: pytest.MonkeyPatch, module: str, code: str, group: str, entries: dict[str, str]
) -> Iterator[None]:
    """Install a distribution of one module in a new folder for a block of code.

    Args:
        site: the folder.
        monkeypatch: makes the folder known to Python.
        module: name of the module.
        code: of the module.
        group: of the entry points.
        entries: names of the entry points, and what of the module they are.
    """
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(code)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{value}" for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop(module, None)
