"""What a failed request to DynamoDB means, and what to do about it.

no credentials found              InvalidError        give credentials
credentials refused, expired      InvalidError        give others
not allowed                       InvalidError        let them read and write the table
no server at the region's address UnavailableError    check the region, the network
no server at the given address    UnavailableError    check hoodie.write.lock.dynamodb.endpoint_url
no such table any more            UnavailableError    lock again: that creates it
a request that the table refuses  InvalidError        name another table
all else                          UnavailableError    try again
"""

from __future__ import annotations

import os
from typing import Final

from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.config.keys.locks import LockSettings

NO_TABLE: Final = "ResourceNotFoundException"
_PREFIX: Final = "hoodie.write.lock.dynamodb."
_DEFAULT_REGION: Final = "us-east-1"
_NOT_ALLOWED: Final = "AccessDeniedException"
_REFUSED: Final = frozenset(
    {
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
_GIVE: Final = (
    "hoodie.aws.access.key and hoodie.aws.secret.key, or the credentials of the environment or the instance"
)


def region_of(settings: LockSettings) -> str:
    """Return the region of the lock table."""
    return settings.dynamodb_region or os.environ.get("AWS_REGION") or _DEFAULT_REGION


def code_of(error: Exception) -> str:
    """Return AWS's code of an error; empty if it is no answer of AWS's."""
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def failure(error: Exception, method: str, lock: str, settings: LockSettings) -> DrawstringError:
    """Return the error to raise for a failed request.

    Args:
        error: of botocore.
        method: that failed.
        lock: description of the lock.
        settings: which table, where.
    """
    from botocore.exceptions import (
        ConnectionError as Unreached,
    )
    from botocore.exceptions import (
        CredentialRetrievalError,
        HTTPClientError,
        NoCredentialsError,
        ParamValidationError,
        PartialCredentialsError,
    )

    code, of_lock = code_of(error), f"the table lock, {lock} {_place(settings)} ({error})"
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return InvalidError(f"No credentials of AWS were found for {of_lock}. Set {_GIVE}.")
    if code in _REFUSED:
        return InvalidError(
            f"AWS refused the credentials for {of_lock}: unknown, wrong or expired. Correct {_GIVE}."
        )
    if code == _NOT_ALLOWED:
        return InvalidError(
            f"The credentials may not call {method} for {of_lock}. Let them get, put, update and delete items"
            " of the table, and describe and create it, or use others."
        )
    if isinstance(error, Unreached | HTTPClientError):
        return UnavailableError(f"DynamoDB cannot be reached for {of_lock}. {_reach(settings)}")
    if code == NO_TABLE:
        return UnavailableError(
            f"There is no DynamoDB table any more for {of_lock}. Try again: who takes the lock creates it."
        )
    if code == "ValidationException" or isinstance(error, ParamValidationError):
        return InvalidError(
            f"DynamoDB refused a request for {of_lock}. Name another table in {_PREFIX}table: one that does"
            " not exist yet, or whose only key is the text `key`."
        )
    return UnavailableError(f"DynamoDB failed for {of_lock}. Try again later.")


def _place(settings: LockSettings) -> str:
    if settings.dynamodb_endpoint:
        return f"at {settings.dynamodb_endpoint}"
    if settings.dynamodb_region:
        source = f"{_PREFIX}region"
    else:
        source = "AWS_REGION" if os.environ.get("AWS_REGION") else "the default, as no option names another"
    return f"in the region {region_of(settings)}, by {source}"


def _reach(settings: LockSettings) -> str:
    if settings.dynamodb_endpoint:
        return f"Check {_PREFIX}endpoint_url, and that its server runs."
    from boto3.session import Session

    region = region_of(settings)
    is_known = region in Session().get_available_regions("dynamodb")
    doubt = "" if is_known else f" boto3 knows no region {region!r}."
    return f"Check {_PREFIX}region (or AWS_REGION) and the network, then try again.{doubt}"
