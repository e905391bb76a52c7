"""Lock a table by an item in DynamoDB, as Hudi's providers with AWS's `dynamodb-lock-client` do.

    key                  S   name of the lock, the only key of the table
    ownerName            S   who holds it
    leaseDuration        S   milliseconds, as text
    recordVersionNumber  S   a UUID, new with each heartbeat
    isReleased           S   "1" once a client released the lock without deleting the item (Hudi's deletes it)
    data                 B   of other users of that client; Hudi has none, and neither has drawstring

The item has no time of expiry. A waiter watches the record version. If the version stays the same for the
holder's lease duration, the holder is dead, and the waiter replaces the item if it still has that version.
So a waiter has to watch for a whole lease; a process remembers what it saw from one wait to the next. The
lease is as long as `hoodie.write.lock.wait_time_ms`, as in Hudi, but at least 20 seconds. The holder writes
three heartbeats a lease.

Failed requests: the error depends on the cause, and says what to do.

    no credentials found               InvalidError        give credentials
    credentials refused, expired       InvalidError        give others
    not allowed                        InvalidError        let them read and write the table
    no server at the region's address  UnavailableError    check the region, the network
    no server at the given address     UnavailableError    check hoodie.write.lock.dynamodb.endpoint_url
    the table was deleted              UnavailableError    lock again: that creates it
    a request that the table refuses   InvalidError        name another table
    all else                           UnavailableError    try again
"""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache
from typing import Any, Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import (
    ConflictError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    not_installed,
)
from drawstring.base.resources import Renewal, this_process
from drawstring.config.keys.concurrency import LOCK_PROVIDER, LockSettings, ProviderName
from drawstring.plugins.path_hash import address_hash
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config

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


LEASE_MS_MIN: Final = 20_000
_WATCH_MS: Final = 5_000
_HEARTBEATS: Final = 3
_KEY: Final = "key"
_OWNER: Final = "ownerName"
_LEASE: Final = "leaseDuration"
_VERSION: Final = "recordVersionNumber"
_RELEASED: Final = "isReleased"
_ABSENT: Final = "attribute_not_exists(#k)"
_SAME: Final = "attribute_exists(#k) AND #v = :v"
_OURS: Final = f"{_SAME} AND #o = :o"
_NAMES: Final = {"#k": _KEY, "#v": _VERSION, "#o": _OWNER, "#l": _LEASE}
_ACCESS: Final = ("hoodie.aws.access.key", "hoodie.aws.secret.key", "hoodie.aws.session.token")
_POLL_SECONDS: Final = 0.5
_REFUSALS: Final = frozenset({"ConditionalCheckFailedException", "ResourceInUseException"})
"""A condition did not hold; a table that is to be created is there."""
_ENDPOINT: Final = re.compile(r"(https?://)?(\[[0-9a-f:]+\]|[\w.-]+)(:\d{1,5})?(/.*)?", re.IGNORECASE)

Item = dict[str, dict[str, str]]

_seen: dict[tuple[str, str], tuple[str, int]] = {}
"""By lock table and key: the record version that this process saw last, and since when, in milliseconds."""


