"""What has to be true of a table of the simulation, whatever died before."""

from __future__ import annotations

from drawstring.model.instant import Action
from tests.support.simulation.steps import take
from tests.support.simulation.world import KEPT, Moment, Step, World

ALLOWED = ("pending", "keys", "temporary")
"""What validate may find at any time: plans that wait, and temporary files that are too young to go."""

MARKERS = "markers"

PROBED = 99
"""The key that the next writer writes, which no step does."""


def check_queries(world: World, where: str) -> None:
    """Compare the snapshot, time travel and an increment with the model."""
    assert world.held() == world.rows, where
    table = world.table()
    kept = {write.requested for write in table.timeline.writes()[-KEPT:]}
    moments = [
        moment
        for moment in world.moments
        if moment.instant in kept and (moment.instant >= world.cleaned_before or moment == world.saved)
    ]
    for moment in moments:
        found = table.scan(["id", "city", "value"], as_of=moment.instant).to_arrow().to_pylist()
        rows = {(row["city"], row["id"]): row["value"] for row in found}
        assert rows == moment.rows, f"{where}: as of {moment.instant}"
    if moments:
        check_increment(world, moments[0], where)


def check_increment(world: World, start: Moment, where: str) -> None:
    """Compare the rows that the commits after one brought, as far as they are still there."""
    found = world.table().incremental(start.completed).to_arrow().to_pylist()
    rows = {(row["city"], row["id"]): row["value"] for row in found}
    changed = {at: value for at, value in world.rows.items() if start.rows.get(at) != value}
    assert changed.items() <= rows.items() <= world.rows.items(), f"{where}: since {start.instant}"


def check_recovery(world: World, finished: World, where: str, allowed: tuple[str, ...] = ALLOWED) -> None:
    """Let the next writer come by: it goes on from what is there and leaves nothing behind.

    Args:
        world: after the death.
        finished: what the step would have led to; the next writer may finish it.
        where: the death was.
        allowed: what validate may find, and whether markers may stay.
    """
    probe = Step("upsert", (PROBED,))
    take(world, probe)
    if world.held() != world.rows:
        world.rows, world.moments = dict(finished.rows), list(finished.moments)
        world.apply(probe.keys)
    assert world.held() == world.rows, f"{where}, and a write after it"
    timeline = world.table().timeline
    pending = [*timeline.pending_writes(), *timeline.pending_of(Action.ROLLBACK, Action.RESTORE)]
    assert pending == [], f"{where}: {pending} are pending still"
    waiting = {each.requested for each in timeline.pending()}
    markers = [status.path for status in world.storage.list_tree(".hoodie/.temp")]
    left = [path for path in markers if path.split("/")[2] not in waiting]
    assert left == [] or MARKERS in allowed, f"{where}: markers stay"
    bad = [found for found in world.table().services.validate().findings if found.check not in allowed]
    assert bad == [], f"{where}: {bad}"
