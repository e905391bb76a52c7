"""What a real Hive metastore, and AWS Glue as moto has it, know of a table after its commits."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

import drawstring
from drawstring.plugins.hive_metastore import HiveMetastore
from drawstring.services.catalogs.table_description import hive_type, spark_json
from drawstring.table import Table
from tests.support.hive_metastore import running_metastore
from tests.support.s3_server import S3Server

SYNC = "hoodie.datasource.hive_sync."
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.decimal128(8, 2))])
GLUE = {
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool",
    f"{SYNC}database": "lake",
}


def rides(*cities: str) -> pa.Table:
    return pa.table(
        {"id": list(range(len(cities))), "city": list(cities), "fare": [None] * len(cities)}, SCHEMA
    )


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture
def glue(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("glue")
    yield client
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])


def create(path: Path, **more: Any) -> Table:
    return drawstring.create(path / "t", SCHEMA, record_key="id", partition_by="city", **more)


@pytest.mark.spark
def test_a_metastore_knows_the_table_its_partitions_and_its_last_commit(
    metastore: str, tmp_path: Path
) -> None:
    table = create(tmp_path)
    options = {f"{SYNC}enable": "true", f"{SYNC}mode": "hms", f"{SYNC}metastore.uris": metastore}
    options |= {f"{SYNC}database": "lake", f"{SYNC}table": "Rides"}
    first = table.upsert(rides("oslo", "lima"), options=options)
    client = HiveMetastore.connect([metastore])._client
    found = client.get_table("lake", "rides")
    assert found.tableType == "EXTERNAL_TABLE"
    assert found.parameters["last_commit_time_sync"] == first.instant
    assert found.parameters["spark.sql.sources.provider"] == "hudi"
    assert [(each.name, each.type) for each in found.sd.cols][-2:] == [
        ("id", "bigint"),
        ("fare", "decimal(8,2)"),
    ]
    assert [(each.name, each.type) for each in found.partitionKeys] == [("city", "string")]
    assert found.sd.inputFormat == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert found.sd.location == f"file:{tmp_path}/t"
    assert found.sd.serdeInfo.parameters["hoodie.query.as.ro.table"] == "false"
    assert found.sd.serdeInfo.parameters["path"] == found.sd.location, "where Spark looks"
    assert found.parameters["spark.sql.sources.schema.partCol.0"] == "city"
    parts = int(found.parameters["spark.sql.sources.schema.numParts"])
    text = "".join(found.parameters[f"spark.sql.sources.schema.part.{number}"] for number in range(parts))
    assert [each["name"] for each in json.loads(text)["fields"]][-1] == "city", "partition columns come last"
    assert client.get_partition_names("lake", "rides", -1) == ["city=lima", "city=oslo"]
    place = client.get_partition("lake", "rides", ["oslo"]).sd.location
    assert place == f"file:{tmp_path}/t/oslo"

    wider = rides("rome").append_column("tip", pa.array([1.5]))
    table.upsert(wider, options=options)
    assert client.get_partition_names("lake", "rides", -1) == ["city=lima", "city=oslo", "city=rome"]
    assert client.get_table("lake", "rides").sd.cols[-1].name == "tip"
    table.delete_partition("oslo", options=options)
    assert client.get_partition_names("lake", "rides", -1) == ["city=lima", "city=rome"]


@pytest.mark.spark
def test_a_merge_on_read_table_is_three_tables(metastore: str, tmp_path: Path) -> None:
    table = create(tmp_path, table_type="MERGE_ON_READ", hive_style=True)
    options = {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": metastore, f"{SYNC}table": "m"}
    table.upsert(rides("oslo"), options=options)
    client = HiveMetastore.connect([metastore])._client
    formats = {
        name: (
            found.sd.inputFormat.rpartition(".")[2],
            found.sd.serdeInfo.parameters["hoodie.query.as.ro.table"],
        )
        for name in ("m", "m_ro", "m_rt")
        for found in [client.get_table("default", name)]
    }
    snapshot = ("HoodieParquetRealtimeInputFormat", "false")
    assert formats == {"m": snapshot, "m_rt": snapshot, "m_ro": ("HoodieParquetInputFormat", "true")}
    assert client.get_partition_names("default", "m_rt", -1) == ["city=oslo"]


def test_glue_knows_the_table_and_its_partitions(glue: Any, tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.upsert(rides("oslo", "lima"), options=GLUE)
    found = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    assert found["Parameters"]["last_commit_time_sync"] == first.instant
    assert found["Parameters"]["EXTERNAL"] == "TRUE"
    assert found["PartitionKeys"][0]["Name"] == "city"
    assert found["StorageDescriptor"]["Location"] == f"file:{tmp_path}/t"
    glue.update_table(
        DatabaseName="lake",
        TableInput={
            **{name: found[name] for name in ("Name", "PartitionKeys", "StorageDescriptor", "TableType")},
            "Parameters": {**found["Parameters"], "owner": "ours"},
        },
    )
    second = table.upsert(rides("rome"), options=GLUE)
    found = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    assert found["Parameters"]["last_commit_time_sync"] == second.instant
    assert found["Parameters"]["owner"] == "ours", "what others set stays"
    assert values(glue) == [["lima"], ["oslo"], ["rome"]]
    table.delete_partition("oslo", options=GLUE)
    assert values(glue) == [["lima"], ["rome"]]


def test_a_sync_that_is_not_incremental_compares_all_partitions(glue: Any, tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rides("oslo", "lima"), options=GLUE)
    glue.batch_delete_partition(DatabaseName="lake", TableName="t", PartitionsToDelete=[{"Values": ["oslo"]}])
    table.upsert(rides("lima"), options=GLUE)
    assert values(glue) == [["lima"]]
    table.upsert(rides("lima"), options=GLUE | {"hoodie.meta.sync.incremental": "false"})
    assert values(glue) == [["lima"], ["oslo"]]


@pytest.mark.parametrize(
    ("base_format", "classes"),
    [
        ("orc", ("ql.io.orc.OrcInputFormat", "ql.io.orc.OrcOutputFormat", "ql.io.orc.OrcSerde")),
        (
            "lance",
            (
                "realtime.HoodieLanceRealtimeInputFormat",
                "ql.io.parquet.MapredParquetOutputFormat",
                "ql.io.parquet.serde.ParquetHiveSerDe",
            ),
        ),
    ],
)
def test_tables_of_other_formats_have_the_classes_that_hudi_gives_them(
    glue: Any, tmp_path: Path, base_format: str, classes: tuple[str, ...]
) -> None:
    properties = {"hoodie.table.base.file.format": base_format}
    table = create(tmp_path, table_type="MERGE_ON_READ", properties=properties)
    for cities in (("oslo",), ("lima",)):
        table.upsert(rides(*cities), options=GLUE)
    found = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    partition = glue.get_partitions(DatabaseName="lake", TableName="t")["Partitions"][1]
    for storage in (found["StorageDescriptor"], partition["StorageDescriptor"]):
        stored = (
            storage["InputFormat"],
            storage["OutputFormat"],
            storage["SerdeInfo"]["SerializationLibrary"],
        )
        packages = ("org.apache.hudi.hadoop.", "org.apache.hadoop.hive.")
        assert all(each.startswith(packages) for each in stored)
        assert tuple(each.removeprefix(packages[0]).removeprefix(packages[1]) for each in stored) == classes


def test_an_orc_table_is_not_registered_where_only_hive_would_read_it(
    glue: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = create(tmp_path, properties={"hoodie.table.base.file.format": "orc"})
    with caplog.at_level(logging.WARNING):
        table.upsert(rides("oslo"), options={**GLUE, f"{SYNC}sync_as_datasource": "false"})
    assert "Hive would read superseded files, too" in caplog.text
    assert glue.get_databases()["DatabaseList"] == []


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        ({"Parameters": {"table_type": "ICEBERG", "metadata_location": "s3://lake/t/metadata"}}, "ICEBERG"),
        ({"Parameters": {"spark.sql.sources.provider": "delta"}}, "delta"),
        ({"StorageDescriptor": {"InputFormat": "a.b.ParquetInputFormat"}}, "a.b.ParquetInputFormat"),
        ({"TableType": "VIRTUAL_VIEW", "ViewOriginalText": "select 1"}, "view"),
    ],
)
def test_a_table_of_another_format_stays_in_glue_and_the_warning_says_what_to_do(
    glue: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, theirs: dict[str, Any], found: str
) -> None:
    glue.create_database(DatabaseInput={"Name": "lake"})
    glue.create_table(DatabaseName="lake", TableInput={"Name": "t", **theirs})
    before = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    with caplog.at_level(logging.WARNING):
        create(tmp_path).upsert(rides("oslo"), options=GLUE)
    assert glue.get_table(DatabaseName="lake", Name="t")["Table"] == before
    assert f"AWS Glue has lake.t as a table of another format, {found}. It was not changed." in caplog.text
    assert "Give the Hudi table another name by hoodie.datasource.hive_sync.table" in caplog.text


@pytest.mark.spark
def test_a_table_of_another_format_stays_in_a_metastore(
    metastore: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from pymetastore.hive_metastore.ttypes import SerDeInfo, StorageDescriptor
    from pymetastore.hive_metastore.ttypes import Table as HiveTable

    client = HiveMetastore.connect([metastore])._client
    storage = StorageDescriptor(
        cols=[],
        location=f"file:{tmp_path}/theirs",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        serdeInfo=SerDeInfo(parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    properties = {"table_type": "ICEBERG", "EXTERNAL": "TRUE"}
    theirs = HiveTable("theirs", "default", sd=storage, partitionKeys=[], parameters=properties)
    theirs.tableType = "EXTERNAL_TABLE"
    client.create_table(theirs)
    before = client.get_table("default", "theirs")
    options = {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": metastore, f"{SYNC}table": "theirs"}
    with caplog.at_level(logging.WARNING):
        create(tmp_path).upsert(rides("oslo"), options=options)
    assert client.get_table("default", "theirs") == before
    assert "The Hive metastore has default.theirs as a table of another format, ICEBERG" in caplog.text


def test_a_sync_that_failed_is_made_up_for(
    glue: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = create(tmp_path)
    missing = {**GLUE, f"{SYNC}auto_create_database": "false"}
    with caplog.at_level(logging.WARNING):
        assert table.upsert(rides("oslo"), options=missing).inserts == 1
    assert "The write is committed, but the sync of catalogs after it failed" in caplog.text
    table.upsert(rides("oslo", "lima"), options=GLUE)
    assert values(glue) == [["lima"], ["oslo"]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": "thrift://127.0.0.1:1"},
            "No Hive metastore answers",
        ),
        ({f"{SYNC}enable": "true", f"{SYNC}metastore.uris": "http://x"}, "no address of a Hive metastore"),
        ({f"{SYNC}enable": "true", f"{SYNC}mode": "jdbc"}, "mode=jdbc is not supported"),
        (
            {**GLUE, "hoodie.meta.sync.client.tool.class": "my.BigQuerySyncTool"},
            "BigQuerySyncTool is not supported",
        ),
    ],
)
def test_a_write_goes_on_without_a_sync(
    options: dict[str, str], told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert create(tmp_path).upsert(rides("oslo"), options=options).inserts == 1
    assert told in caplog.text


def test_tables_of_a_warehouse_are_opened_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c"
    for place in ("lake.db/rides", "people"):
        drawstring.create(folder / place, SCHEMA, record_key="id").upsert(rides("oslo"))
    (folder / "lake.db/plain").mkdir()
    with drawstring.catalog(folder) as catalog:
        assert catalog.databases() == ["default", "lake"]
        assert (catalog.tables(), catalog.tables("lake")) == (["people"], ["rides"])
        assert catalog.table("people").scan().to_arrow().num_rows == 1
        catalog.table("lake.rides").upsert(rides("oslo", "lima"))
        assert catalog.table("lake.rides").scan(columns=["id"]).to_arrow().num_rows == 2
        for name in ("lake.plain", "rides", "other.rides"):
            with pytest.raises(drawstring.InvalidError, match=r"no Hudi table .*tables\(database\)"):
                catalog.table(name)


@pytest.mark.parametrize("address", ["unity://host", "/not/there"])
def test_an_address_without_a_catalog_is_refused_with_those_that_there_are(address: str) -> None:
    with pytest.raises(drawstring.DrawstringError, match=r"thrift://host:port, glue, .*folder of tables"):
        drawstring.catalog(address)


@pytest.mark.spark
def test_tables_of_a_metastore_are_opened_by_name(metastore: str, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c"
    table = create(folder, table_type="MERGE_ON_READ")
    options = {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": metastore}
    table.upsert(rides("oslo"), options={**options, f"{SYNC}database": "named", f"{SYNC}table": "Trips"})
    client = HiveMetastore.connect([metastore])._client
    plain = client.get_table("named", "trips")
    plain.tableName, plain.parameters = "plain", {}
    plain.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
    client.create_table(plain)
    with drawstring.catalog(metastore) as catalog:
        assert "named" in catalog.databases()
        assert catalog.tables("named") == ["trips", "trips_ro", "trips_rt"]
        found = catalog.table("named.trips_rt")
        assert found.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [0]
        for name in ("named.plain", "trips"):
            with pytest.raises(drawstring.InvalidError, match="There is no Hudi table"):
                catalog.table(name)


def test_tables_of_glue_are_opened_by_name(glue: Any, tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rides("oslo", "lima"), options=GLUE)
    glue.create_table(DatabaseName="lake", TableInput={"Name": "plain", "StorageDescriptor": {}})
    with drawstring.catalog("glue") as catalog:
        assert catalog.databases() == ["lake"]
        assert catalog.tables("lake") == ["t"]
        assert catalog.table("lake.t").scan(columns=["id"]).to_arrow().num_rows == 2
        for name in ("lake.plain", "lake.none"):
            with pytest.raises(drawstring.InvalidError, match="There is no Hudi table"):
                catalog.table(name)


def test_types_of_columns() -> None:
    nested = pa.struct([("a", pa.list_(pa.int32())), ("b", pa.map_(pa.string(), pa.float32()))])
    assert hive_type(nested, has_timestamps=False) == "struct<a:array<int>,b:map<string,float>>"
    moment = pa.timestamp("us", "UTC")
    assert [hive_type(moment, has_timestamps=each) for each in (False, True)] == ["bigint", "timestamp"]
    (field,) = spark_json(pa.schema([("n", nested)]))["fields"]
    assert field["type"]["fields"][0]["type"]["elementType"] == "integer"
    with pytest.raises(Exception, match="no type"):
        hive_type(pa.null(), has_timestamps=False)


def values(glue: Any) -> list[list[str]]:
    found = glue.get_partitions(DatabaseName="lake", TableName="t")["Partitions"]
    return sorted(each["Values"] for each in found)
