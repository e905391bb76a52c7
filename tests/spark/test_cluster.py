"""The Spark engine where executors are other processes, and processes die."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import drawstring
from tests.spark.cluster import ROOT, cluster, environment
from tests.support.tables import store_of

pytestmark = pytest.mark.spark

Told = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Run all jobs on one cluster, with a folder that all its processes see."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "site").mkdir()
    imports = "import tests.support.spark_site.sitecustomize\nfrom tests.spark.dying import install\n"
    (folder / "site" / "sitecustomize.py").write_text(f"{imports}install()\n")
    variables = environment(PYTHONPATH=str(folder / "site"), DRAWSTRING_TEST_DEATHS=str(folder))
    with cluster(folder, variables) as master:
        command = [sys.executable, "-m", "tests.spark.cluster_job", master, str(folder)]
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Told = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_rows_and_items_are_worked_on_by_executors(told: Told) -> None:
    found = told["where"]
    assert found["rows"] == 4000
    assert len(found["pids"]) >= 2
    assert len(found["items"]) >= 2
    assert found["driver"] not in found["pids"] + found["items"]


def test_a_task_that_dies_is_retried_and_counts_once(told: Told) -> None:
    found = told["dies"]
    assert found["died"]
    assert sum(count for _, count in found["results"]) == 4000
    assert len(found["results"]) == 8
    assert len({attempt for attempt, _ in found["results"]}) == 4


@pytest.mark.parametrize("kind", ["worker", "executor"])
def test_an_upsert_survives_the_death_of_a(told: Told, kind: str) -> None:
    found = told[f"upsert-{kind}"]
    assert found["died"]
    expected = [[number, 1 if number < 200 else 2] for number in range(400)]
    assert found["rows"] == expected
    table = drawstring.open(found["path"])
    rows = table.scan(columns=["id", "ts"]).to_arrow().to_pylist()
    assert sorted([row["id"], row["ts"]] for row in rows) == expected
    assert data_files(Path(found["path"])) == files_in_commits(table)
    assert not list(Path(found["path"]).glob(".hoodie/.temp/*"))


def data_files(root: Path) -> set[str]:
    found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    return {
        str(path)
        for path in found
        if path.parts[0] != ".hoodie" and path.name != ".hoodie_partition_metadata"
    }


def files_in_commits(table: drawstring.Table) -> set[str]:
    store = store_of(table)
    return {stat.path for instant in store.load().writes() for stat in store.commit_metadata(instant).stats}
