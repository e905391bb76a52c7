"""For all tests: those that need Spark are left out, visibly, on a machine without a JDK.

Property tests draw the same examples on every run, and few; `--hypothesis-profile=full` draws more of them,
`--hypothesis-profile=search` looks for new ones.

Of a test with several parameters, each combination of which is a table that is written, the short run has as
many combinations as each value needs to be there once; the others are long. Of three table versions and more
it has two, which differ from test to test, and on Spark of the two table types one, for what tells them apart
is done by the same code on both engines.

With `-n` the tests run in several processes, each file in one of them, so that what its tests share is made
once. Those that need Spark share one process, and so its session; likewise those that need servers of object
stores, and those that need a Kafka broker. Groups that take long begin first, so that none of them is left
over at the end; and the process that begins with Spark, whose tests are a long chain of short waits, goes
before the others when all have something to do. A long test is a group of its own.

A test that waits on the machine's clock for long fails: it is to have a clock of its own. Files that tests
write are in memory where there is much of it, and are not flushed, apart from those of tests/storage.
"""

from __future__ import annotations

import gc
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from drawstring.base.clock import SystemClock
from drawstring.testing import with_limits
from scripts import jdk
from tests.support.azure_server import AzureServer, azure_server
from tests.support.combinations import covering
from tests.support.decoded_once import decode_once
from tests.support.files_in_memory import in_memory, use_memory
from tests.support.gcs_server import GcsServer, gcs_server
from tests.support.kafka import Broker, kafka
from tests.support.limits import SetLimits
from tests.support.s3_server import S3Server, s3_server
from tests.support.store_server import StoreServer

settings.register_profile("same", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("same")
use_memory()

WAIT_SECONDS_MAX = 20
"""Far above what a test among others waits for locks, below the minute that a write waits by default."""

SPARK, STORES, TOPICS = "spark", "stores", "topics"
SERVERS = {**dict.fromkeys(("s3", "gcs", "azure", "store"), STORES), "broker": TOPICS}
"""Fixtures that start servers, and the groups of those who need them."""

LONGEST_FIRST = (
    SPARK,
    STORES,
    "tests/write/test_many_writers.py",
    "tests/write/test_bank.py",
    TOPICS,
    "tests/contract/test_contract.py",
    "tests/metadata/test_statistics_kept.py",
    "tests/services/test_hybrid_runs.py",
    "tests/metadata/test_log_compaction.py",
    "tests/services/test_pauses.py",
    "tests/golden/test_golden.py",
    "tests/write/test_foreign_tables.py",
    "tests/write/test_kept_metadata.py",
    "tests/txn/test_zookeeper_lock.py",
    "tests/write/test_processes.py",
    "tests/metadata/test_expression_index_kept.py",
    "tests/write/test_faults.py",
    "tests/services/test_change_version.py",
    "tests/query/test_follow.py",
    "tests/query/test_outrun.py",
    "tests/metadata/test_added_columns.py",
    "tests/base/test_allocator.py",
    "tests/services/test_lives.py",
    "tests/services/test_log_compaction.py",
    "tests/services/test_indexing.py",
    "tests/services/test_archive.py",
    "tests/write/test_known_bugs.py",
    "tests/metadata/test_record_index_kept.py",
    "tests/query/test_nested_skipping.py",
    "tests/services/test_indexes.py",
    "tests/services/test_change_version_faults.py",
    "tests/services/test_dual_write.py",
    "tests/metadata/test_index_crashes.py",
    "tests/services/test_soak.py",
    "tests/index/test_contract.py",
    "tests/services/test_power_cuts.py",
    "tests/query/test_changes.py",
    "tests/bench/test_bench.py",
)
"""Groups by the processor time that they take, as far as it is much."""

OF_TABLES = frozenset(("golden", "index", "lsm", "metadata", "query", "services", "spark", "write"))
"""Folders of tests whose cases write or read tables."""

TABLE_TYPES = frozenset(("COPY_ON_WRITE", "MERGE_ON_READ"))
SHORT_TYPES = frozenset(("cow", "mor"))
VERSIONS = frozenset(("6", "8", "9", "10"))

_LEFT_OUT = "tests that need Spark"
_left_out = pytest.StashKey[int]()

GARBAGE_MIN = 50_000
"""So many new objects more than gone ones are garbage to look for."""

NICENESS = 5
"""How far others step back behind the process with Spark, which gets three times as much as one of them."""

_stepped_back = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from going through ten thousand tests over and over.

    Later on it looks at what is new as rarely as suits processes that hold whole tables in memory.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE_MIN)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _find_java(config, items)
    _leave_combinations_out(items)
    if hasattr(config, "workerinput"):
        groups = {item: _group(item) for item in items}
        for item, group in groups.items():
            if group is not None:
                item.add_marker(pytest.mark.xdist_group(group))
        ranks = {group: rank for rank, group in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda item: ranks.get(groups[item] or "", len(ranks)))


def _find_java(config: pytest.Config, items: list[pytest.Item]) -> None:
    spark = [item for item in items if item.get_closest_marker("spark")]
    if not spark:
        return
    home = jdk.find()
    if home is not None:
        os.environ["JAVA_HOME"] = home
        return
    items[:] = [item for item in items if not item.get_closest_marker("spark")]
    config.hook.pytest_deselected(items=spark)
    config.stash[_left_out] = len(spark)


