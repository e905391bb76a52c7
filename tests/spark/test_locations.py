"""Which settings of a Spark session, and which options of a read or write, reach the store of a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from drawstring.spark.storage_options import storage_options

SETTINGS = {
    "spark.hadoop.fs.s3a.access.key": "of s3",
    "spark.hadoop.fs.s3a.endpoint": "",
    "spark.hadoop.fs.s3a.fast.upload": "true",
    "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/of/gcs.json",
    "spark.hadoop.fs.azure.account.auth.type": "OAuth",
    "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
}
AZURE = {
    f"fs.azure.account.{name}.lake.dfs.core.windows.net": "of azure"
    for name in ("key", "oauth2.client.id", "oauth2.client.endpoint")
}
SETTINGS |= {f"spark.hadoop.{key}": value for key, value in AZURE.items()}
OPTIONS = {
    "aws_region": "r",
    "google_bearer_token": "t",
    "azure_sas_token": "s",
    "hoodie.table.name": "rides",
}


@pytest.fixture
def session() -> Any:
    """A session that has nothing but settings."""
    return SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: list(SETTINGS.items())))
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/rides", {}),
        ("s3a://lake/rides", {"fs.s3a.access.key": "of s3", "aws_region": "r"}),
        ("abfss://c@lake.dfs.core.windows.net/rides", AZURE | {"azure_sas_token": "s"}),
        (
            "gs://lake/rides",
            {"fs.gs.auth.service.account.json.keyfile": "/of/gcs.json", "google_bearer_token": "t"},
        ),
    ],
)
def test_a_store_gets_the_settings_of_its_own(session: Any, path: str, expected: dict[str, str]) -> None:
    assert storage_options(session, path, OPTIONS) == expected
    assert storage_options(session, path, OPTIONS, {"region": "x"}) == expected | {"region": "x"}
