"""Failed requests to DynamoDB: the message tells credentials, region, endpoint and table apart."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
)

from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.plugins.dynamodb_lock import failure

LOCK = "item rides of the DynamoDB table locks"
REGION = "hoodie.write.lock.dynamodb.region"
ENDPOINT = "hoodie.write.lock.dynamodb.endpoint_url"
UNREACHED = EndpointConnectionError(endpoint_url="https://dynamodb.mars-1.amazonaws.com/")


def told(error: Exception, **more: str) -> DrawstringError:
    named = {"provider": "dynamodb", "dynamodb.table": "locks", **more}
    given = {f"hoodie.write.lock.{key}": value for key, value in named.items()}
    return failure(error, "put_item", LOCK, WriteOptions.parse(given).locking)


def answer(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "so"}}, "PutItem")


@pytest.mark.parametrize(
    ("error", "kind", "texts"),
    [
        (NoCredentialsError(), InvalidError, ("No credentials of AWS were found", "hoodie.aws.access.key")),
        (answer("ExpiredTokenException"), InvalidError, ("AWS refused the credentials", "expired")),
        (answer("AccessDeniedException"), InvalidError, ("may not call put_item", "describe and create it")),
        (UNREACHED, UnavailableError, ("cannot be reached", f"Check {REGION}")),
        (ConnectTimeoutError(endpoint_url="x"), UnavailableError, ("cannot be reached", f"Check {REGION}")),
        (answer("ResourceNotFoundException"), UnavailableError, ("There is no DynamoDB table any more",)),
        (answer("ValidationException"), InvalidError, ("Name another table",)),
        (answer("InternalServerError"), UnavailableError, ("DynamoDB failed for", "Try again later")),
    ],
)
def test_what_failed_and_what_to_do_is_told(
    error: Exception, kind: type[DrawstringError], texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    failed = told(error)
    assert type(failed) is kind
    assert all(text in failed.message for text in (*texts, LOCK, "in the region us-east-1, by the default"))


def test_a_region_that_is_none_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = "boto3 knows no region 'mars-1'"
    assert doubt in told(UNREACHED, **{"dynamodb.region": "mars-1"}).message
    monkeypatch.setenv("AWS_REGION", "mars-1")
    message = told(UNREACHED).message
    assert doubt in message and "in the region mars-1, by AWS_REGION" in message
    assert "knows no" not in told(UNREACHED, **{"dynamodb.region": "eu-central-1"}).message


def test_of_a_server_of_one_s_own_the_address_is_told() -> None:
    message = told(UNREACHED, **{"dynamodb.endpoint_url": "http://localhost:1"}).message
    assert "at http://localhost:1" in message and f"Check {ENDPOINT}" in message
    assert "region" not in message
