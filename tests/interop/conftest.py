"""One referee process for all tests of a worker; without what it needs the tests are skipped, visibly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import jdk
from tests.support.referee import Referee

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-referee/bin/python"

NEWEST_JDK = 21
"""Spark 3.5 does not start on later ones."""

OPTIONS = {"hoodie.metadata.enable": os.environ.get("HUDI_METADATA", "false")}
"""A metadata table takes Hudi more time than the rest of a write: the short run has it where it is tested."""


@pytest.fixture(scope="session")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    home = jdk.find(newest=NEWEST_JDK)
    if home is None:
        pytest.skip(jdk.advice(newest=NEWEST_JDK))
    if not PYTHON.exists():
        pytest.skip("no .venv-referee: run `make interop`, which makes it")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", home)
        process = Referee(str(PYTHON), bundle(), tmp_path_factory.mktemp("referee") / "log", OPTIONS)
        yield process
        process.close()


def bundle() -> str:
    """Return the path of Hudi's Spark bundle, fetched when this machine does not have it."""
    found = subprocess.run(
        [str(PYTHON), str(ROOT / "scripts/hudi_bundle.py")],
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    if found.returncode:
        pytest.skip("Apache Hudi's bundle could not be fetched; HUDI_BUNDLE_JAR may name the file")
    return found.stdout.split("\n")[-2]
