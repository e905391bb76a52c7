"""What Apache Polaris and DataHub know of a table after its commits, and tables of Polaris by their names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.support.catalog_servers import TOKEN, DataHubServer, Polaris, serving
from tests.support.tables import MOR

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.decimal128(8, 2))])
DATABASE = "hoodie.datasource.hive_sync.database"


def rides(*cities: str) -> pa.Table:
    return pa.table(
        {"id": list(range(len(cities))), "city": list(cities), "fare": [None] * len(cities)}, SCHEMA
    )


def create(path: Path, **more: Any) -> drawstring.Table:
    return drawstring.create(path, SCHEMA, record_key="id", partition_by="city", **more)


def sync_with(tool: str, **more: str) -> dict[str, str]:
    enabled = {"hoodie.datasource.meta.sync.enable": "true", "hoodie.meta.sync.client.tool.class": tool}
    return enabled | {DATABASE: "lake"} | {key.replace("__", "."): value for key, value in more.items()}


@pytest.fixture
def polaris() -> Polaris:
    return Polaris()


@pytest.fixture
def address(polaris: Polaris) -> Iterator[str]:
    with serving(polaris.answer) as found:
        yield f"{found.replace('http://', 'http://root:s3cr3t@')}/api/catalog/lake"


def in_polaris(address: str) -> dict[str, str]:
    return sync_with("PolarisSyncTool", drawstring__sync__polaris__url=address)


def test_polaris_gets_a_table_by_one_request_and_commits_leave_it(
    polaris: Polaris, address: str, tmp_path: Path
) -> None:
    table = create(tmp_path / "t", table_type=MOR)
    table.upsert(rides("oslo", "lima"), options=in_polaris(address))
    (found,) = polaris.tables["lake"].values()
    assert (found["name"], found["format"]) == ("t", "hudi")
    assert found["base-location"] == f"file:{tmp_path}/t"
    assert found["properties"]["spark.sql.sources.provider"] == "hudi"
    assert not [key for key in found["properties"] if key.startswith("last_commit")], "each commit changes it"
    assert polaris.changes == ["POST"]
    found["base-location"] = f"file://{tmp_path}/t/"  # as Polaris may write it
    found["properties"]["last_commit_time_sync"] = "1"  # as another sync may have written it
    table.upsert(rides("rome"), options=in_polaris(address))
    assert polaris.changes == ["POST"]


WIDER = SCHEMA.append(pa.field("tip", pa.int64()))


def widen(table: drawstring.Table, address: str) -> None:
    """Write a column that the table does not have, and tell Polaris."""
    row = pa.table({"id": [7], "city": ["rome"], "fare": [None], "tip": [1]}, WIDER)
    table.upsert(row, options=in_polaris(address))


def owned(polaris: Polaris, address: str, path: Path) -> drawstring.Table:
    """Return a table in Polaris, to which others gave a property and a comment."""
    table = create(path)
    table.upsert(rides("oslo"), options=in_polaris(address))
    (found,) = polaris.tables["lake"].values()
    found["properties"]["owner"] = "ours"
    found["doc"] = "our rides"
    return table


def test_polaris_gets_a_new_schema_and_what_others_set_stays(
    polaris: Polaris, address: str, tmp_path: Path
) -> None:
    widen(owned(polaris, address, tmp_path / "t"), address)
    (found,) = polaris.tables["lake"].values()
    assert "tip" in found["properties"]["spark.sql.sources.schema.part.0"]
    assert (found["properties"]["owner"], found["doc"]) == ("ours", "our rides")
    assert polaris.changes == ["POST", "DELETE", "POST"]


def test_polaris_gets_another_location(polaris: Polaris, address: str, tmp_path: Path) -> None:
    table = owned(polaris, address, tmp_path / "t")
    (found,) = polaris.tables["lake"].values()
    found["base-location"] = "file:/elsewhere"
    table.upsert(rides("rome"), options=in_polaris(address))
    (found,) = polaris.tables["lake"].values()
    assert found["base-location"] == f"file:{tmp_path}/t"


def test_a_table_of_another_format_stays_in_polaris_and_the_warning_says_what_to_do(
    polaris: Polaris, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = {"name": "t", "format": "delta", "base-location": "file:/elsewhere", "properties": {}}
    polaris.tables["lake"] = {"t": dict(theirs)}
    with caplog.at_level(logging.WARNING):
        create(tmp_path / "t").upsert(rides("oslo"), options=in_polaris(address))
    assert polaris.tables["lake"]["t"] == theirs
    assert "Polaris has lake.t as a table of another format, delta. It was not changed." in caplog.text
    assert "Give the Hudi table another name by hoodie.datasource.hive_sync.table" in caplog.text


def test_a_table_of_iceberg_in_polaris_is_told(
    polaris: Polaris, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    polaris.refusals = [409, 409]
    with caplog.at_level(logging.WARNING):
        create(tmp_path / "t").upsert(rides("oslo"), options=in_polaris(address))
    assert "lake.t as a table of another format, ICEBERG" in caplog.text


@pytest.mark.parametrize("code", [403, 503])
def test_a_table_that_polaris_refuses_to_make_again_is_put_back(
    polaris: Polaris, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    table = owned(polaris, address, tmp_path / "t")
    (before,) = polaris.tables["lake"].values()
    polaris.refusals = [code]
    with caplog.at_level(logging.WARNING):
        widen(table, address)
    assert list(polaris.tables["lake"].values()) == [before]
    assert "Polaris has not changed lake.t: Polaris refuses POST" in caplog.text
    assert "its old definition is put back. Give it again its grants" in caplog.text


def test_a_table_that_cannot_be_put_back_is_told_with_its_properties(
    polaris: Polaris, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = owned(polaris, address, tmp_path / "t")
    polaris.refusals = [403, 403]
    with caplog.at_level(logging.WARNING):
        widen(table, address)
    assert polaris.tables["lake"] == {}
    assert "its definition could not be put back: Polaris refuses POST" in caplog.text
    assert "A sync that succeeds creates it; then give it again its grants" in caplog.text
    assert '"owner": "ours"' in caplog.text
    widen(table, address)
    assert list(polaris.tables["lake"]) == ["t"]


def test_a_table_that_polaris_refuses_to_drop_is_said_to_be_there(
    polaris: Polaris, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = owned(polaris, address, tmp_path / "t")
    (before,) = polaris.tables["lake"].values()
    polaris.keeps = True
    with caplog.at_level(logging.WARNING):
        widen(table, address)
    assert list(polaris.tables["lake"].values()) == [before]
    assert "Polaris refuses DELETE" in caplog.text
    assert "It is still there." in caplog.text


def test_tables_of_polaris_are_opened_by_name(
    polaris: Polaris, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        create(tmp_path / name).upsert(rides("oslo", "lima"), options=in_polaris(address))
    nested = in_polaris(address) | {DATABASE: "lake.of.rides"}
    create(tmp_path / "d").upsert(rides("oslo"), options=nested)
    polaris.tables["lake"]["plain"] = {"name": "plain", "format": "delta", "base-location": "file:/x"}
    monkeypatch.setenv("POLARIS_TOKEN", TOKEN)
    with drawstring.catalog(f"polaris+{address.replace('root:s3cr3t@', '')}") as catalog:
        assert catalog.databases() == ["lake", "lake.of.rides"]
        assert (catalog.tables("lake"), catalog.tables("none")) == (["a", "b", "c"], [])
        assert catalog.table("lake.b").scan(columns=["id"]).to_arrow().num_rows == 2
        assert catalog.table("lake.of.rides.d").scan(columns=["id"]).to_arrow().num_rows == 1
        for name in ("lake.plain", "lake.none", "none.a"):
            with pytest.raises(drawstring.InvalidError, match="There is no Hudi table"):
                catalog.table(name)


def test_secrets_are_not_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with drawstring.catalog(f"polaris+{address}") as catalog, pytest.raises(drawstring.InvalidError) as told:
        catalog.table("lake.none")
    assert "s3cr3t" not in str(told.value)
    with pytest.raises(drawstring.InvalidError, match=r"Polaris refuses POST .*: 401") as refused:
        drawstring.catalog(f"polaris+{address.replace('s3cr3t', 'gu3ss')}")
    assert "gu3ss" not in str(refused.value)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("polaris+http://127.0.0.1:1/api/catalog/lake", None),
        ("polaris+ftp://polaris/api/catalog/lake", "no address of Polaris"),
        ("polaris+http://polaris", "names no catalog"),
    ],
)
def test_an_address_that_is_wrong_is_told(place: str, told: str | None) -> None:
    if told is None:
        with pytest.raises(drawstring.UnavailableError, match="Polaris does not answer"):
            drawstring.catalog(place).databases()
    else:
        with pytest.raises(drawstring.InvalidError, match=told):
            drawstring.catalog(place).databases()


def test_datahub_knows_the_table_its_columns_and_its_last_commit(tmp_path: Path) -> None:
    datahub = DataHubServer()
    with serving(datahub.answer) as server:
        options = sync_with(
            "org.apache.hudi.sync.datahub.DataHubSyncTool",
            hoodie__meta__sync__datahub__emitter__server=server,
            hoodie__meta__sync__datahub__emitter__token=TOKEN,
            hoodie__meta__sync__datahub__dataset__env="PROD",
        )
        table = create(tmp_path / "t", table_type=MOR)
        table.upsert(rides("oslo"), options=options)
        ((urn, aspects),) = datahub.aspects.items()
        assert urn == "urn:li:dataset:(urn:li:dataPlatform:hudi,lake.t,PROD)"
        aspects["datasetProperties"]["customProperties"]["owner"] = "ours"
        second = table.upsert(rides("rome"), options=options)
    own = aspects["datasetProperties"]["customProperties"]
    assert (own["last_commit_time_sync"], own["owner"]) == (second.instant, "ours")
    fields = {
        each["fieldPath"]: (each["nativeDataType"], each["isPartitioningKey"])
        for each in aspects["schemaMetadata"]["fields"]
    }
    assert (fields["fare"], fields["city"]) == (("decimal(8,2)", False), ("string", True))
    assert (aspects["subTypes"], aspects["status"]) == ({"typeNames": ["Table"]}, {"removed": False})


def test_a_write_goes_on_when_datahub_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(DataHubServer().answer) as server, caplog.at_level(logging.WARNING):
        options = sync_with("DataHubSyncTool", hoodie__meta__sync__datahub__emitter__server=server)
        assert create(tmp_path / "t").upsert(rides("oslo"), options=options).inserts == 1
    assert "DataHub refuses GET" in caplog.text
