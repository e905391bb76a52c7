"""What is done to a table of the simulation, and the death of whoever does it.

A step is carried out three times over: once undisturbed on a copy, which says what follows from it; then on a
fresh copy for each number of changes after which its process dies; and at last on the table itself, where
now and then it dies too. After every death readers find the rows of before or of after, and the next writer
carries on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import replace

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.formats.metadata.plans import decode_clustering_plan, is_cancelled_by_writes
from drawstring.model.instant import WRITE_ACTIONS, Action, State
from drawstring.model.table_version import LAYOUT_2
from drawstring.services.rollback import instants_to_roll_back
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.claims import Claim
from drawstring.timeline.timeline import parse_instant
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.methods import method
from tests.support.simulation.world import CITIES, KEPT, Step, World, place
from tests.support.storages import WatchedPuts
from tests.support.tables import store_of

HOUR_MS = 3_600_000
CHANGES_MAX = 400
KEYS = 12
TIMELINES = (".hoodie", ".hoodie/timeline")
MERGING = {"drawstring.append.merge.min.files": "2"}
MERGES = frozenset({Action.CLUSTERING, Action.REPLACE_COMMIT})
"""As the merge of what appends left is called, in one version or another."""


def take(world: World, step: Step, storage: Storage | None = None) -> None:
    """Carry a step out on the table and in the model."""
    world.time += 10
    table, rows = world.table(storage), dict(world.rows)
    clustering = _keeps_writers_away(table)
    try:
        STEPS[step.name](world, table, step)
    except ConflictError:
        # What is to be clustered takes no changes until it is.
        world.rows = rows
        if not clustering:
            raise
    finally:
        world.now_ms += HOUR_MS


def _keeps_writers_away(table: Table) -> bool:
    """Tell whether a clustering is pending that somebody asked for."""
    pending = table.timeline.pending_of(Action.CLUSTERING, Action.REPLACE_COMMIT)
    store = store_of(table)
    return any(
        each.action is Action.REPLACE_COMMIT
        or not is_cancelled_by_writes(decode_clustering_plan(store.read_requested(each)))
        for each in pending
    )


class DiesBefore(WatchedPuts):
    """Dies at the first change that brings an instant to a state, or decides that it comes there.

    Args:
        inner: the storage that does the work.
        actions: of the instant, as it is called in that state.
        state: what it does not come to.
    """

    def __init__(self, inner: Storage, actions: Container[Action], state: State) -> None:
        super().__init__(inner, CHANGES_MAX)
        self._actions, self._state, self._is_dead = actions, state, False

    def _look(self, path: str, data: bytes) -> None:
        folder, _, name = path.rpartition("/")
        if folder == LOCK_FOLDER:
            name = Claim.decode(data).file_name
        instant = parse_instant(name, LAYOUT_2) if folder in (*TIMELINES, LOCK_FOLDER) else None
        if instant and instant.action in self._actions and instant.state is self._state:
            self._is_dead = True

    def before_change(self, path: str) -> None:
        if self._is_dead:
            self.die(path)
        super().before_change(path)


def _insert(world: World, table: Table, step: Step) -> None:
    new = [key for key in step.keys if place(key) not in world.rows]
    if new:
        world.write(table, "insert", tuple(new))


def _append(world: World, table: Table, step: Step) -> None:
    """Append keys that are not there: of those asked for, and of others that stand for them."""
    if world.kind.is_hashed:
        return
    alike = (range(key, 8 * KEYS, KEYS) for key in step.keys)
    new = (next((each for each in keys if place(each) not in world.rows), None) for keys in alike)
    keys = tuple(key for key in new if key is not None)
    if keys:
        world.write(table, "append", keys, **MERGING)


def _leave_merge(world: World, table: Table, step: Step) -> None:
    """Append, and let the process die that merges then: before it began, or when all is written."""
    state = State.INFLIGHT if step.keys[0] % 2 else State.COMPLETED
    _append(world, _dying(table, DiesBefore(context_of(table).storage, MERGES, state)), step)


def _die(world: World, table: Table, step: Step) -> None:
    """Begin a write whose process dies when all is written."""
    storage = DiesBefore(context_of(table).storage, WRITE_ACTIONS, State.COMPLETED)
    with suppress(InjectedFault):
        world.write(_dying(table, storage), "upsert", step.keys)
        raise AssertionError(f"{step} lives on")


def _dying(table: Table, storage: Storage) -> Table:
    return Table(replace(context_of(table), storage=storage))


def _delete(world: World, table: Table, step: Step) -> None:
    world.write(table, "delete", step.keys)


def _upsert(world: World, table: Table, step: Step) -> None:
    world.write(table, "upsert", step.keys)


def _overwrite(world: World, table: Table, step: Step) -> None:
    cities = {CITIES[key % 3] for key in step.keys}
    for at in [at for at in world.rows if at[0] in cities]:
        del world.rows[at]
    world.write(table, "insert_overwrite", step.keys)


def _drop(world: World, table: Table, step: Step) -> None:
    if not any(at[0] == step.city for at in world.rows):
        return
    result = table.delete_partition(step.city, options=dict(world.kind.options))
    for at in [at for at in world.rows if at[0] == step.city]:
        del world.rows[at]
    world.note(result)


def _update(world: World, table: Table, step: Step) -> None:
    ids = ", ".join(f"'k{key}'" for key in step.keys)
    where, change = f"id in ({ids})", {"value": "value + 1", "ts": str(world.time)}
    result = table.update(where, change, options=dict(world.kind.options))
    for key in step.keys:
        at = place(key)
        if at in world.rows:
            world.rows[at] += 1
    world.note(result)


def _service(name: str) -> Callable[[World, Table, Step], None]:
    def run(world: World, table: Table, step: Step) -> None:
        method(table, name)(options=dict(world.kind.options))

    return run


def _savepoint(world: World, table: Table, step: Step) -> None:
    newest = table.timeline.latest_write()
    moment = world.moments[-1] if world.moments else None
    if world.saved is None and newest and moment and moment.instant == newest.requested:
        table.savepoints.create(options=dict(world.kind.options))
        world.saved = moment


def _delete_savepoint(world: World, table: Table, step: Step) -> None:
    if world.saved is not None:
        table.savepoints.delete(world.saved.instant, options=dict(world.kind.options))
        world.saved = None


def _restore(world: World, table: Table, step: Step) -> None:
    if world.saved is None:
        return
    kept = table.timeline.writes()[-KEPT:]
    world.cleaned_before = max(world.cleaned_before, kept[0].requested)
    table.savepoints.restore(world.saved.instant, options=dict(world.kind.options))
    world.rows = dict(world.saved.rows)
    world.moments = [each for each in world.moments if each.instant <= world.saved.instant]


def _compact(world: World, table: Table, step: Step) -> None:
    if world.kind.is_mor:
        world.note(table.services.compact(options=dict(world.kind.options)))


def _plan_compaction(world: World, table: Table, step: Step) -> None:
    if world.kind.is_mor:
        table.services.schedule_compaction(options=dict(world.kind.options))


def _cluster(world: World, table: Table, step: Step) -> None:
    if not world.kind.is_hashed:
        world.note(table.services.cluster(options=dict(world.kind.options)))


def _plan_clustering(world: World, table: Table, step: Step) -> None:
    if not world.kind.is_hashed:
        table.services.schedule_clustering(options=dict(world.kind.options))


def _rollback(world: World, table: Table, step: Step) -> None:
    """Take one of the pending actions back by name."""
    pending = instants_to_roll_back(table.timeline)
    if not pending:
        return
    target = pending[step.keys[0] % len(pending)]
    try:
        table.services.rollback(target.requested, options=dict(world.kind.options))
    except ConflictError:
        # In version 6 others may have written on top of a compaction.
        if world.kind.version != 6 or target.action is not Action.COMPACTION:
            raise
        return
    assert target.requested not in {each.requested for each in table.timeline.pending()}


def _move_column(world: World, table: Table, step: Step) -> None:
    """Give a column another place among the columns, by schema on read."""
    is_first = table.schema.names[0] == "value"
    change = {"after": "ts"} if is_first else {"first": True}
    world.note(table.columns.move("value", **change, options=dict(world.kind.options)))


WRITES: dict[str, Callable[[World, Table, Step], None]] = {
    "insert": _insert,
    "append": _append,
    "leave_merge": _leave_merge,
    "die": _die,
    "upsert": _upsert,
    "delete": _delete,
    "insert_overwrite": _overwrite,
    "delete_partition": _drop,
    "update": _update,
}
SERVICES: dict[str, Callable[[World, Table, Step], None]] = {
    "plan_compaction": _plan_compaction,
    "compact": _compact,
    "plan_clustering": _plan_clustering,
    "cluster": _cluster,
    "clean": _service("clean"),
    "archive": _service("archive"),
    "savepoint": _savepoint,
    "delete_savepoint": _delete_savepoint,
    "restore": _restore,
    "rollback": _rollback,
    "move_column": _move_column,
}
STEPS = WRITES | SERVICES


SCENES = (
    *((name,) for name in (*STEPS, "upsert", "upsert", "upsert", "delete")),
    ("append", "append", "leave_merge"),
    ("append", "leave_merge", "leave_merge", "rollback"),
    ("plan_clustering", "die", "rollback", "rollback"),
    ("plan_compaction", "rollback"),
    ("die", "rollback"),
)
"""What a random life is made of: most steps alone, others when there is something for them to do."""


def random_steps(seed: int, count: int) -> list[Step]:
    """Return steps drawn by a seed; more than half of them write."""
    draw = random.Random(seed)
    steps: list[Step] = []
    while len(steps) < count:
        keys = tuple(sorted(draw.sample(range(KEYS), draw.randint(1, 5))))
        city = draw.choice(CITIES)
        steps += (Step(name, keys, city) for name in draw.choice(SCENES))
    return steps[:count]


def die_everywhere(
    world: World,
    step: Step,
    check: Callable[[World, World, str], None],
    numbers: Iterable[int] = range(CHANGES_MAX),
) -> None:
    """Let the process of a step die after numbers of changes, each on a copy of its own.

    Args:
        world: before the step; left as it is.
        step: what dies.
        check: told of the copy after each death, of one that lives on, and where that was.
        numbers: of changes, rising; by default every number.
    """
    before, after = dict(world.rows), world.copy()
    take(after, step)
    for changes in numbers:
        copy = world.copy()
        faulty = FaultyStorage(copy.storage, changes)
        with suppress(DrawstringError):
            take(copy, step, faulty)
        copy.now_ms, copy.time = after.now_ms, after.time
        copy.moments = list(world.moments)
        where = f"{world.kind}: {step} died after {changes} changes"
        copy.settle()
        # A restore takes one write back after the other, the newest first.
        between = [each.rows for each in world.moments] if step.name == "restore" else []
        assert copy.rows in (before, after.rows, *between), where
        check(copy, after, where)
        if faulty.changes < changes:
            return
    raise AssertionError(f"{step} still makes changes after {CHANGES_MAX}")
