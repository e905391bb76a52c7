"""Define the options of concurrency control, of failed writes and of the table lock.

Failed writes: which process rolls them back, and the heartbeats of writers. Table lock: the lock provider,
and the settings of each provider, under Hudi's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError
from drawstring.config.keys.index import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.keys.rolling_metadata import NO_ROLLING, RollingMetadata
from drawstring.config.options.option import Given, Kind, Option, text_of


class ConcurrencyMode(StrEnum):
    """How the writers of a table share it (`WriteConcurrencyMode` in Hudi)."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


_HUDI: Final = "org.apache.hudi.client.transaction."
_PREFER_WRITER: Final = "PreferWriterConflictResolutionStrategy"
_BY_FILE_GROUP: Final = "SimpleConcurrentFileWritesConflictResolutionStrategy"
_BY_BUCKET: Final = "BucketIndexConcurrentFileWritesConflictResolutionStrategy"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Settings of concurrency control.

    Attributes:
        mode: one of `ConcurrencyMode`; None where the options do not say.
        retries_max: how often a write that lost against another writer runs again.
        resolves_schemas: whether a schema that another writer changed meanwhile is a conflict.
        conflict_strategy: Hudi's class that decides on conflicts.
        detects_early: whether a write gives way to live writers before it writes a file.
        prefers_writers: whether clusterings give way to writes; otherwise a write runs again after a plan of
            one.
    """

    mode: str | None
    retries_max: int
    resolves_schemas: bool
    conflict_strategy: str
    detects_early: bool
    prefers_writers: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefers_writers", self.conflict_strategy.endswith(_PREFER_WRITER))


CONCURRENCY_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.write.concurrency.mode",
        "SINGLE_WRITER: a write keeps the table lock from its begin to its commit;"
        " OPTIMISTIC_CONCURRENCY_CONTROL: writers work side by side and hold the lock only to begin and to"
        " commit; a write that conflicts with another one runs again; NON_BLOCKING_CONCURRENCY_CONTROL: the"
        " same, but log files of several writers in one bucket are no conflict (MERGE_ON_READ tables with a"
        " simple bucket index, version 8 or later). By default OPTIMISTIC_CONCURRENCY_CONTROL;"
        " SINGLE_WRITER where hoodie.clean.failed.writes.policy=EAGER is given.",
        choices=tuple(ConcurrencyMode),
        field="mode",
    ),
    Option(
        "hoodie.write.num.retries.on.conflict.failures",
        "How often a write that works beside others runs again after a conflict. The last two attempts (of"
        " two or three, the last) go first: no other writer of drawstring commits in the partitions where"
        " they wrote until they are done.",
        kind=Kind.NUMBER,
        default=3,
        minimum=0,
        field="retries_max",
    ),
    Option(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        "Whether a write that changes the schema of the table conflicts with another change of the schema"
        " that was committed after it began.",
        kind=Kind.FLAG,
        default=True,
        field="resolves_schemas",
    ),
    Option(
        "hoodie.write.lock.conflict.resolution.strategy",
        "Who gives way in a conflict. SimpleConcurrentFileWrites and BucketIndexConcurrentFileWrites mean the"
        " same here: of two writes the one that commits second, and a write gives way to a clustering that"
        " was planned since it began. PreferWriter: that clustering gives way (version 8 or later), and so"
        " does one whose file groups are being written to. Give the same to all writers and services.",
        default=f"{_HUDI}{_BY_FILE_GROUP}",
        choices=tuple(
            f"{package}{name}"
            for name in (_BY_FILE_GROUP, _BY_BUCKET, _PREFER_WRITER)
            for package in (_HUDI, "")
        ),
        field="conflict_strategy",
    ),
    Option(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        "Whether a write looks, before it writes to a file group, at the markers of live writers that were"
        " pending when it began, and gives way to one that has begun a file of this file group: it runs again"
        " when that one is done. Otherwise conflicts show at the commit only.",
        kind=Kind.FLAG,
        default=False,
        field="detects_early",
    ),
)


class FailedWritesPolicy(StrEnum):
    """Which process rolls back failed writes."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """Settings of the rollback of failed writes.

    Attributes:
        policy: one of `FailedWritesPolicy`, None for the default of the concurrency mode.
        interval_ms: milliseconds between two heartbeats of a writer.
        misses: intervals without a heartbeat after which a writer counts as dead.
        expires_clusterings: whether clusterings that nobody works on are rolled back as well.
        clustering_minutes: minutes for which these are left alone.
        spares_writers: whether writers with a live heartbeat are left to go on (several writers); otherwise
            an operation that meets one is refused.
        alive_ms: milliseconds after which a heartbeat expires.
    """

    policy: str | None
    interval_ms: int
    misses: int
    expires_clusterings: bool = False
    clustering_minutes: int = 60
    spares_writers: bool = False
    alive_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alive_ms", self.interval_ms * self.misses)

    def beside_others(self, concurrency: Concurrency) -> tuple[Concurrency, FailedWrites]:
        """Return both settings with their defaults, which depend on each other.

        Raises:
            InvalidError: the policy EAGER, which would roll live writers back, with a mode of several; early
                detection of conflicts in a mode without it.
        """
        is_eager = self.policy == FailedWritesPolicy.EAGER
        mode = concurrency.mode or (
            ConcurrencyMode.SINGLE_WRITER.value if is_eager else ConcurrencyMode.OPTIMISTIC.value
        )
        settled = replace(concurrency, mode=mode)
        if concurrency.detects_early and mode != ConcurrencyMode.OPTIMISTIC:
            raise InvalidError(
                "hoodie.write.concurrency.early.conflict.detection.enable=true does nothing with"
                f" hoodie.write.concurrency.mode={mode}: writes do not give way there. Drop it, or set the"
                f" mode to {ConcurrencyMode.OPTIMISTIC}."
            )
        if mode == ConcurrencyMode.SINGLE_WRITER:
            return settled, replace(self, policy=self.policy or FailedWritesPolicy.EAGER.value)
        if is_eager:
            raise InvalidError(
                f"hoodie.clean.failed.writes.policy=EAGER would roll back the other writers of {mode}. Drop"
                " the option, or set it to LAZY."
            )
        lazy = replace(self, policy=self.policy or FailedWritesPolicy.LAZY.value, spares_writers=True)
        return settled, lazy


FAILED_WRITES_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.failed.writes.policy",
        "Which process rolls back failed writes: EAGER: the next write or table service; LAZY: a clean, once"
        " the heartbeat of the writer has expired, and beside other writers also the next write; NEVER: none,"
        " so that cleaning and archiving stop before a failed write. By default LAZY, with SINGLE_WRITER"
        " EAGER. On local files LAZY does not wait for the heartbeat of a process of drawstring that died.",
        choices=tuple(FailedWritesPolicy),
        alternatives=("hoodie.cleaner.policy.failed.writes",),
        field="policy",
    ),
    Option(
        "hoodie.client.heartbeat.interval_in_ms",
        "Interval between two heartbeats of a writer, milliseconds.",
        kind=Kind.NUMBER,
        default=60_000,
        minimum=1000,
        field="interval_ms",
    ),
    Option(
        "hoodie.client.heartbeat.tolerable.misses",
        "Intervals without a heartbeat after which a writer counts as dead.",
        kind=Kind.NUMBER,
        default=2,
        field="misses",
    ),
    Option(
        "hoodie.clustering.enable.expirations",
        "Whether the rollback of failed writes under the policy LAZY takes clusterings off the timeline that"
        " nobody works on, planned ones as well; otherwise they wait for a process that runs them.",
        kind=Kind.FLAG,
        default=False,
        field="expires_clusterings",
    ),
    Option(
        "hoodie.clustering.expiration.threshold.mins",
        "Age of such a clustering, minutes.",
        kind=Kind.NUMBER,
        default=60,
        minimum=0,
        field="clustering_minutes",
    ),
)

DEFAULT_FAILED_WRITES: Final = FailedWrites(FailedWritesPolicy.EAGER, 60_000, 2)
"""Hudi's default."""


