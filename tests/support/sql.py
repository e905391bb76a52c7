"""Statements of SQL in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs a statement and returns its rows, sorted."""
