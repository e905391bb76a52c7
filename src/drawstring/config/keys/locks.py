"""Options of the table lock: which provider it comes from, and the settings of each, under Hudi's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError
from drawstring.config.keys.metadata import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.keys.rolling_metadata import NO_ROLLING, RollingMetadata
from drawstring.config.options.option import Given, Kind, Option, text_of

_PREFIX: Final = "hoodie.write.lock."
LOCK_PROVIDER: Final = _PREFIX + "provider"
_HANDED_ON: Final = (_PREFIX, "hoodie.aws.")
_DESCRIBING: Final = {
    f"{_PREFIX}zookeeper.": "zookeeper",
    f"{_PREFIX}dynamodb.": "dynamodb",
    f"{_PREFIX}filesystem.": "file_system",
    f"{_PREFIX}hivemetastore.": "",
}
"""Prefixes of keys that say where a lock is, and the provider that it is of; empty if only Hudi has it."""
_OF_OWN: Final = (f"{_PREFIX}wait_time_ms", f"{_PREFIX}storage.", f"{_PREFIX}conflict.")
"""Beginnings of keys that apply to the table's own lock as well."""
_RENEWALS_MIN: Final = 10
"""How many renewals fit into the validity of a lease, at least, as in Hudi."""


class ProviderName(StrEnum):
    """The short names of the lock providers that come with drawstring."""

    OWN = "own"
    IN_PROCESS = "in_process"
    FILE_SYSTEM = "file_system"
    STORAGE = "storage"
    ZOOKEEPER = "zookeeper"
    ZOOKEEPER_IMPLICIT = "zookeeper_implicit"
    DYNAMODB = "dynamodb"
    DYNAMODB_IMPLICIT = "dynamodb_implicit"


_HUDI: Final = "org.apache.hudi.client.transaction.lock."
_HUDI_AWS: Final = "org.apache.hudi.aws.transaction.lock."
HUDI_CLASSES: Final[Mapping[str, ProviderName]] = {
    f"{_HUDI}InProcessLockProvider": ProviderName.IN_PROCESS,
    f"{_HUDI}FileSystemBasedLockProvider": ProviderName.FILE_SYSTEM,
    f"{_HUDI}StorageBasedLockProvider": ProviderName.STORAGE,
    f"{_HUDI}ZookeeperBasedLockProvider": ProviderName.ZOOKEEPER,
    f"{_HUDI}ZookeeperBasedImplicitBasePathLockProvider": ProviderName.ZOOKEEPER_IMPLICIT,
    f"{_HUDI_AWS}DynamoDBBasedLockProvider": ProviderName.DYNAMODB,
    f"{_HUDI_AWS}DynamoDBBasedImplicitPartitionKeyLockProvider": ProviderName.DYNAMODB_IMPLICIT,
}
"""Hudi's classes of lock providers, and the provider that takes the same lock."""