_PREFIX: Final = "hoodie.write.lock."
LOCK_PROVIDER: Final = _PREFIX + "provider"
_PASSED_PREFIXES: Final = (_PREFIX, "hoodie.aws.")
_PROVIDERS_BY_PREFIX: Final = {
    f"{_PREFIX}zookeeper.": "zookeeper",
    f"{_PREFIX}dynamodb.": "dynamodb",
    f"{_PREFIX}filesystem.": "file_system",
    f"{_PREFIX}hivemetastore.": "",
}
"""Prefixes of keys that say where a lock is, and the provider that it is of; empty if only Hudi has it."""
_OWN_PREFIXES: Final = (f"{_PREFIX}wait_time_ms", f"{_PREFIX}storage.", f"{_PREFIX}conflict.")
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


_PROVIDERS: Final = "org.apache.hudi.client.transaction.lock."
_HUDI_AWS: Final = "org.apache.hudi.aws.transaction.lock."
HUDI_CLASSES: Final[Mapping[str, ProviderName]] = {
    f"{_PROVIDERS}InProcessLockProvider": ProviderName.IN_PROCESS,
    f"{_PROVIDERS}FileSystemBasedLockProvider": ProviderName.FILE_SYSTEM,
    f"{_PROVIDERS}StorageBasedLockProvider": ProviderName.STORAGE,
    f"{_PROVIDERS}ZookeeperBasedLockProvider": ProviderName.ZOOKEEPER,
    f"{_PROVIDERS}ZookeeperBasedImplicitBasePathLockProvider": ProviderName.ZOOKEEPER_IMPLICIT,
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
        settings = cls(**fields, given={key: texts[key] for key in texts if key.startswith(_PASSED_PREFIXES)})
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


_PROVIDERS_BY_SIMPLE_NAME: Final = {
    name.rpartition(".")[2]: provider for name, provider in HUDI_CLASSES.items()
}


def _known_provider(text: str) -> ProviderName | None:
    named = text.strip()
    if not named:
        return ProviderName.OWN
    by_class = HUDI_CLASSES.get(named) or _PROVIDERS_BY_SIMPLE_NAME.get(named.rpartition(".")[2])
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
        for prefix, provider in _PROVIDERS_BY_PREFIX.items():
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
        if not key.lower().startswith(_PREFIX) or key.lower().startswith(_OWN_PREFIXES)
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
