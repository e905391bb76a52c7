"""One referee process for all tests of a worker; without what it needs the tests are skipped, visibly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts import jdk
from tests.support.referee import NEWEST_JDK, PYTHON, Referee, bundle, lance_jars

OPTIONS = {"hoodie.metadata.enable": os.environ.get("HUDI_METADATA", "false")}
"""A metadata table takes Hudi more time than the rest of a write: the short run has it where it is tested."""


@pytest.fixture(scope="session")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with _started(tmp_path_factory.mktemp("referee") / "log") as process:
        yield process


@pytest.fixture(scope="module")
def lance_referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    """A process of its own with the jars of Lance, which other tests do without."""
    with _started(tmp_path_factory.mktemp("referee") / "log", with_lance=True) as process:
        yield process


@contextmanager
def _started(log: Path, *, with_lance: bool = False) -> Iterator[Referee]:
    home = jdk.find(newest=NEWEST_JDK)
    if home is None:
        pytest.skip(jdk.advice(newest=NEWEST_JDK))
    if not PYTHON.exists():
        pytest.skip("no .venv-referee: run `make interop`, which makes it")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", home)
        jars = f"{bundle()},{lance_jars()}" if with_lance else bundle()
        process = Referee(str(PYTHON), jars, log, OPTIONS)
        yield process
        process.close()


@pytest.fixture(autouse=True)
def _waits_are_short() -> None:
    """Bound no waits: who writes beside Hudi waits as long as Hudi's writes take."""
