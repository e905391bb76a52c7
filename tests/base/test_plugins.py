"""Plug-ins of drawstring: declared once, found with and without installation, imported when used."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base import plugins
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.plugins import find_plugin, plugin_names
from drawstring.formats import file_format

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS: dict[str, dict[str, str]] = PROJECT["entry-points"]
UPDATE = "bash scripts/venv.sh .venv requirements/dev.lock --project"
DECLARED = [(group, name) for group, names in GROUPS.items() for name in names]


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("group", "name"), DECLARED)
def test_every_declared_plug_in_can_be_imported(group: str, name: str) -> None:
    plugin = find_plugin(group, name)
    assert plugin is not None
    assert plugin.value == GROUPS[group][name]
    assert callable(plugin.load())
    assert name in plugin_names(group)


def test_an_installation_knows_the_declared_plug_ins() -> None:
    installed = distribution("drawstring").entry_points
    found = {(each.group, each.name): each.value for each in installed if each.group in GROUPS}
    declared = {(group, name): GROUPS[group][name] for group, name in DECLARED}
    assert found == declared, f"the installation is older, run: {UPDATE}"


def test_a_checkout_without_installation_finds_the_plug_ins(tmp_path: Path) -> None:
    site = Path(pa.__file__).parents[1]
    for each in site.iterdir():
        if not each.name.startswith("drawstring"):
            (tmp_path / each.name).symlink_to(each)
    printed = run(
        "from importlib.metadata import entry_points\n"
        "from drawstring.formats.file_format import format_of\n"
        "print(*entry_points(group='drawstring.file_formats'), type(format_of('.orc')).__name__)",
        PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT / 'src'}",
    )
    assert printed == "OrcFormat"


def test_parquet_and_the_tables_own_lock_ask_for_no_plug_in() -> None:
    site = Path(pa.__file__).parents[1]
    printed = run(
        "import sys, drawstring.filegroups.base_file_writer, drawstring.txn.locks.table_lock\n"
        "from drawstring.formats.data_file import has_footer\n"
        "print(has_footer('a.parquet'), has_footer('.a.log.1_0-1-0'), has_footer('a.hfile'))\n"
        "print(*{'importlib.metadata', 'drawstring.plugins'} & {*sys.modules})",
        PYTHONPATH=f"{site}{os.pathsep}{ROOT / 'src'}",
    )
    assert printed == "True False False"


def test_a_missing_plug_in_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "FORMATS", {})
    monkeypatch.setattr(plugins, "find_plugin", lambda *_: None)
    with pytest.raises(UnsupportedError, match=r"no plug-in for Lance files: .* entry point 'lance'"):
        file_format.format_of(".lance")


def ingest(source: str) -> Callable[[Path], object]:
    options = {
        "bootstrap.servers": "localhost:1",
        "hoodie.streamer.source.kafka.topic": "rides",
        "hoodie.streamer.jdbc.url": "sqlite://",
        "hoodie.streamer.jdbc.table.name": "rides",
    }
    return lambda folder: drawstring.ingest(folder / "t", source, options=options)


def write_lance(folder: Path) -> object:
    rows = pa.table({"id": [1]})
    properties = {"hoodie.table.base.file.format": "LANCE"}
    table = drawstring.create(folder / "t", rows.schema, record_key="id", properties=properties)
    return table.upsert(rows)


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("confluent_kafka", "kafka", ingest("kafka-json")),
        ("sqlalchemy", "jdbc", ingest("JdbcSource")),
        ("boto3", "glue", lambda _: drawstring.catalog("glue")),
        ("pymetastore.hive_metastore", "hive", lambda _: drawstring.catalog("thrift://localhost:1")),
        ("lance.file", "lance", write_lance),
    ],
)
def test_a_missing_library_is_answered_with_the_extra_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, extra: str, use: Callable[[Path], object]
) -> None:
    assert extra in PROJECT["optional-dependencies"]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidError, match=rf"pip install 'drawstring\[{extra}\]'"):
        use(tmp_path)
