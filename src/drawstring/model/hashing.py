"""Changes of consistent hashing nodes, as stored in the clustering plan of a bucket resizing."""

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
    """A node that a resizing adds to the hash ring or removes from it.

    Attributes:
        value: the largest hash of the node's range.
        prefix: prefix of the id of the node's file group; None for a removed node.
    """

    value: int
    prefix: str | None

    @property
    def file_id(self) -> str:
        """The file group id of an added node."""
        return file_id_of(str(self.prefix))


def encode_nodes(nodes: Iterable[NodeChange]) -> str:
    """Return the JSON text of nodes, as in the extra metadata of a clustering group."""
    texts = (
        _NODE.format(
            value=node.value,
            prefix=json.dumps(node.prefix),
            tag=DELETE if node.prefix is None else REPLACE,
        )
        for node in nodes
    )
    return f"[ {', '.join(texts)} ]"


def decode_nodes(text: str) -> tuple[NodeChange, ...]:
    """Return the nodes in the JSON text of a clustering group's extra metadata.

    Raises:
        ValueError: the text is not a list of nodes.
    """
    try:
        nodes = json.loads(text)
        return tuple(
            NodeChange(int(node["value"]), None if node["tag"] == DELETE else str(node["fileIdPrefix"]))
            for node in nodes
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a node lacks {error}") from error


def is_resizing(plan: ClusteringPlan) -> bool:
    """Return whether a clustering plan resizes the buckets of a consistent hashing index."""
    return any(NODES_KEY in (group.extra or {}) for group in plan.groups)


def nodes_of(group: ClusteringGroup) -> tuple[NodeChange, ...]:
    """Return the nodes that a clustering group of a resizing changes."""
    return decode_nodes((group.extra or {})[NODES_KEY])
