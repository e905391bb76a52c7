"""Addresses, options and credentials of object stores, all without a request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.storage import open_storage
from drawstring.storage.azure import azure_settings
from drawstring.storage.object_store import GCS_NAMES as GCS
from drawstring.storage.object_store import S3_NAMES as S3
from drawstring.storage.object_store import is_token_refused
from tests.support.gcs_server import TOKEN, GcsServer
from tests.support.s3_server import S3Server

AZURE = "abfss://c@lake.dfs.core.windows.net/x"
KEY = "a2V5"
NOWHERE = "http://127.0.0.1:9"
TOKEN_PATH = {"AWS_METADATA_ENDPOINT": "", "AZURE_IDENTITY_ENDPOINT": "/metadata/identity/oauth2/token"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine of the tests has set does not count."""
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("s3://lake/a/b", "s3a://lake/a/b"),
        ("s3a://lake/a/b/", "s3a://lake/a/b"),
        ("s3n://lake//a//b", "s3a://lake/a/b"),
        ("s3://lake", "s3a://lake"),
        ("gs://lake/a/b/", "gs://lake/a/b"),
        ("gs://lake", "gs://lake"),
        ("abfss://c@lake.dfs.core.windows.net/a/b/", "abfss://c@lake.dfs.core.windows.net/a/b"),
        ("wasbs://c@lake.blob.core.windows.net", "abfss://c@lake.dfs.core.windows.net"),
        ("abfs://c@lake.dfs.core.chinacloudapi.cn/a", "abfss://c@lake.dfs.core.chinacloudapi.cn/a"),
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
    ("options", "variables"),
    [
        ({"account_name": "lake"}, {}),
        ({"adls.account-name": "lake"}, {}),
        ({"connection_string": f"AccountName=lake;AccountKey={KEY};EndpointSuffix=core.windows.net"}, {}),
        ({}, {"AZURE_STORAGE_ACCOUNT_NAME": "lake"}),
        ({}, {"AZURE_STORAGE_ACCOUNT": "lake", "AZURE_STORAGE_KEY": KEY}),
        ({}, {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=lake;AccountKey={KEY}"}),
    ],
)
def test_the_account_of_a_container_is_looked_for_where_azures_clients_do(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert open_storage("az://c/a", options).full_uri("f") == "abfss://c@lake.dfs.core.windows.net/a/f"


@pytest.mark.parametrize(
    "options",
    [
        {"account_key": KEY},
        {"fs.azure.account.key.lake.dfs.core.windows.net": KEY},
        {
            "spark.hadoop.fs.azure.account.key.lake.blob.core.windows.net": KEY,
            "azure_storage_use_azure_cli": "false",
        },
        {"connection_string": f"AccountName=lake;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:9/lake"},
    ],
)
def test_a_key_of_azure_goes_by_the_names_of_other_clients(options: dict[str, str]) -> None:
    uri = "abfss://c@lake.dfs.core.windows.net/a"
    settings = azure_settings(uri, options | {"fs.azure.account.key.other.dfs.core.windows.net": "not ours"})
    assert (settings["account_name"], settings["account_key"]) == ("lake", KEY)


def test_an_application_of_azure_goes_by_the_keys_of_hadoop() -> None:
    host = "lake.dfs.core.windows.net"
    options = {
        f"fs.azure.account.auth.type.{host}": "OAuth",
        f"fs.azure.account.oauth.provider.type.{host}": "ClientCredsTokenProvider",
        f"fs.azure.account.oauth2.client.id.{host}": "i",
        f"fs.azure.account.oauth2.client.secret.{host}": "s",
        f"fs.azure.account.oauth2.client.endpoint.{host}": "https://login.microsoftonline.com/t/oauth2/token",
    }
    assert azure_settings(f"abfss://c@{host}/a", options) == {
        "account_name": "lake",
        "client_id": "i",
        "client_secret": "s",
        "tenant_id": "t",
        "authority_host": "https://login.microsoftonline.com",
        "credential_type": "client_secret",
    }


@pytest.mark.parametrize("variable", ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CONNECTION_STRING"])
def test_a_signature_counts_before_a_key_of_the_environment_and_stays_secret(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    is_key = variable.endswith("KEY")
    monkeypatch.setenv(variable, KEY if is_key else f"AccountName=lake;AccountKey={KEY}")
    options = {"endpoint": "http://127.0.0.1:9", "sas_token": "?sv=2024&sig=secret%3D", "retries": "0"}
    with pytest.raises(UnavailableError) as caught:
        open_storage("abfss://c@lake.dfs.core.windows.net/a", options).read("f")
    # The client leaves out the whole address where it has a signature.
    assert "REDACTED" in str(caught.value) and "secret" not in str(caught.value)


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
        ("az://c/x", {}, "names no storage account.*account_name"),
        ("abfss://lake.dfs.core.windows.net/x", {}, "names no container. Write abfss://"),
        (AZURE, {"account_name": "pond"}, r"another storage account than the options \(pond\)"),
        (AZURE, {"account_key": "%%"}, "container 'c' cannot be opened.*Correct account_key"),
        (AZURE, {"connection_string": "nonsense"}, "not of the form NAME=VALUE"),
        (AZURE, {"acount_key": "x"}, "Did you mean 'account_key'"),
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
    "variables",
    [
        {"AWS_ENDPOINT_URL": "HERE"},
        {"AWS_ENDPOINT": "HERE"},
        {"AWS_ENDPOINT_URL_S3": "HERE", "AWS_ENDPOINT_URL": NOWHERE},
        {"AWS_ENDPOINT_URL": ""},
    ],
)
def test_the_environment_names_the_server_of_s3(
    monkeypatch: pytest.MonkeyPatch, s3: S3Server, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, s3.endpoint if value == "HERE" else value)
    options = {**s3.options, "retries": "0"}
    if "HERE" in variables.values():
        del options["endpoint"]
    storage = open_storage(s3.address("named"), options)
    storage.put("f", b"data")
    assert storage.read("f") == b"data"


def test_a_server_of_s3_in_the_options_counts_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, s3: S3Server
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    storage = open_storage(s3.address("given"), s3.options)
    storage.put("f", b"data")
    assert storage.read("f") == b"data"


@pytest.mark.parametrize(
    ("uri", "variable", "text"),
    [
        ("s3://lake/x", "AWS_METADATA_ENDPOINT", "no credentials for s3://lake: .* Give access_key_id"),
        ("gs://lake/x", "GCE_METADATA_HOST", "no credentials for gs://lake: .* Give service_account"),
        (AZURE, "AZURE_IDENTITY_ENDPOINT", "no credentials for abfss://c@lake.* Give account_key"),
    ],
)
def test_missing_credentials_are_the_users_to_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uri: str, variable: str, text: str
) -> None:
    nobody = "127.0.0.1:9"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(
        variable, nobody if variable.startswith("GCE") else f"http://{nobody}{TOKEN_PATH[variable]}"
    )
    with pytest.raises(InvalidError, match=text):
        open_storage(uri, {"retries": "0", "timeout_seconds": "7"}).read("f")


@pytest.mark.parametrize(("status", "is_theirs"), [(400, True), (401, True), (403, True), (500, False)])
def test_a_refused_token_is_told_from_a_server_that_fails(status: int, is_theirs: bool) -> None:
    text = f"Error performing token request: Error performing POST http://e in 1ms - status code: {status}"
    assert is_token_refused(text) is is_theirs
