"""For all tests: those that need Spark are left out, visibly, on a machine without a JDK.

Property tests draw the same examples on every run; `--hypothesis-profile=search` looks for new ones.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from scripts import jdk

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("same")

_left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    spark = [item for item in items if item.get_closest_marker("spark")]
    if not spark:
        return
    home = jdk.find()
    if home is not None:
        os.environ["JAVA_HOME"] = home
        return
    items[:] = [item for item in items if not item.get_closest_marker("spark")]
    config.hook.pytest_deselected(items=spark)
    config.stash[_left_out] = len(spark)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.write_line(f"left out {count} tests that need Spark. {jdk.advice()}", yellow=True)
