"""Services take what options say of the table as writes do: what the table itself says, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drawstring.base.errors import InvalidError
from tests.support.rows import rides
from tests.support.tables import MOR, create

SERVICES: dict[str, Callable[..., object]] = {
    "clean": lambda table, options: table.services.clean(options=options),
    "archive": lambda table, options: table.services.archive(options=options),
    "compact": lambda table, options: table.services.compact(options=options),
    "log_compact": lambda table, options: table.services.log_compact(options=options),
    "cluster": lambda table, options: table.services.cluster(options=options),
    "compact_base_files": lambda table, options: table.services.compact_base_files(options=options),
    "plan_expiry": lambda table, options: table.services.plan_expiry(options=options),
    "savepoint": lambda table, options: table.savepoints.create(options=options),
    "upgrade": lambda table, options: table.versions.upgrade(options=options),
    "run_services": lambda table, options: list(table.services.run(options=options)),
    "upsert": lambda table, options: table.upsert(rides(("b", "rome", 1, 1.0)), options=options),
}


@pytest.mark.parametrize("service", SERVICES)
def test_an_option_that_says_otherwise_than_the_table_is_refused(service: str) -> None:
    table = create(table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    instants = table.timeline.instants
    for key, value, message in (
        ("hoodie.table.name", "foo", "say table name foo but the table has rides"),
        ("hoodie.datasource.write.table.type", "COPY_ON_WRITE", "say table type COPY_ON_WRITE"),
        ("hoodie.datasource.write.recordkey.field", "ts", "say record key ts but the table has id"),
    ):
        with pytest.raises(InvalidError, match=message):
            SERVICES[service](table, options={key: value})
    assert table.timeline.instants == instants


def test_options_that_agree_with_the_table_are_taken() -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table = create(table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)), options=buckets)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=buckets)
    assert table.services.compact(options={**buckets, "hoodie.table.name": "rides"})
