"""Options that become extra metadata of the commit."""

from __future__ import annotations

import pytest

from drawstring.base.errors import InvalidError
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from tests.support.rows import rides
from tests.support.tables import create

JOB = {"hoodie.datasource.write.commitmeta.key.prefix": "job_", "job_name": "nightly"}


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite", "delete_partition", "update"])
def test_a_commit_has_the_options_with_the_prefix(operation: str) -> None:
    table = create()
    table.insert(rides(("a", "rome", 1, 1.0)))
    if operation == "delete_partition":
        table.delete_partition("rome", options=JOB)
    elif operation == "update":
        table.update("id = 'a'", {"fare": "2.0"}, options=JOB)
    else:
        getattr(table, operation)(rides(("a", "rome", 2, 2.0)), options=JOB)
    store = TimelineStore(context_of(table).storage, table.config, context_of(table).clock)
    first, second = (store.commit_metadata(each).extra.get("job_name") for each in store.load().writes())
    assert (first, second) == (None, "nightly")


@pytest.mark.parametrize(
    ("prefix", "name"), [("latest_", "latest_schema"), ("_", "_hudi_streaming_sink_checkpoint")]
)
def test_entries_that_commits_have_already_are_refused(prefix: str, name: str) -> None:
    table = create()
    options = {"hoodie.datasource.write.commitmeta.key.prefix": prefix, name: "boom"}
    with pytest.raises(InvalidError, match=f"{name} is an entry that commits have already"):
        table.upsert(rides(("a", "rome", 1, 1.0)), options=options)
    assert table.inspect.instants() == ()
