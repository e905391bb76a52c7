"""Keyword arguments stand for options, and have the same names in Python and on the command line."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.cli.app import GROUPS
from drawstring.config.keywords import KEYWORDS, with_keywords
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.table_api.columns import TableColumns
from drawstring.table_api.holds import TableHolds
from drawstring.table_api.indexes import TableIndexes
from drawstring.table_api.inspection import TableInspection
from drawstring.table_api.savepoints import TableSavepoints
from drawstring.table_api.services import TableServices
from drawstring.table_api.versions import TableVersions

PLANNERS = {
    "compact": ("schedule_compaction",),
    "log_compact": ("schedule_log_compaction",),
    "compact_base_files": ("schedule_base_file_compaction",),
    "cluster": ("schedule_clustering",),
    "clean": ("plan_clean",),
    "expire_partitions": ("plan_expiry",),
    "archive": ("plan_archive",),
}
"""Methods that plan what another one does."""

CLASSES: dict[str, Any] = {
    "services": TableServices,
    "indexes": TableIndexes,
    "columns": TableColumns,
    "inspect": TableInspection,
    "savepoints": TableSavepoints,
    "holds": TableHolds,
    "versions": TableVersions,
}
COMMAND = {
    f"{group}.{word.replace('-', '_')}": command
    for group, (_, commands) in GROUPS.items()
    for word, command in commands.items()
}
OTHERWISE = {"inspect.timeline": "table.timeline"}
"""Commands that have another name in Python."""


def parameters(call: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(call).parameters)


def test_every_keyword_stands_for_options_that_exist() -> None:
    for keywords in KEYWORDS.values():
        for keyword in keywords.values():
            for key in (keyword.key, *keyword.implied):
                assert OPTION_OF_KEY[key].key == key, "the key itself, not one of its other names"


def method_of(name: str) -> Any:
    """Return the method of a table, or of one of its groups, by its name."""
    places = (drawstring.Table, *CLASSES.values())
    return next((found for each in places if callable(found := getattr(each, name, None))), None)


@pytest.mark.parametrize("verb", [verb for verb in KEYWORDS if verb != "create"])
def test_methods_have_the_keywords_of_their_verb(verb: str) -> None:
    for name in (verb, *PLANNERS.get(verb, ())):
        found = parameters(method_of(name))
        assert set(KEYWORDS[verb]) <= set(found)
        for keyword in (*KEYWORDS[verb], "options"):
            assert found[keyword].kind is inspect.Parameter.KEYWORD_ONLY
            assert found[keyword].default is None


def test_create_has_the_keywords_of_its_verb() -> None:
    assert set(KEYWORDS["create"]) <= set(parameters(drawstring.create))


OTHER_ARGUMENTS = {"inspect.metadata": {"keys"}, "versions.set_storage_layout": {"layout"}}
"""Arguments that have another name on the command line."""
SERVICE_VERBS = [verb for verb in KEYWORDS if f"services.{verb}" in COMMAND]


@pytest.mark.parametrize("verb", SERVICE_VERBS)
def test_commands_have_flags_of_the_same_names(verb: str) -> None:
    assert set(KEYWORDS[verb]) <= set(parameters(COMMAND[f"services.{verb}"]))


@pytest.mark.parametrize("name", sorted(set(COMMAND) - set(OTHERWISE)))
def test_a_command_runs_the_method_of_its_name_with_the_same_arguments(name: str) -> None:
    group, _, method = name.partition(".")
    flags = {*parameters(COMMAND[name]), "options", "progress", *OTHER_ARGUMENTS.get(name, ())}
    assert set(parameters(getattr(CLASSES[group], method))) - {"self"} <= flags


def test_services_with_keywords_have_a_command() -> None:
    assert {f"services.{verb}" for verb in PLANNERS} <= set(COMMAND)


def test_keywords_are_added_to_options() -> None:
    assert with_keywords("cluster", None) == {}
    assert with_keywords("cluster", {"hoodie.table.name": "t"}, {"sort_by": ("a", "b"), "layout": None}) == {
        "hoodie.table.name": "t",
        "hoodie.clustering.plan.strategy.sort.columns": ["a", "b"],
    }
    assert with_keywords("clean", None, {"retain_hours": 5}) == {
        "hoodie.clean.hours.retained": 5,
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
    }


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.clean.commits.retained": 4},
        {"HOODIE.Clean.Commits.Retained": "4"},
        {"hoodie.cleaner.commits.retained": 4},
        {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"},
    ],
)
def test_a_keyword_and_an_option_that_differ_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidError, match=r"retain_commits and .* contradict each other"):
        with_keywords("clean", options, {"retain_commits": 3})


@pytest.mark.parametrize(
    "options", [{"hoodie.cleaner.commits.retained": "3"}, {"hoodie.clean.policy": "keep_latest_commits"}]
)
def test_a_keyword_and_an_option_that_agree_are_taken(options: dict[str, object]) -> None:
    assert with_keywords("clean", options, {"retain_commits": 3}).items() >= options.items()


def test_keywords_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(InvalidError, match="retain_hours and retain_commits contradict each other"):
        with_keywords("clean", None, {"retain_commits": 3, "retain_hours": 5})


def test_options_are_a_dictionary() -> None:
    with pytest.raises(InvalidError, match="options is a dictionary by Hudi's keys, not str"):
        with_keywords("clean", "retain=3")  # type: ignore[arg-type]