def _leave_combinations_out(items: list[pytest.Item]) -> None:
    """Mark cases as long that no value of a parameter needs; a test may have marked others."""
    tests: dict[str, list[Any]] = {}
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        if hasattr(item, "callspec") and item.nodeid.split("/")[1] in OF_TABLES and not is_long:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, cases in tests.items():
        for case in set(cases) - _short(test, cases):
            case.add_marker(pytest.mark.long)


def _short(test: str, cases: list[Any]) -> set[Any]:
    apart = _apart(cases)
    left = _left(test, [values for _, values in apart])
    return {case for case, _ in covering(apart, lambda case: set(case[1]) - left)}


def _apart(cases: list[Any]) -> list[tuple[Any, tuple[tuple[int, str], ...]]]:
    """Return cases with their values, first those of which neighbours differ in each value.

    Of versions and table types, for example, 6 and MERGE_ON_READ, 8 and COPY_ON_WRITE, 9 and MERGE_ON_READ.
    """
    named = [(case, tuple(enumerate(_names(case)))) for case in cases]
    numbers: dict[tuple[int, str], int] = {}
    seen = [0] * len(named[0][1])
    for at, name in (each for _, values in named for each in values):
        if (at, name) not in numbers:
            numbers[at, name] = seen[at]
            seen[at] += 1
    return sorted(named, key=lambda each: sum(numbers[value] for value in each[1]) % 2 == 0)


def _left(test: str, cases: list[tuple[tuple[int, str], ...]]) -> set[tuple[int, str]]:
    """Return the table versions of a test less two, and on Spark a table type: they take turns."""
    turn = zlib.crc32(test.encode())
    left: set[tuple[int, str]] = set()
    for at in {number for values in cases for number, _ in values}:
        names = {name for values in cases for number, name in values if number == at}
        if len(names) > 2 and names <= VERSIONS:
            ordered = sorted(names, key=int)
            chosen = {ordered[turn % len(names)], ordered[(turn + len(names) // 2) % len(names)]}
            left |= {(at, name) for name in names - chosen}
        elif (
            test.split("/")[1] == SPARK and len(names) == 2 and (names <= SHORT_TYPES or names <= TABLE_TYPES)
        ):
            left.add((at, sorted(names)[turn % 2]))
    return left


def _names(case: Any) -> Iterator[str]:
    """Yield the names of a case's values: of a table type and a version that come as one, both."""
    for name in case.callspec._idlist:
        table_type, _, version = name.partition("-")
        yield from (table_type, version) if table_type in TABLE_TYPES and version.isdigit() else (name,)


def _group(item: pytest.Item) -> str | None:
    if item.get_closest_marker("spark"):
        return SPARK
    if item.get_closest_marker("long"):
        return None
    needed = [SERVERS[each] for each in getattr(item, "fixturenames", ()) if each in SERVERS]
    return needed[0] if needed else item.location[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Let a process step back, among others, whose first test is not one of Spark."""
    if hasattr(item.config, "workerinput") and _stepped_back not in item.config.stash:
        item.config.stash[_stepped_back] = not item.get_closest_marker("spark")
        os.nice(NICENESS * item.config.stash[_stepped_back])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told[_LEFT_OUT] = session.config.stash.get(_left_out, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what a process left out: they all collect the same tests."""
    told = getattr(node, "workeroutput", {})
    node.config.stash[_left_out] = max(node.config.stash.get(_left_out, 0), told.get(_LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.write_line(f"left out {count} {_LEFT_OUT}. {jdk.advice()}", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def _folders_in_memory_go(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    yield
    folder = tmp_path_factory.getbasetemp()
    if in_memory(folder) and not request.session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def fsync() -> Iterator[Callable[[int], None]]:
    """Flush nothing, for no test outlasts a power cut; yields the function that does.

    What is flushed, and in which order, is for tests/storage and tests/services/test_power_cuts.py.
    """
    flush = os.fsync
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", os.fstat)  # a file that was closed is an error as before
        yield flush


@pytest.fixture(scope="session", autouse=True)
def _lists_are_decoded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        decode_once(patched)
        yield


@pytest.fixture(autouse=True)
def _waits_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, waited = SystemClock.sleep, 0.0

    def bounded(clock: SystemClock, seconds: float) -> None:
        nonlocal waited
        waited += seconds
        if waited > WAIT_SECONDS_MAX:
            pytest.fail(f"waits for more than {WAIT_SECONDS_MAX} s: see tests.support.interrupted.in_no_time")
        sleep(clock, seconds)

    monkeypatch.setattr(SystemClock, "sleep", bounded)


@pytest.fixture
def limit() -> Iterator[SetLimits]:
    """Sets limits of this process until the end of the test: `limit(files_open_max=3)`."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(with_limits(**limits))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server with a bucket `lake`."""
    with s3_server("lake") as server:
        yield server


@pytest.fixture(params=["s3", "gcs", "azure"])
def store(request: pytest.FixtureRequest) -> StoreServer:
    """Every object store, with a bucket `lake`."""
    server: StoreServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """A server like Google Cloud Storage with a bucket `lake`."""
    with gcs_server("lake") as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    """Azurite with a container `lake`."""
    with azure_server("lake") as server:
        yield server


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Kafka broker; each test has topics of its own."""
    with kafka() as running:
        yield running
