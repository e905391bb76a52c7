"""Locks as the options of a write name them."""

from __future__ import annotations

from drawstring.base.clock import Clock, SystemClock, SystemIds
from drawstring.config.keys.concurrency import LockSettings
from drawstring.config.options.write_options import WriteOptions
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.table_lock import Lock, provider_lock


def settings_of(provider: str, **more: object) -> LockSettings:
    named = {"provider": provider, **more}
    return WriteOptions.parse({f"hoodie.write.lock.{key}": str(named[key]) for key in named}).locking


def provided(storage: Storage, settings: LockSettings, clock: Clock | None = None) -> Lock:
    lock = provider_lock(storage, clock or SystemClock(), SystemIds(), settings)
    assert lock is not None
    return lock