@dataclass(frozen=True, slots=True)
class LockSettings:
    """Settings of the table lock; texts are empty where they were not given.

    Attributes:
        provider: short name of a provider, a class name of Hudi's, or the name of an entry point.
        wait_ms: milliseconds to wait for another holder.
        retry_ms, retry_ms_max, retries: pauses between attempts to reach ZooKeeper, and their number.
        lease_seconds, renew_seconds: validity of a lease on storage and seconds between renewals.
        folder: of the lock file of the file-system provider; empty for the table's `.hoodie`.
        expire_minutes: age from which that lock file counts as left by a dead process; 0 for never.
        zookeeper_url, zookeeper_port: servers, and the port of those that are given without one.
        zookeeper_base_path, zookeeper_lock_key: the parts of the path of the lock.
        zookeeper_session_ms, zookeeper_connection_ms: timeouts.
        application_id: tells others in ZooKeeper who holds the lock.
        dynamodb_table, dynamodb_partition_key: where the lock is.
        dynamodb_region, dynamodb_endpoint: of the service.
        dynamodb_billing_mode, dynamodb_read_capacity, dynamodb_write_capacity, dynamodb_creation_ms: for a
            new lock table, and how long to wait for it.
        given: all options of locks and of access to AWS as given, for a provider of a user's own.
        uses_metadata: whether who holds the lock uses the metadata table, and builds it if there is none;
            None as the table was opened.
        metadata_compaction: when who holds the lock compacts the metadata table.
        rolling: entries that its commits take over from earlier ones.
    """

    provider: str
    wait_ms: int
    retry_ms: int
    retry_ms_max: int
    retries: int
    lease_seconds: int | None
    renew_seconds: int | None
    folder: str
    expire_minutes: int
    zookeeper_url: str
    zookeeper_port: int
    zookeeper_base_path: str
    zookeeper_lock_key: str
    zookeeper_session_ms: int
    zookeeper_connection_ms: int
    application_id: str
    dynamodb_table: str
    dynamodb_partition_key: str
    dynamodb_region: str
    dynamodb_endpoint: str
    dynamodb_billing_mode: str
    dynamodb_read_capacity: int
    dynamodb_write_capacity: int
    dynamodb_creation_ms: int
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    uses_metadata: bool | None = None
    metadata_compaction: MetadataCompaction = DEFAULT_COMPACTION
    rolling: RollingMetadata = NO_ROLLING

    @classmethod
    def take(cls, fields: dict[str, Any], given: Given) -> Self:
        """Return the settings with the given options beside them.

        Args:
            fields: the values of `LOCK_OPTIONS` by field.
            given: options by key, as a user gave them.

        Raises:
            InvalidError: a lease would not be renewed often enough, or a lock is described and not chosen.
        """
        texts = {key.lower(): text_of(value) or "" for key, value in given.items()}
        settings = cls(**fields, given={key: texts[key] for key in texts if key.startswith(_HANDED_ON)})
        _check_described(settings)
        validity, renew = settings.lease_seconds, settings.renew_seconds
        if validity and renew and validity < _RENEWALS_MIN * renew:
            raise InvalidError(
                f"{_PREFIX}storage.validity.timeout.secs is {validity} and"
                f" {_PREFIX}storage.renew.interval.secs {renew}. Give a validity of at least ten times the"
                " interval."
            )
        return settings

    @property
    def known_provider(self) -> ProviderName | None:
        """The provider that comes with drawstring; None for one of a user's own."""
        return _known_provider(self.provider)

    @property
    def lease_ms_and_renewal(self) -> tuple[int, float] | None:
        """Milliseconds that a lease is valid and seconds between renewals; None where neither was given."""
        if self.lease_seconds is None and self.renew_seconds is None:
            return None
        validity = self.lease_seconds or max(10, _RENEWALS_MIN * (self.renew_seconds or 1))
        return validity * 1000, self.renew_seconds or validity / _RENEWALS_MIN

    def own(self) -> LockSettings:
        """Return the same settings for the table's own lock."""
        return replace(self, provider="")

    def require(self, **values: str) -> None:
        """Check the options that the provider cannot do without.

        Args:
            **values: their values by the ends of their keys, with `__` for a dot; empty if not given.

        Raises:
            InvalidError: some were not given; all of them are named.
        """
        missing = [_PREFIX + name.replace("__", ".") for name, value in values.items() if not value]
        if missing:
            raise InvalidError(
                f"{LOCK_PROVIDER}={self.provider} needs {' and '.join(missing)}. Give"
                f" {'it' if len(missing) == 1 else 'them'} as well."
            )


_OF_SIMPLE_NAME: Final = {name.rpartition(".")[2]: provider for name, provider in HUDI_CLASSES.items()}


def _known_provider(text: str) -> ProviderName | None:
    named = text.strip()
    if not named:
        return ProviderName.OWN
    by_class = HUDI_CLASSES.get(named) or _OF_SIMPLE_NAME.get(named.rpartition(".")[2])
    return by_class or next((name for name in ProviderName if name == named.lower()), None)


def _check_described(settings: LockSettings) -> None:
    """Refuse the description of a lock that nothing would take, as Hudi's writers may well take it.

    A provider of a user's own may read what it likes, and who names the table's own lock wants no other.

    Raises:
        InvalidError: an option says where a lock is, and none says to take it.
    """
    chosen = settings.known_provider
    if chosen is None or (settings.provider and chosen is ProviderName.OWN):
        return
    for key in sorted(key for key, text in settings.given.items() if text and text != _DEFAULTS.get(key)):
        for prefix, provider in _DESCRIBING.items():
            if key.startswith(prefix) and not (provider and chosen.startswith(provider)):
                instead = f" with {LOCK_PROVIDER}={settings.provider}" if settings.provider else ""
                advice = (
                    f"Set {LOCK_PROVIDER}={provider}, or drop the option."
                    if provider
                    else "drawstring cannot take it at all: choose another lock for all writers."
                )
                raise InvalidError(
                    f"{key} describes a lock that the write would not take{instead}, so that others would not"
                    f" see it. {advice}"
                )


def is_of_users_provider(key: str, options: Given) -> bool:
    """Return whether a key may be an option of a lock provider of a user's own.

    Args:
        key: in lower case.
        options: all options that were given.
    """
    named = next((text_of(value) for name, value in options.items() if name.lower() == LOCK_PROVIDER), None)
    return key.startswith(_PREFIX) and _known_provider(named or "") is None


def without_provider(options: Given) -> dict[str, object]:
    """Return options that take the table's own lock, whatever lock they named."""
    return {
        key: value
        for key, value in options.items()
        if not key.lower().startswith(_PREFIX) or key.lower().startswith(_OF_OWN)
    }


def _text(key: str, doc: str, field: str, default: str = "", choices: tuple[str, ...] = ()) -> Option:
    return Option(_PREFIX + key, doc, default=default, field=field, choices=choices)


