"""Real Apache Hudi behind JSON lines: runs in `.venv-referee`, started by `client.py`.

One Spark session serves requests from standard input, one JSON object a line, and answers each with
one line on standard output. Rows do not travel in the lines: they are Parquet files, whose names do.

    {"do": "read", "table": T, "options": {...}, "columns": [...], "to": FOLDER}
    {"do": "write", "table": T, "rows": FILE, "options": {...}}
    {"do": "stream", "table": T, "source": FOLDER, "columns": DDL, "checkpoint": FOLDER, "options": {...}}
    {"do": "timeline", "table": T}   answers "instants": [[requested, completed, action, state]]
    {"do": "compact", "table": T, "options": {...}}   answers "instant": TIME, or null for none
    {"do": "service", "table": T, "what": NAME, "instant": TIME, "run": BOOL, "options": {...}}   likewise
    {"do": "change_version", "table": T, "to": VERSION, "options": {...}}
    {"do": "sql", "table": T, "statements": [...], "options": {...}}   the statements name the table {table}

A service is compaction, log_compaction or clustering (scheduled, and run if `run` says so; with an instant
that plan is run), clean, archive, rollback, savepoint or restore (the last three of an instant).

Every answer has "ok"; when it is false, "error" says why.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TextIO

Request = dict[str, object]

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # What the JVM compiles at length would not be run often enough to pay.
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Hudi 1.2.0 takes vectors of ORC for those of Parquet where Spark generates code (ClassCastException).
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


class Referee:
    """A Spark session with Hudi's bundle."""

    def __init__(self, jar: str) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("referee").config("spark.jars", jar)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def read(self, request):
        settings = {key: text for key, text in request["options"].items() if key.startswith("spark.")}
        for key, text in settings.items():
            self.spark.conf.set(key, text)
        frame = self.spark.read.format("hudi").options(**request["options"]).load(request["table"])
        if request.get("where"):
            frame = frame.where(request["where"])
        if request.get("columns"):
            frame = frame.select(*request["columns"])
        frame.coalesce(1).write.parquet(request["to"])
        for key in settings:
            self.spark.conf.unset(key)
        return {}

    def write(self, request):
        rows = self.spark.read.parquet(request["rows"])
        rows.write.format("hudi").options(**request["options"]).mode("append").save(request["table"])
        return {}

    def stream(self, request):
        """Stream the Parquet files of a folder, one a batch, until all are written."""
        rows = self.spark.readStream.schema(request["columns"]).option("maxFilesPerTrigger", 1)
        writer = rows.parquet(request["source"]).writeStream.format("hudi").options(**request["options"])
        writer = writer.option("checkpointLocation", request["checkpoint"]).trigger(availableNow=True)
        writer.start(request["table"]).awaitTermination()
        return {}

    def sql(self, request):
        """Run statements on a table, registered under a name for them, with options as settings."""
        settings = self.spark.conf
        for key, value in request["options"].items():
            settings.set(key, value)
        self.spark.sql("CREATE TABLE asked USING hudi LOCATION '{}'".format(request["table"]))
        try:
            for statement in request["statements"]:
                self.spark.sql(statement.format(table="asked"))
        finally:
            self.spark.sql("DROP TABLE asked")
            for key in request["options"]:
                settings.unset(key)
        return {}

    def timeline(self, request):
        instants = self._meta_client(request["table"]).getActiveTimeline().getInstants()
        return {
            "instants": [
                [at.requestedTime(), at.getCompletionTime(), at.getAction(), at.getState().toString()]
                for at in instants
            ]
        }

    def files(self, request):
        """List the files that the metadata table names; an error if Hudi does not take it for a table's."""
        hudi = self.spark._jvm.org.apache.hudi
        client = self._meta_client(request["table"])
        context = hudi.common.engine.HoodieLocalEngineContext(client.getStorageConf())
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        metadata = hudi.metadata.HoodieBackedTableMetadata(
            context, client.getStorage(), config, request["table"]
        )
        if not metadata.enabled():
            raise ValueError("there is no metadata table")
        root = hudi.storage.StoragePath(request["table"])
        files = {}
        for partition in metadata.getAllPartitionPaths():
            path = hudi.storage.StoragePath(root, partition) if partition else root
            found = metadata.getAllFilesInPartition(path)
            files[partition] = {each.getPath().getName(): each.getLength() for each in found}
        metadata.close()
        return {"files": files}

    def compact(self, request):
        jvm = self.spark._jvm
        nothing = jvm.org.apache.hudi.common.util.Option.empty()
        client = self._write_client(request["table"], request["options"])
        try:
            scheduled = client.scheduleCompaction(nothing)
            if not scheduled.isPresent():
                return {"instant": None}
            instant = scheduled.get()
            client.commitCompaction(instant, client.compact(instant), nothing)
            return {"instant": instant}
        finally:
            client.close()

    def service(self, request):
        client = self._write_client(request["table"], request["options"])
        what, instant = request["what"], request.get("instant")
        nothing = self.spark._jvm.org.apache.hudi.common.util.Option.empty()
        at_instant = {
            "rollback": client.rollback,
            "savepoint": lambda time: client.savepoint(time, "referee", ""),
            "restore": client.restoreToSavepoint,
        }
        plans = {
            "compaction": (
                client.scheduleCompaction,
                lambda time: client.commitCompaction(time, client.compact(time), nothing),
            ),
            "log_compaction": (
                client.scheduleLogCompaction,
                lambda time: client.commitLogCompaction(time, client.logCompact(time), nothing),
            ),
            "clustering": (client.scheduleClustering, lambda time: client.cluster(time, True)),
        }
        try:
            if what in at_instant:
                at_instant[what](instant)
            elif what in plans:
                schedule, run = plans[what]
                if instant is None:
                    scheduled = schedule(nothing)
                    instant = scheduled.get() if scheduled.isPresent() else None
                if instant and request["run"]:
                    run(instant)
            else:
                {"clean": client.clean, "archive": client.archive}[what]()
        finally:
            client.close()
        return {"instant": instant}

    def change_version(self, request):
        hudi = self.spark._jvm.org.apache.hudi
        client = self._write_client(request["table"], request["options"])
        try:
            hudi.table.upgrade.UpgradeDowngrade(
                self._meta_client(request["table"]),
                client.getConfig(),
                client.getEngineContext(),
                hudi.table.upgrade.SparkUpgradeDowngradeHelper.getInstance(),
            ).run(hudi.common.table.HoodieTableVersion.fromVersionCode(request["to"]), None)
        finally:
            client.close()
        return {}

    def _meta_client(self, table):
        hudi = self.spark._jvm.org.apache.hudi
        hadoop = self.spark._jsc.hadoopConfiguration()
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        return hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(table).build()

    def _write_client(self, table, options):
        jvm = self.spark._jvm
        settings = jvm.java.util.HashMap()
        for name, value in options.items():
            settings.put(name, value)
        scala_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(settings)
        no_table_name = jvm.scala.Option.apply(None)
        session = self.spark._jsparkSession
        return jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient(
            session, table, scala_map, no_table_name
        )


def serve(referee: Referee, answers: TextIO) -> None:
    """Answer requests until standard input ends."""
    names = ("sql", "read", "write", "stream", "timeline", "files", "compact", "service", "change_version")
    actions = {name: getattr(referee, name) for name in names}
    print(json.dumps({"ok": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True, **actions[request["do"]](request)}
        except Exception as error:  # the client raises it
            answer = {"ok": False, "error": str(error)[:6000]}
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """Serve on this process's standard streams; what the JVM prints goes to standard error."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    referee = Referee(sys.argv[1])
    serve(referee, answers)
    referee.spark.stop()


if __name__ == "__main__":
    main()