class DynamoDbLock:
    """An item of the lock table.

    Args:
        client: of DynamoDB, from boto3.
        key: of the item.
        clock: for the age of a record version.
        ids: names the owner and the record versions.
        settings: the lock table.
        lease_ms: milliseconds without a heartbeat after which others take the lock.
    """

    def __init__(
        self, client: Any, key: str, clock: Clock, ids: Ids, settings: LockSettings, lease_ms: int
    ) -> None:
        self._client = client
        self._place = (settings.dynamodb_table, key)
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._lease_ms = lease_ms
        self._owner = f"drawstring, {this_process()}, {ids.uuid()}"
        self._mutex = threading.Lock()
        self._record = ""
        self._renewal = Renewal(self._beat, lease_ms / _HEARTBEATS / 1000)

    def try_acquire(self) -> bool:
        """Put the item if there is none, if it was released, or if its holder is dead.

        Raises:
            UnavailableError: DynamoDB does not answer.
        """
        current = self._read()
        if current is not None and not self._is_free(current):
            return False
        record = self._ids.uuid()
        item = {
            _KEY: {"S": self._place[1]},
            _OWNER: {"S": self._owner},
            _LEASE: {"S": str(self._lease_ms)},
            _VERSION: {"S": record},
        }
        expected = None if current is None else _text(current, _VERSION)
        self._record = record  # before it is known: if no answer comes, `release` deletes the item
        if not self._put(item, expected) and self._stored_record() != record:
            self._record = ""
            return False
        _seen.pop(self._place, None)
        self._renewal.start()
        return True

    def is_held(self) -> bool:
        """Return whether any process holds the lock."""
        current = self._read()
        return current is not None and not self._is_free(current)

    def check(self) -> None:
        """Send a heartbeat, which succeeds only for the holder.

        Raises:
            ConflictError: another process took the lock, because this one stalled for too long.
        """
        if not self._beat():
            raise ConflictError(f"The table lock, {self._described}, was lost. Retry the write.")

    def release(self) -> None:
        """Delete the item, if it is ours."""
        self._renewal.stop()
        with self._mutex:
            record, self._record = self._record, ""
            if record:
                self._ask(
                    "delete_item",
                    Key=self._key,
                    ConditionExpression=_OURS,
                    ExpressionAttributeNames={name: _NAMES[name] for name in ("#k", "#v", "#o")},
                    ExpressionAttributeValues={":v": {"S": record}, ":o": {"S": self._owner}},
                )

    def watch_ms(self, wait_ms: int) -> int:
        """Return for how long a waiter goes on: a lease, mostly as long as the wait, shows a dead holder."""
        return _WATCH_MS if wait_ms >= LEASE_MS_MIN else 0

    def holder(self) -> str:
        """Describe the owner, and when it counts as dead."""
        current = self._read()
        if current is None:
            return "an owner that has just released it"
        left_ms = max(0, _lease_ms(current) - self._unchanged_ms(current))
        return (
            f"{_text(current, _OWNER)}, {self._described}, which counts as dead if it gives no sign of life"
            f" for {left_ms // 1000} s more"
        )

    @property
    def _described(self) -> str:
        return f"item {self._place[1]} of the DynamoDB table {self._place[0]}"

    @property
    def _key(self) -> Item:
        return {_KEY: {"S": self._place[1]}}

    def _is_free(self, item: Item) -> bool:
        return _RELEASED in item or self._unchanged_ms(item) > _lease_ms(item)

    def _unchanged_ms(self, item: Item) -> int:
        """Return for how long this process has seen the item as it is."""
        record, now_ms = _text(item, _VERSION), self._clock.now_ms()
        last, since_ms = _seen.get(self._place, ("", now_ms))
        if last != record:
            since_ms = now_ms
            _seen[self._place] = (record, since_ms)
        return now_ms - since_ms

    def _beat(self) -> bool:
        """Put a new record version, and return whether the lock is still ours."""
        with self._mutex:
            if not self._record:
                return False
            record = self._ids.uuid()
            values = {":v": self._record, ":o": self._owner, ":l": str(self._lease_ms), ":n": record}
            is_done = self._ask(
                "update_item",
                Key=self._key,
                UpdateExpression="SET #l = :l, #v = :n",
                ConditionExpression=_OURS,
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={name: {"S": value} for name, value in values.items()},
            )
            if is_done is None and self._stored_record() != record:  # not our own, its answer lost
                self._record = ""
            else:
                self._record = record
            return bool(self._record)

    def _read(self) -> Item | None:
        answer = self._ask("get_item", Key=self._key, ConsistentRead=True)
        item: Item | None = (answer or {}).get("Item")
        return item

    def _stored_record(self) -> str:
        item = self._read()
        return "" if item is None or _text(item, _OWNER) != self._owner else _text(item, _VERSION)

    def _put(self, item: Item, expected: str | None) -> bool:
        """Put the item if there is none, or in place of a record version; return whether it was put."""
        condition: dict[str, Any] = {
            "ConditionExpression": _ABSENT,
            "ExpressionAttributeNames": {"#k": _KEY},
        }
        if expected is not None:
            condition = {
                "ConditionExpression": _SAME,
                "ExpressionAttributeNames": {"#k": _KEY, "#v": _VERSION},
                "ExpressionAttributeValues": {":v": {"S": expected}},
            }
        return self._ask("put_item", Item=item, **condition) is not None

    def _ask(self, method: str, **request: Any) -> dict[str, Any] | None:
        """Send a request, and return its answer; None if its condition did not hold.

        Raises:
            UnavailableError: DynamoDB failed or did not answer.
            InvalidError: credentials are missing or refused, or the table is of another kind.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._client, method)(TableName=self._place[0], **request)
        except (BotoCoreError, ClientError) as error:
            code = code_of(error)
            if code in _REFUSALS:
                return None
            if code == NO_TABLE and method == "describe_table":
                return {}
            if code == NO_TABLE and method == "get_item":
                self._create_table()
                return {}
            raise failure(error, method, self._described, self._settings) from error
        return answer

    def _create_table(self) -> None:
        """Create the lock table, unless another process does, and wait until it can be used."""
        settings = self._settings
        capacity = {
            "ReadCapacityUnits": settings.dynamodb_read_capacity,
            "WriteCapacityUnits": settings.dynamodb_write_capacity,
        }
        is_provisioned = settings.dynamodb_billing_mode == "PROVISIONED"
        self._ask(
            "create_table",
            KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
            BillingMode=settings.dynamodb_billing_mode,
            **({"ProvisionedThroughput": capacity} if is_provisioned else {}),
        )
        deadline_ms = self._clock.now_ms() + settings.dynamodb_creation_ms
        while (self._ask("describe_table") or {}).get("Table", {}).get("TableStatus") != "ACTIVE":
            if self._clock.now_ms() > deadline_ms:
                raise UnavailableError(
                    f"The new DynamoDB table {self._place[0]} is not ready yet. Try again later."
                )
            self._clock.sleep(_POLL_SECONDS)


def dynamodb_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> DynamoDbLock:
    """Return the lock with the key that the options name, or that follows from the table's address.

    Raises:
        InvalidError: an option is missing or names no region or server, or boto3 is not installed.
    """
    settings.require(dynamodb__table=settings.dynamodb_table)
    if settings.known_provider is ProviderName.DYNAMODB_IMPLICIT:
        key = address_hash(storage.spec.uri)
    else:
        key = settings.dynamodb_partition_key or load_config(storage).name
    client = _client(
        settings.provider, region_of(settings), _endpoint(settings), _access(settings), os.getpid()
    )
    return DynamoDbLock(client, key, clock, ids, settings, max(settings.wait_ms, LEASE_MS_MIN))


def _access(settings: LockSettings) -> tuple[str | None, ...]:
    """Return the key, the secret and the token of the options; without them boto3 looks for its own."""
    key, secret, token = (settings.given.get(name) or None for name in _ACCESS)
    if bool(key) != bool(secret) or (token and not key):
        given = next(name for name in reversed(_ACCESS) if settings.given.get(name))
        missing = _ACCESS[1] if key else _ACCESS[0]
        raise InvalidError(f"{given} is given without {missing}. Give both, or neither.")
    return key, secret, token


def _endpoint(settings: LockSettings) -> str:
    """Return the address of the service, empty for AWS's own; without a scheme it is https, as in Hudi."""
    endpoint = settings.dynamodb_endpoint
    match = _ENDPOINT.fullmatch(endpoint)
    if endpoint and not match:
        raise InvalidError(
            f"hoodie.write.lock.dynamodb.endpoint_url={endpoint} is no address. Give it as https://host:port"
            " or http://host:port."
        )
    return endpoint if match is None or match[1] else f"https://{endpoint}"


@lru_cache(maxsize=8)
def _client(provider: str, region: str, endpoint: str, access: tuple[str | None, ...], _process: int) -> Any:
    """Return a client of DynamoDB, one per process."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise not_installed(f"{LOCK_PROVIDER}={provider} needs boto3", "dynamodb") from error
    key, secret, token = access
    limits = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 4})
    try:
        return boto3.client(
            "dynamodb",
            region_name=region,
            endpoint_url=endpoint or None,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=limits,
        )
    except (BotoCoreError, ValueError) as error:
        raise InvalidError(
            f"There is no client of DynamoDB for the region {region!r} ({error}). Check"
            " hoodie.write.lock.dynamodb.region (or AWS_REGION), hoodie.write.lock.dynamodb.endpoint_url and"
            " the settings of AWS in the environment."
        ) from error


def _text(item: Item, name: str) -> str:
    return item.get(name, {}).get("S", "")


def _lease_ms(item: Item) -> int:
    text = _text(item, _LEASE)
    return int(text) if text.isdecimal() else LEASE_MS_MIN
