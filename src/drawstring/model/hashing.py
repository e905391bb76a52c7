"""Nodes of a consistent hashing ring as the plan of a resizing changes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drawstring.model.clustering import ClusteringGroup, ClusteringPlan
from drawstring.model.files import file_id_of

REPLACE: Final = "REPLACE"
DELETE: Final = "DELETE"

PARTITION_KEY: Final = "clustering.group.partition"
NODES_KEY: Final = "clustering.group.child.node"
SEQUENCE_KEY: Final = "clustering.group.sequence.no"

_NODE = """{{
  "value" : {value},
  "fileIdPrefix" : {prefix},
  "tag" : "{tag}"
}}"""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that a resizing puts on a ring or takes from it.

    Attributes:
        value: the largest hash of its stretch.
        prefix: what the id of its file group begins with; None for a node that goes.
    """

    value: int
    prefix: str | None

    @property
    def file_id(self) -> str:
        """The file group of a node that is put on the ring."""
        return file_id_of(str(self.prefix))


def encode_nodes(nodes: Iterable[NodeChange]) -> str:
    """Return nodes as the plan's extra metadata has them."""
    texts = (
        _NODE.format(
            value=each.value,
            prefix=json.dumps(each.prefix),
            tag=DELETE if each.prefix is None else REPLACE,
        )
        for each in nodes
    )
    return f"[ {', '.join(texts)} ]"


def decode_nodes(text: str) -> tuple[NodeChange, ...]:
    """Return the nodes of a group.

    Raises:
        ValueError: the text is no list of nodes.
    """
    try:
        found = json.loads(text)
        return tuple(
            NodeChange(int(each["value"]), None if each["tag"] == DELETE else str(each["fileIdPrefix"]))
            for each in found
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a node lacks {error}") from error


def is_resizing(plan: ClusteringPlan) -> bool:
    """Tell whether a clustering resizes the buckets of a ring."""
    return any(NODES_KEY in (group.extra or {}) for group in plan.groups)


def nodes_of(group: ClusteringGroup) -> tuple[NodeChange, ...]:
    """Return the nodes that a group of a resizing changes."""
    return decode_nodes((group.extra or {})[NODES_KEY])
