"""Messages about lost races: which instant of another writer is in conflict with which one of ours, and why.

The commit T2 of another writer was committed (upsert) while this write, T1, ran, and conflicts with it:
both changed the same file groups: rome/8c1f... Nothing of this write was committed. Write again, ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import LostRaceError
from drawstring.model.instant import Action, Instant
from drawstring.txn.reach import Groups

_SHOWN: Final = 5
_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_AGAIN: Final = f"Write again, or let writes run again more often with {_RETRIES}."
_AFTER_CLUSTERING: Final = (
    "Write again when the clustering is done: wait for the process that runs it, or run it if none does"
    f" (cluster). With {_RETRIES} a write waits for it."
)


@dataclass(frozen=True, slots=True)
class Clash:
    """Why a write is in conflict with another one.

    Attributes:
        why: the reason; with file groups, an introduction to their names.
        groups: the file groups concerned.
    """

    why: str
    groups: Groups = frozenset()

    def __str__(self) -> str:
        return f"{self.why}: {shown(self.groups)}" if self.groups else self.why


def shown(groups: Groups) -> str:
    """Return the names of file groups for a message; of many, the first ones and how many there are more."""
    names = ", ".join("/".join(filter(None, group)) for group in sorted(groups)[:_SHOWN])
    return f"{names} and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else names


def lost_race(own: str, other: Instant, what: str, clash: Clash) -> LostRaceError:
    """Return the error of a write that may not commit because of another instant.

    Args:
        own: requested time of the write.
        other: the instant of another writer.
        what: what became of that instant.
        clash: why that is a conflict.
    """
    return _lost(own, other, what, clash, _AGAIN)


def lost_to_plan(own: str, plan: Instant, groups: Groups) -> LostRaceError:
    """Return the error of a write that may not commit because others are about to rewrite its file groups.

    Args:
        own: requested time of the write.
        plan: a pending compaction or clustering that was planned since the write began.
        groups: the file groups in the plan and the write.
    """
    clash = Clash("it is going to rewrite file groups that this write changed", groups)
    # A compaction does not keep a new attempt from writing, as a clustering does.
    advice = _AFTER_CLUSTERING if plan.action is Action.CLUSTERING else _AGAIN
    return _lost(own, plan, "was planned", clash, advice)


def _lost(own: str, other: Instant, what: str, clash: Clash, advice: str) -> LostRaceError:
    return LostRaceError(
        f"The {other.action} {other.requested} of another writer {what} while this write, {own}, ran, and"
        f" conflicts with it: {clash}. Nothing of this write was committed. {advice}",
        instant=other.requested,
    )
