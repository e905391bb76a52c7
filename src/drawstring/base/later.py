"""Modules that are loaded when something of them is needed first.

Opening a table needs few modules, each verb some more. A process that opens a table and reads it does not
wait for what writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_later(names: dict[str, Any], **targets: str) -> None:
    """Define names of a module that are imported when they are used first.

    A type checker has to see the imports themselves:

        if TYPE_CHECKING:
            from drawstring.query.snapshot import snapshot_scan
        else:
            import_later(globals(), snapshot_scan="drawstring.query.snapshot:snapshot_scan")

    Args:
        names: the module's names.
        targets: by name the full name of a module, or of a module and, after a colon, a function or class.
    """
    for name, target in targets.items():
        names[name] = Later(names, name, target)


class Later:
    """Stands for a module, function or class until it is called or asked for an attribute.

    Args:
        names: where the real thing then takes its place.
        name: its name there.
        target: what to import.
    """

    __slots__ = ("_name", "_names", "_target")

    def __init__(self, names: dict[str, Any], name: str, target: str) -> None:
        self._names = names
        self._name = name
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.load()(*given, **named)

    def load(self) -> Any:
        """Import what is meant."""
        module, _, name = self._target.partition(":")
        found = import_module(module)
        self._names[self._name] = found = getattr(found, name) if name else found
        return found