def _number(key: str, doc: str, field: str, default: int | None, minimum: int = 1) -> Option:
    return Option(_PREFIX + key, doc, kind=Kind.NUMBER, default=default, field=field, minimum=minimum)


LOCK_OPTIONS: Final[tuple[Option, ...]] = (
    _text(
        "provider",
        "Where the table lock comes from: a short name"
        f" ({', '.join(f'`{name}`' for name in ProviderName)}), the class name of the same provider in Hudi,"
        " or the name of an entry point of the group `drawstring.lock_providers`. The table's own lock when"
        " not given: a lock of the operating system on local files, a lease on object stores.",
        "provider",
    ),
    _number(
        "wait_time_ms",
        "How long a write waits for the table lock, and beside other writers, before it runs again, for a"
        " pending clustering of its file groups: once, and while a process runs the clustering before each"
        " attempt; milliseconds.",
        "wait_ms",
        60_000,
        0,
    ),
    _number(
        "wait_time_ms_between_retry",
        "First pause between two attempts to reach ZooKeeper, milliseconds; it doubles each time.",
        "retry_ms",
        1000,
    ),
    _number(
        "max_wait_time_ms_between_retry",
        "Longest pause between two attempts to reach ZooKeeper, milliseconds.",
        "retry_ms_max",
        16_000,
    ),
    _number("num_retries", "Further attempts to reach ZooKeeper.", "retries", 15, 0),
    _number(
        "storage.validity.timeout.secs",
        "Seconds that a lease on storage is valid without renewal; 60 when not given (Hudi: 300).",
        "lease_seconds",
        None,
        10,
    ),
    Option(
        _PREFIX + "storage.renew.interval.secs",
        "Seconds between two renewals of a lease on storage; 10 when neither is given (Hudi: 30), else a"
        " tenth of the validity.",
        kind=Kind.NUMBER,
        alternatives=(_PREFIX + "storage.heartbeat.poll.secs",),
        field="renew_seconds",
    ),
    _text(
        "filesystem.path",
        "Folder of the lock file of the file-system provider; the table's `.hoodie` when not given.",
        "folder",
    ),
    _number(
        "filesystem.expire",
        "Minutes after which that lock file counts as left by a dead process; 0 for never.",
        "expire_minutes",
        0,
        0,
    ),
    _text("zookeeper.url", "ZooKeeper servers, as `host:port,host:port`.", "zookeeper_url"),
    _number("zookeeper.port", "Port of servers that are given without one.", "zookeeper_port", 2181),
    _text("zookeeper.base_path", "Path in ZooKeeper above the lock.", "zookeeper_base_path"),
    _text(
        "zookeeper.lock_key",
        "Name of the lock below that path; the table's name when not given.",
        "zookeeper_lock_key",
    ),
    _number(
        "zookeeper.session_timeout_ms",
        "Milliseconds without a sign of life after which ZooKeeper ends a session, and its lock.",
        "zookeeper_session_ms",
        60_000,
    ),
    _number(
        "zookeeper.connection_timeout_ms",
        "How long to wait for a connection to ZooKeeper, milliseconds.",
        "zookeeper_connection_ms",
        15_000,
    ),
    _text("app_id", "What ZooKeeper shows others as the holder of the lock.", "application_id"),
    _text("dynamodb.table", "DynamoDB table of the locks; it is created if need be.", "dynamodb_table"),
    _text(
        "dynamodb.partition_key",
        "Key of the lock in the DynamoDB table; the table's name when not given.",
        "dynamodb_partition_key",
    ),
    _text(
        "dynamodb.region",
        "Region of DynamoDB; the environment variable `AWS_REGION` when not given, else `us-east-1`.",
        "dynamodb_region",
    ),
    _text(
        "dynamodb.endpoint_url",
        "Address of DynamoDB, for servers other than AWS's; https if it has no scheme.",
        "dynamodb_endpoint",
    ),
    _text(
        "dynamodb.billing_mode",
        "How AWS bills a new DynamoDB table.",
        "dynamodb_billing_mode",
        "PAY_PER_REQUEST",
        ("PAY_PER_REQUEST", "PROVISIONED"),
    ),
    _number(
        "dynamodb.read_capacity",
        "Read units of a new table that is billed as `PROVISIONED`.",
        "dynamodb_read_capacity",
        20,
    ),
    _number("dynamodb.write_capacity", "Write units of such a table.", "dynamodb_write_capacity", 10),
    _number(
        "dynamodb.table_creation_timeout",
        "How long to wait for a new DynamoDB table, milliseconds.",
        "dynamodb_creation_ms",
        600_000,
    ),
)
_DEFAULTS: Final = {
    option.key: str(option.default) for option in LOCK_OPTIONS if option.default not in (None, "")
}
"""Texts of the defaults: given without a provider, they describe no lock."""
