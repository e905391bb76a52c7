"""Addresses, options and credentials of object stores, all without a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.errors import InvalidError
from drawstring.storage import open_storage
from drawstring.storage.bucket import is_token_refused
from drawstring.storage.gcs import NAMES as GCS
from drawstring.storage.s3 import NAMES as S3
from tests.support.gcs_server import TOKEN, GcsServer


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine of the tests has set does not count."""
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("s3://lake/a/b", "s3a://lake/a/b"),
        ("s3a://lake/a/b/", "s3a://lake/a/b"),
        ("s3n://lake//a//b", "s3a://lake/a/b"),
        ("s3://lake", "s3a://lake"),
        ("gs://lake/a/b/", "gs://lake/a/b"),
        ("gs://lake", "gs://lake"),
    ],
)
def test_spark_opens_files_by_the_scheme_that_hadoop_knows(uri: str, root: str) -> None:
    storage = open_storage(uri)
    assert storage.full_uri("") == root
    assert storage.full_uri("p=1/f") == f"{root}/p=1/f"
    assert storage.local_path("p=1/f") is None


def test_options_of_s3_go_by_the_names_of_other_clients() -> None:
    assert S3.normalised(
        {
            "aws_endpoint": "http://e",
            "AWS_REGION": "r",
            "fs.s3a.access.key": "k",
            "spark.hadoop.fs.s3a.secret.key": "s",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "aws_session_token": "t",
        }
    ) == {
        "endpoint": "http://e",
        "region": "r",
        "access_key_id": "k",
        "secret_access_key": "s",
        "virtual_hosted_style_request": "false",
        "allow_http": "true",
        "session_token": "t",
    }


def test_options_of_gcs_go_by_the_names_of_other_clients() -> None:
    assert GCS.normalised(
        {
            "spark.hadoop.fs.gs.storage.root.url": "http://e",
            "fs.gs.auth.service.account.json.keyfile": "/key.json",
            "fs.gs.project.id": "not needed",
            "gcs.oauth2.token": "t",
            "google_application_credentials": "/adc.json",
        }
    ) == {
        "endpoint": "http://e",
        "service_account": "/key.json",
        "bearer_token": "t",
        "application_credentials": "/adc.json",
    }


@pytest.mark.parametrize(
    ("uri", "options", "text"),
    [
        ("s3://lake/x", {"endpont": "x"}, "Did you mean 'endpoint'"),
        ("s3://lake/x", {"colour": "blue"}, "The options are endpoint"),
        ("s3://lake/x", {"timeout_seconds": "soon"}, "not negative"),
        ("s3://lake/x", {"allow_http": "maybe"}, "true or false"),
        ("gs://lake/x", {"service_acount": "x"}, "Did you mean 'service_account'"),
        ("gs://lake/x", {"service_account": "/not/there.json"}, "/not/there.json.*Correct service_account"),
        ("gs://lake/x", {"service_account_key": "{}"}, "private_key.*Correct service_account"),
        ("gs://lake/x", {"access_key_id": "k"}, "no storage option 'access_key_id'"),
        ("gs:///x", {}, "names no bucket. Write gs://bucket/path"),
    ],
)
def test_an_option_that_makes_no_sense_says_what_would(uri: str, options: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidError, match=text):
        open_storage(uri, options)


def test_the_environment_names_an_emulator_of_gcs(monkeypatch: pytest.MonkeyPatch, gcs: GcsServer) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.endpoint.removeprefix("http://"))
    storage = open_storage("gs://lake/emulated", {"bearer_token": TOKEN})
    storage.put("f", b"data")
    assert storage.read("f") == b"data"
    with pytest.raises(InvalidError, match="refuses access to gs://lake"):
        open_storage("gs://lake/emulated").read("f")


@pytest.mark.parametrize(
    ("uri", "variable", "text"),
    [
        ("s3://lake/x", "AWS_METADATA_ENDPOINT", "no credentials for s3://lake: .* Give access_key_id"),
        ("gs://lake/x", "GCE_METADATA_HOST", "no credentials for gs://lake: .* Give service_account"),
    ],
)
def test_missing_credentials_are_the_users_to_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uri: str, variable: str, text: str
) -> None:
    nobody = "127.0.0.1:9"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(variable, f"http://{nobody}" if variable.startswith("AWS") else nobody)
    with pytest.raises(InvalidError, match=text):
        open_storage(uri, {"retries": "0", "timeout_seconds": "7"}).read("f")


@pytest.mark.parametrize(("status", "is_theirs"), [(400, True), (401, True), (403, True), (500, False)])
def test_a_refused_token_is_told_from_a_server_that_fails(status: int, is_theirs: bool) -> None:
    text = f"Error performing token request: Error performing POST http://e in 1ms - status code: {status}"
    assert is_token_refused(text) is is_theirs
