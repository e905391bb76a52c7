"""The `drawstring` command: registration of its subcommands, error output and exit codes.

Exit codes: 0 success, 1 a defect of drawstring, 2 an error of the call or the table (explained in one line).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)
from rich.console import Console

from drawstring.base.errors import DrawstringError
from drawstring.base.resources import use_allocator
from drawstring.cli import output
from drawstring.cli.commands.columns import (
    add_column,
    change_column_type,
    comment_column,
    drop_column,
    move_column,
    rename_column,
)
from drawstring.cli.commands.indexes import (
    create_index,
    drop_index,
    list_indexes,
    run_indexes,
    schedule_index,
)
from drawstring.cli.commands.inspect import (
    add_hold,
    files,
    head,
    list_holds,
    metadata,
    partitions,
    release_hold,
    show,
    timeline,
)
from drawstring.cli.commands.loading.bootstrap import bootstrap
from drawstring.cli.commands.loading.ingest import ingest
from drawstring.cli.commands.repair import (
    create_savepoint,
    delete_savepoint,
    downgrade,
    list_savepoints,
    locks,
    repair,
    restore,
    rollback,
    set_layout,
    upgrade,
    validate,
)
from drawstring.cli.commands.report import report, serve
from drawstring.cli.commands.services import (
    archive,
    clean,
    cluster,
    compact,
    compact_base_files,
    expire_partitions,
    log_compact,
    rescale_buckets,
    run_services,
)
from drawstring.cli.output import PrintableFormatter

EXIT_DEFECT = 1
EXIT_FAULT = 2
EXIT_INTERRUPTED = 130

TOP = (show, head, bootstrap, ingest, serve)
"""Commands by themselves."""

GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "services": (
        "Run table services: compaction, clustering, cleaning, archiving, checks and repairs.",
        {
            "run": run_services,
            "compact": compact,
            "log-compact": log_compact,
            "compact-base-files": compact_base_files,
            "cluster": cluster,
            "clean": clean,
            "archive": archive,
            "expire-partitions": expire_partitions,
            "rescale-buckets": rescale_buckets,
            "validate": validate,
            "repair": repair,
            "rollback": rollback,
        },
    ),
    "indexes": (
        "Create, plan, drop and list the indexes of a table, which its metadata table holds.",
        {
            "create": create_index,
            "schedule": schedule_index,
            "run": run_indexes,
            "drop": drop_index,
            "list": list_indexes,
        },
    ),
    "columns": (
        "Add, rename, drop, move and describe columns, in commits without rows; files stay as they are.",
        {
            "add": add_column,
            "rename": rename_column,
            "drop": drop_column,
            "change-type": change_column_type,
            "move": move_column,
            "comment": comment_column,
        },
    ),
    "inspect": (
        "Look at a table: instants, files, metadata table, locks, and a report.",
        {
            "timeline": timeline,
            "files": files,
            "partitions": partitions,
            "metadata": metadata,
            "locks": locks,
            "report": report,
        },
    ),
    "savepoints": (
        "Create, delete and list savepoints, and restore a table.",
        {
            "create": create_savepoint,
            "delete": delete_savepoint,
            "list": list_savepoints,
            "restore": restore,
        },
    ),
    "holds": (
        "Place, release and list the holds of readers.",
        {"add": add_hold, "release": release_hold, "list": list_holds},
    ),
    "versions": (
        "Change the table version or the storage layout.",
        {"upgrade": upgrade, "downgrade": downgrade, "set-storage-layout": set_layout},
    ),
}
"""Commands with the names of the groups of `Table`: `table.services.compact` is `services compact`."""

NEVER_SUGGESTED = frozenset(
    {
        "bootstrap",
        "columns drop",
        "holds release",
        "indexes drop",
        "ingest",
        "savepoints delete",
        "savepoints restore",
        "services archive",
        "services clean",
        "services expire-partitions",
        "services repair",
        "services rollback",
        "services run",
        "versions downgrade",
    }
)
"""Commands that delete or undo something, or write rows: nobody is to run them because of a typing error."""


def build() -> App:
    """Return the application with all its commands."""
    app = App(
        name="drawstring",
        help="Inspect, maintain, bootstrap and fill Apache Hudi tables; nothing needs Spark or Java.",
        version=_version,
        result_action="return_value",
        error_console=Console(stderr=True),
        default_parameter=Parameter(show_default=_shown_default),
    )
    for command in TOP:
        app.command(command)
    for name, (text, commands) in GROUPS.items():
        group = App(name=name, help=text)
        for word, command in commands.items():
            group.command(command, name=word)
        app.command(group)
    return app


def _shown_default(value: object) -> Any:
    """Return a default as the help shows it: those that say nothing are left out."""
    return None if value is None or value is False or value == () else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code.

    Args:
        arguments: the command-line arguments without the program name; None for those of the process.
    """
    use_allocator()
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    Errors become one line on standard error, and with --json also a document on standard output.
    """
    output.begin()
    is_json = "--json" in arguments
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        build()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return _fail(error, is_json, _usage(error))
    except DrawstringError as error:
        return _fail(error, is_json)
    except BrokenPipeError:
        # The reader of the pipe (`drawstring head ... | head`) closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(error, is_json, _of_system(error))
    except KeyboardInterrupt as error:
        return _fail(error, is_json, "interrupted", EXIT_INTERRUPTED)
    except Exception as error:
        if os.environ.get("DRAWSTRING_TRACEBACK"):
            raise
        hint = "Please report it. DRAWSTRING_TRACEBACK=1 shows the traceback."
        told = f"A defect of drawstring: {type(error).__name__}: {error}. {hint}"
        return _fail(error, is_json, told, EXIT_DEFECT)
    return 0


def _usage(error: CycloptsError) -> str:
    """Return what is wrong with a call, and the command that says how it is to be called."""
    told = str(error)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = error.unused_tokens
        arguments, them = ("an argument", "it") if len(extra) == 1 else ("arguments", "them")
        told = f"The command does not take {arguments} {' '.join(extra)}. Remove {them}."
    if isinstance(error, MissingArgumentError) and error.argument is not None and error.keyword is None:
        name = error.argument.name
        is_placed = error.argument.index is not None
        told = f"The command needs {name.lstrip('-').replace('-', '_').upper() if is_placed else name}."
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        told = _unknown_command(error.unused_tokens[0], error.command_chain or ())
    return f"{told} See: {' '.join(('drawstring', *(error.command_chain or ())))} --help"


def _unknown_command(word: str, groups: Sequence[str]) -> str:
    """Return which command a mistyped or flat name may mean, and which commands there are.

    Args:
        word: the name.
        groups: the group in which it was looked for; empty for the top level.
    """
    names = [command.__name__ for command in TOP]
    names += [f"{group} {each}" for group, (_, commands) in GROUPS.items() for each in commands]
    names = [name for name in names if name.split()[: len(groups)] == list(groups)]
    suggested = [name for name in names if name not in NEVER_SUGGESTED]
    by_word = {name.rpartition(" ")[2]: name for name in reversed(suggested)}
    if not groups:
        by_word |= {group: f"{group} --help" for group in GROUPS}
    # A flat name may be that of a command that is not suggested: then no other is a guess at it.
    is_other = any(name.endswith(word) for name in names if name in NEVER_SUGGESTED)
    close = [] if is_other else get_close_matches(word.replace("_", "-").lower(), by_word, n=1)
    meant = "".join(f" Did you mean `drawstring {by_word[each]}`?" for each in close)
    return f"There is no command {' '.join((*groups, word))!r}.{meant} The commands are {', '.join(names)}."


def _of_system(error: OSError) -> str:
    """Return what the operating system refuses, and what to do."""
    if not error.filename:
        return str(error)
    steps = {
        IsADirectoryError: "Give a file.",
        NotADirectoryError: "Give a path whose folders are folders.",
        FileNotFoundError: "Check the path.",
        PermissionError: "Get the permission, or give another path.",
    }
    return f"{error.strerror or error}: {error.filename}. {steps.get(type(error), '')}".strip()


def _fail(error: BaseException, is_json: bool, message: str | None = None, code: int = EXIT_FAULT) -> int:
    if is_json:
        output.print_json_error(output.error_fields(error, message))
    output.print_error(message or str(error))
    return code


def _version() -> str:
    from importlib.metadata import version

    return version("drawstring")
