"""Find plug-ins: parts of drawstring, and of others, that are imported when they are used first.

A plug-in is an entry point. Its group says for what it is asked:

    drawstring.catalogs          catalogs of tables (`services.catalogs.protocol`)
    drawstring.file_formats      formats of base files and native log files (`formats.file_format`)
    drawstring.lock_providers    locks of tables (`txn.locks.table_lock`)
    drawstring.reports           pages and servers of reports (`services.table_report`)
    drawstring.sources           sources of ingestions (`ingestion.source_protocol`)

The plug-ins of drawstring are in the package `drawstring.plugins`, which no other room imports, and are
declared in `pyproject.toml`, as others declare theirs. Installed packages know their entry points. A checkout
that runs without installation, or whose installation is older, takes those of its own `pyproject.toml`.

A look-up is slow, as it asks all installed packages. Nothing does one before it needs a plug-in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.base.lazy import lazy_import

if TYPE_CHECKING:
    import tomllib
    from importlib.metadata import EntryPoint, entry_points
else:  # the latter load the whole package `email`
    lazy_import(
        globals(),
        EntryPoint="importlib.metadata:EntryPoint",
        entry_points="importlib.metadata:entry_points",
        tomllib="tomllib",
    )

_PACKAGE: Final = "drawstring"


def find_plugin(group: str, name: str) -> EntryPoint | None:
    """Return the plug-in with a name, None if there is none; one of drawstring comes before those of others.

    Args:
        group: group of the entry points.
        name: name of the entry point.
    """
    found = [
        *entry_points(group=group, name=name),
        *(each for each in _of_checkout(group) if each.name == name),
    ]
    return min(found, key=is_custom, default=None)


def load_plugin(group: str, name: str, purpose: str) -> Any:
    """Import a plug-in and return what it provides.

    Args:
        group: group of the entry points.
        name: name of the entry point.
        purpose: what it is for, for the error.

    Raises:
        UnsupportedError: there is no such plug-in.
    """
    plugin = find_plugin(group, name)
    if plugin is None:
        raise UnsupportedError(
            f"There is no plug-in for {purpose}: no package has an entry point {str(name)!r} of the group"
            f" {group}. Install drawstring with pip, which notes its entry points."
        )
    return plugin.load()


def plugin_names(group: str) -> set[str]:
    """Return the names of all plug-ins of a group."""
    return {*entry_points(group=group).names, *(each.name for each in _of_checkout(group))}


def is_custom(plugin: EntryPoint) -> bool:
    """Return whether a plug-in is of others than drawstring."""
    return plugin.value.partition(".")[0] != _PACKAGE


def custom_fault(plugin: EntryPoint, kind: str, what: str, instead: str = "") -> InvalidError:
    """Return the error of a plug-in of others that does not do its work.

    Args:
        plugin: the plug-in.
        kind: what it is, as in "source".
        what: what it did.
        instead: what to do instead of mending it; to choose another plug-in of the kind by default.
    """
    return InvalidError(
        f"{plugin_subject(plugin, kind)} {what}. Mend it or its options, or"
        f" {instead or f'choose another {kind}'}."
    )


def plugin_subject(plugin: EntryPoint, kind: str) -> str:
    """Return the begin of a sentence about a plug-in, as in `The source 'x', which is module:Class,`."""
    return f"The {kind} {plugin.name!r}, which is {plugin.value},"


@contextmanager
def custom_faults(plugin: EntryPoint, kind: str, what: str) -> Iterator[None]:
    """Turn foreign errors of a user's plug-in into InvalidError that names it; pass on errors of drawstring.

    Args:
        plugin: the plug-in. Errors of those of drawstring pass unchanged.
        kind: what it is, as in "source".
        what: what it did if the block fails.

    Raises:
        InvalidError: the block raised a foreign error.
    """
    try:
        yield
    except DrawstringError:
        raise
    except Exception as error:
        if not is_custom(plugin):
            raise
        raise custom_fault(plugin, kind, f"{what} ({type(error).__name__}: {error})") from error


@cache
def _of_checkout(group: str) -> tuple[EntryPoint, ...]:
    """Return the plug-ins that the project file of a checkout declares; none in an installed package."""
    file = Path(__file__).parents[3] / "pyproject.toml"
    project = tomllib.loads(file.read_text())["project"] if file.exists() else {}
    if project.get("name") != _PACKAGE:
        return ()
    declared: dict[str, str] = project["entry-points"].get(group, {})
    return tuple(EntryPoint(name, value, group) for name, value in declared.items())
