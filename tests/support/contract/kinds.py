"""Kinds of tables, by dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import drawstring

Row = dict[str, Any]

DELETED = "_hoodie_is_deleted"
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "region": pa.string(),
    "city": pa.string(),
    "made": pa.int64(),
    "ts": pa.int64(),
    "value": pa.int64(),
    "note": pa.string(),
    DELETED: pa.bool_(),
}
ADDED = {"extra": pa.string()}

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "index": (
        "simple", "bloom", "global_simple", "global_bloom", "bucket", "consistent", "log", "global_log",
    ),
    "storage": ("cow", "parquet", "avro", "lsm"),
    "version": ("6", "8", "9", "10"),
    "order": ("event", "commit"),
    "layout": ("none", "hive", "time", "custom", "keys"),
    "files": ("full", "no_meta", "dropped", "cdc_all", "cdc_before", "cdc_keys"),
}  # fmt: skip
BARE_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "index": ("simple", "bloom", "bucket", "consistent", "log"),
    "storage": ("parquet", "avro", "lsm"),
    "version": ("8", "9", "10"),
    "order": ("event",),
    "layout": ("time", "keys"),
    "files": ("bare", "bare_cdc"),
}
"""Tables whose updates go to log blocks with some of the columns."""
FORMAT_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "index": ("simple", "bloom", "bucket", "log"),
    "storage": ("orc_lsm", "lance_cow", "orc", "lance_lsm", "orc_cow", "lance"),
    "version": ("9", "10"),
    "order": ("event", "commit"),
    "layout": ("hive", "keys"),
    "files": ("full", "no_meta", "cdc_all"),
}
"""Tables whose base files, and native log files, have other formats than Parquet."""
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
LOG_INDEX = {"hoodie.index.log.enable": "true", "hoodie.index.log.clique.files": "2"}
INDEXES: dict[str, dict[str, str]] = {
    "bucket": BUCKETS,
    "consistent": {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
    "log": {"hoodie.index.type": "BLOOM", **LOG_INDEX},
    "global_log": {"hoodie.index.type": "GLOBAL_BLOOM", **LOG_INDEX},
}
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}
LAYOUTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "none": ((), {}),
    "hive": (
        ("region", "city"),
        {
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
        },
    ),
    "time": (("made",), {"hoodie.datasource.write.keygenerator.type": "TIMESTAMP", **TIMEBASED}),
    "custom": (
        ("city:SIMPLE", "made:TIMESTAMP"),
        {"hoodie.datasource.write.keygenerator.type": "CUSTOM", **TIMEBASED},
    ),
    "keys": (("city",), {"hoodie.datasource.write.keygenerator.type": "COMPLEX"}),
}
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
CDC = {"hoodie.table.cdc.enabled": "true"}
FILES: dict[str, dict[str, str]] = {
    "full": {},
    "no_meta": {"hoodie.populate.meta.fields": "false"},
    "dropped": {"hoodie.datasource.write.drop.partition.columns": "true"},
    "cdc_all": {**CDC, CDC_MODE: "DATA_BEFORE_AFTER"},
    "cdc_before": {**CDC, CDC_MODE: "DATA_BEFORE"},
    "cdc_keys": {**CDC, CDC_MODE: "OP_KEY_ONLY"},
    "bare": {},
    "bare_cdc": {**CDC, CDC_MODE: "DATA_BEFORE_AFTER"},
}


@dataclass(frozen=True)
class Kind:
    """A kind of table: one value of each dimension."""

    index: str
    storage: str
    version: str
    order: str
    layout: str
    files: str

    def __str__(self) -> str:
        return "-".join(vars(self).values())

    @property
    def is_mor(self) -> bool:
        return not self.storage.endswith("cow")

    @property
    def is_sorted(self) -> bool:
        """Whether the files are sorted by key."""
        return self.storage.endswith("lsm")

    @property
    def base_format(self) -> dict[str, str]:
        """The property that tells the format of base files, if it is not Parquet."""
        name = self.storage.partition("_")[0]
        return {"hoodie.table.base.file.format": name} if name in ("orc", "lance") else {}

    @property
    def is_ordered(self) -> bool:
        return self.order == "event"

    @property
    def is_global(self) -> bool:
        return self.index.startswith("global") and self.layout != "none"

    @property
    def merges_few(self) -> bool:
        """Whether a merge sets columns one by one: the partition may differ, or blocks are to have few."""
        return self.is_global or self.is_bare

    @property
    def has_commit_times(self) -> bool:
        return self.files != "no_meta"

    @property
    def is_bare(self) -> bool:
        """Whether the table lacks the column that marks deleted rows, so that updates log what they set."""
        return self.files.startswith("bare")

    @property
    def columns(self) -> dict[str, pa.DataType]:
        return {name: kind for name, kind in COLUMNS.items() if not (self.is_bare and name == DELETED)}

    @property
    def keys(self) -> tuple[str, ...]:
        return ("id", "region") if self.layout == "keys" else ("id",)

    @property
    def partition_fields(self) -> tuple[str, ...]:
        return tuple(name.partition(":")[0] for name in LAYOUTS[self.layout][0])

    @property
    def options(self) -> dict[str, str]:
        """What each write has to say: not all tables store the types of a custom generator's columns."""
        blocks = self.storage in ("parquet", "avro")
        options = {"hoodie.logfile.data.block.format": self.storage} if blocks else {}
        if self.layout == "custom":
            options["hoodie.datasource.write.partitionpath.field"] = ",".join(LAYOUTS[self.layout][0])
        if self.is_bare:
            options["hoodie.spark.sql.merge.into.partial.updates"] = "true"
        return options

    def path_of(self, row: Row) -> str:
        """Return the partition path of a row, worked out here and not by the code under test."""
        day = {0: "19700101", 86_400_000: "19700102"}[row["made"]]
        city = row["city"].replace("=", "%3D") if self.layout == "hive" else row["city"]
        paths = {"none": "", "time": day, "custom": f"{city}/{day}", "keys": city}
        return paths.get(self.layout, f"region={row['region']}/city={city}")

    def create(self, uri: str) -> drawstring.Table:
        partition_by, keygen = LAYOUTS[self.layout]
        return drawstring.create(
            uri,
            schema_of(self.columns),
            name="rides",
            table_type="MERGE_ON_READ" if self.is_mor else "COPY_ON_WRITE",
            record_key=self.keys,
            partition_by=partition_by,
            ordering="ts" if self.is_ordered else (),
            version=int(self.version),
            properties={
                **INDEXES.get(self.index, {"hoodie.index.type": self.index.upper()}),
                **keygen,
                **FILES[self.files],
                **({"hoodie.table.storage.layout": "lsm_tree"} if self.is_sorted else {}),
                **self.base_format,
            },
        )


def schema_of(columns: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name != "id") for name, kind in columns.items()])
