"""A DynamoDB server for tests: moto's, which serves it beside S3; and the options that name it."""

from __future__ import annotations

from typing import Any

import boto3

from drawstring.config.keys.concurrency import LockSettings
from drawstring.config.options.write_options import WriteOptions
from tests.support.s3_server import S3Server


def dynamodb_options(server: S3Server, table: str, **more: object) -> dict[str, str]:
    """Return the options of Hudi's that name a lock in a table of this server."""
    named = {
        "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "hoodie.write.lock.dynamodb.endpoint_url": server.endpoint,
        "hoodie.write.lock.dynamodb.table": table,
        "hoodie.write.lock.dynamodb.partition_key": "rides",
        "hoodie.aws.access.key": "key",
        "hoodie.aws.secret.key": "secret",
    }
    return named | {f"hoodie.write.lock.{name}": str(value) for name, value in more.items()}


def dynamodb_settings(server: S3Server, table: str, **more: object) -> LockSettings:
    return WriteOptions.parse(dynamodb_options(server, table, **more)).locking


def dynamodb_client(server: S3Server) -> Any:
    return boto3.client(
        "dynamodb",
        region_name="us-east-1",
        endpoint_url=server.endpoint,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
