"""Who takes part: each peer's command, and what it needs to be there."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts import jdk

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(__file__).parent / "scripts"
SPARK35_NEWEST_JDK = 21
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Where this is set, each Python worker compiles all modules anew: about a second and a half each."""

HUDI = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",)
DELTA = ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2")
ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0",)
KAFKA = (
    "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.1",
    "org.apache.kafka:kafka-clients:3.4.1",
    "org.apache.commons:commons-pool2:2.11.1",
)
"""What Spark 3.5 reads topics with."""
PAIMON = ("org.apache.paimon:paimon-spark-3.5:0.9.0",)


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer.

    Attributes:
        name: as the tables call it.
        engine: `embedded`, `spark`, `slice`, or the suite of its own: whose table it is in.
        kind: `mor` if it writes changes beside the rows, `cow` if it writes files anew.
        script: file in `scripts/`, or `binary` for a program that `BENCH_HUDI_RS_BINARY` names.
        args: what the script gets after the folders of the data and of its table.
        reads: the peer whose table it reads, or whose files it imitates; it runs after that one.
        jars: Maven coordinates; a peer with jars runs on PySpark 3.5.
        module: package that it needs; pypaimon needs an older pyarrow, and so an environment of its own.
        task: text in the command lines of processes whose largest is watched, rather than all together.
        beside: the peer that its seconds are compared with, if not the first of its table.
        rows_max: it is left out of larger runs, which would take it many minutes; 0 for none.
    """

    name: str
    engine: str
    kind: str
    script: str
    args: tuple[str, ...] = ()
    reads: str = ""
    jars: tuple[str, ...] = ()
    module: str = "pyarrow"
    task: str = ""
    beside: str = ""
    rows_max: int = 0


LOCAL_MOR, LOCAL_COW = "drawstring-mor", "drawstring-cow"
SPARK_MOR, SPARK_COW = "drawstring-spark-mor", "drawstring-spark-cow"
READ_ONLY = "hudi-rs-read"
WITH_LOGS = "-with-logs"
LARGE_SLICE = "large-slice"
SCALING_MOR, SCALING_COW = "drawstring-bucket-mor", "drawstring-simple-cow"
INDEXES, INDEXES_SPARK = "bucket-mor", "spark-bucket-mor"
HUDI_INDEXES = (("bucket", "mor"), ("bloom", "mor"), ("bucket", "cow"), ("bloom", "cow"), ("simple", "cow"))
"""Each index and kind of table that Hudi takes part with."""
INDEXES_SCRIPT = "indexes_drawstring.py"
MEMORY, MEMORY_SPARK = "memory", "memory-spark"
SOAK, TIMELINE = "soak", "timeline"
METADATA, METADATA_SPARK, METADATA_KEYS = "metadata", "metadata-spark", "metadata-keys"
WRITERS_COW, WRITERS_MOR, WRITERS_NBCC = "writers-cow", "writers-mor", "writers-nbcc"
WRITERS_DELTA, WRITERS_ICEBERG = "writers-delta-rs", "writers-pyiceberg"
SERVICES, FILES, LARGE_GROUP = "services", "small-files", "large-group"
STREAMS, STREAMS_SCRIPT = "streams", "streams_spark.py"
LAYOUTS = ("avro", "native", "lsm")
LAYOUT_LSM, LAYOUT_PAIMON, LAYOUT_PYPAIMON = "layout-lsm", "layout-paimon", "layout-pypaimon"
LSM_JVM = "lsm_jvm.py"
PYPAIMON_PYTHON = "BENCH_PYPAIMON_PYTHON"
TPCH_MOR, TPCH_COW = "lineitem-mor", "lineitem-cow"
TPCH_SPARK_MOR, TPCH_SPARK_COW = "lineitem-spark-mor", "lineitem-spark-cow"
LINEITEM, LINEITEM_SPARK = "lineitem_local.py", "lineitem_spark.py"
LOADS_MOR, LOADS_COW = "loads-mor", "loads-cow"
LOADS_SPARK_MOR, LOADS_SPARK_COW = "loads-spark-mor", "loads-spark-cow"
LOADS, LOADS_SPARK = "loads_local.py", "loads_spark.py"
MERGES_MOR, MERGES_COW = "merges-mor", "merges-cow"
MERGES = "merges.py"
JVM_SYSTEMS = {"hudi": HUDI, "delta": DELTA, "iceberg": ICEBERG, "paimon": PAIMON}
"""What `scripts/spark_tables.py` runs beside drawstring: merge on read each."""


def on_spark(index: str, kind: str) -> str:
    """Return the name of the peer that is drawstring on Spark with an index."""
    return f"spark-{index}-{kind}"


def on_cores(kind: str, cores: int) -> str:
    """Return the name of the peer that is drawstring on some of the machine's cores."""
    return f"cores-{cores}-{kind}"


def of_hudi(index: str, kind: str) -> str:
    """Return the name of the peer that is Hudi with an index."""
    return f"indexes-hudi-{index}-{kind}"


PEERS = (
    Peer(LOCAL_MOR, "embedded", "mor", "drawstring_local.py", ("mor",)),
    Peer(LOCAL_COW, "embedded", "cow", "drawstring_local.py", ("cow",)),
    Peer("pyarrow-plain", "embedded", "cow", "floor.py"),
    Peer("pyarrow-mor", "embedded", "mor", "floor.py", reads=LOCAL_MOR),
    Peer("pyarrow-cow", "embedded", "cow", "floor.py", reads=LOCAL_COW),
    Peer("delta-rs", "embedded", "cow", "delta_rs.py", module="deltalake"),
    Peer(READ_ONLY, "embedded", "mor", "hudi_rs.py", reads=LOCAL_MOR, module="hudi"),
    Peer("hudi-rs-rc-mor", "embedded", "mor", "binary", ("mor",)),
    Peer("hudi-rs-rc-cow", "embedded", "cow", "binary", ("cow",)),
    Peer(LARGE_SLICE, "slice", "mor", "large_slice.py"),
    Peer(SPARK_MOR, "spark", "mor", "drawstring_spark.py", ("mor",), module="pyspark"),
    Peer(SPARK_COW, "spark", "cow", "drawstring_spark.py", ("cow",), module="pyspark"),
    Peer("hudi-mor-bucket", "spark", "mor", "hudi_jvm.py", ("mor", "bucket"), jars=HUDI),
    Peer("hudi-cow-bloom", "spark", "cow", "hudi_jvm.py", ("cow", "bloom"), jars=HUDI),
    Peer("delta-dv", "spark", "mor", "delta_jvm.py", jars=DELTA),
    Peer("iceberg-mor", "spark", "mor", "iceberg_jvm.py", jars=ICEBERG),
    Peer("paimon", "spark", "mor", "paimon_jvm.py", jars=PAIMON),
    Peer(SCALING_MOR, "scaling", "mor", "scaling_drawstring.py", ("mor", "bucket")),
    Peer(SCALING_COW, "scaling", "cow", "scaling_drawstring.py", ("cow", "simple")),
    Peer("drawstring-bloom-cow", "scaling", "cow", "scaling_drawstring.py", ("cow", "bloom")),
    Peer("delta-rs-merge", "scaling", "cow", "scaling_delta_rs.py", module="deltalake"),
    Peer("hudi-bucket-mor", "scaling", "mor", "scaling_hudi_jvm.py", ("mor", "bucket"), jars=HUDI),
    Peer("hudi-bloom-cow", "scaling", "cow", "scaling_hudi_jvm.py", ("cow", "bloom"), jars=HUDI),
    *(
        Peer(f"{index}-{kind}", "indexes", kind, INDEXES_SCRIPT, ("local", kind, index))
        for kind, indexes in (
            ("mor", ("bucket", "log", "bloom", "simple")),
            ("cow", ("bucket", "bloom", "simple")),
        )
        for index in indexes
    ),
    *(
        Peer(
            on_spark(index, kind),
            "indexes-spark",
            kind,
            INDEXES_SCRIPT,
            ("spark", kind, index),
            module="pyspark",
        )
        for index, kind in (*HUDI_INDEXES, ("log", "mor"))
    ),
    *(
        Peer(
            of_hudi(index, kind),
            "indexes-hudi",
            kind,
            "indexes_hudi_jvm.py",
            (kind, index),
            jars=HUDI,
            beside=on_spark(index, kind),
        )
        for index, kind in HUDI_INDEXES
    ),
    Peer(MEMORY, "memory", "cow", "memory.py", ("local",)),
    Peer(MEMORY_SPARK, "memory", "cow", "memory.py", ("spark",), module="pyspark", task="pyspark.daemon"),
    Peer(SOAK, "soak", "mor", "soak.py", ("bucket",)),
    Peer(TIMELINE, "timeline", "mor", "timeline.py"),
    Peer(METADATA, "metadata", "cow", "metadata.py"),
    Peer("metadata-delta-rs", "metadata", "cow", "metadata_delta_rs.py", module="deltalake"),
    Peer(METADATA_SPARK, "metadata-spark", "cow", "metadata_spark.py", ("drawstring",), module="pyspark"),
    Peer("metadata-hudi", "metadata-spark", "cow", "metadata_spark.py", ("hudi",), jars=HUDI),
    Peer("metadata-delta", "metadata-spark", "cow", "metadata_spark.py", ("delta",), jars=DELTA),
    Peer("metadata-iceberg", "metadata-spark", "cow", "metadata_spark.py", ("iceberg",), jars=ICEBERG),
    Peer(METADATA_KEYS, "metadata-keys", "cow", "metadata_index.py"),
    Peer(WRITERS_COW, "writers", "cow", "writers_drawstring.py", ("cow", "simple")),
    Peer(WRITERS_MOR, "writers", "mor", "writers_drawstring.py", ("mor", "bucket")),
    Peer(WRITERS_NBCC, "writers", "mor", "writers_drawstring.py", ("mor", "bucket", "non_blocking")),
    Peer(WRITERS_DELTA, "writers", "cow", "writers_delta_rs.py", module="deltalake"),
    Peer(WRITERS_ICEBERG, "writers", "cow", "writers_pyiceberg.py", module="pyiceberg"),
    Peer(TPCH_MOR, "tpch", "mor", LINEITEM, ("drawstring", "mor")),
    Peer(TPCH_COW, "tpch", "cow", LINEITEM, ("drawstring", "cow")),
    Peer("lineitem-delta-rs", "tpch", "cow", LINEITEM, ("delta_rs",), module="deltalake"),
    Peer("lineitem-pyiceberg", "tpch", "cow", LINEITEM, ("pyiceberg",), module="pyiceberg", rows_max=60_000),
    Peer("lineitem-lance", "tpch", "mor", LINEITEM, ("lance",), module="lance"),
    *(
        Peer(name, "tpch-spark", kind, LINEITEM_SPARK, ("drawstring", kind), module="pyspark")
        for name, kind in ((TPCH_SPARK_MOR, "mor"), (TPCH_SPARK_COW, "cow"))
    ),
    *(
        Peer(f"lineitem-{system}", "tpch-spark", "mor", LINEITEM_SPARK, (system,), jars=jars)
        for system, jars in JVM_SYSTEMS.items()
    ),
    *(
        Peer(on_cores(kind, cores), "cores", kind, "cores.py", (kind, str(cores)))
        for kind in ("mor", "cow")
        for cores in (1, 2)
    ),
    Peer(LOADS_MOR, "loads", "mor", LOADS, ("drawstring", "mor")),
    Peer(LOADS_COW, "loads", "cow", LOADS, ("drawstring", "cow")),
    Peer("loads-delta-rs", "loads", "cow", LOADS, ("delta_rs",), module="deltalake"),
    Peer("loads-lance", "loads", "mor", LOADS, ("lance",), module="lance"),
    *(
        Peer(name, "loads-spark", kind, LOADS_SPARK, ("drawstring", kind), module="pyspark")
        for name, kind in ((LOADS_SPARK_MOR, "mor"), (LOADS_SPARK_COW, "cow"))
    ),
    *(
        Peer(f"loads-{system}", "loads-spark", "mor", LOADS_SPARK, (system,), jars=jars)
        for system, jars in JVM_SYSTEMS.items()
    ),
    Peer(MERGES_MOR, "merges", "mor", MERGES, ("drawstring", "mor")),
    Peer(MERGES_COW, "merges", "cow", MERGES, ("drawstring", "cow")),
    Peer("merges-delta-rs", "merges", "cow", MERGES, ("delta_rs",), module="deltalake"),
    Peer("merges-pyiceberg", "merges", "cow", MERGES, ("pyiceberg",), module="pyiceberg"),
    Peer("merges-lance", "merges", "mor", MERGES, ("lance",), module="lance"),
    Peer("merges-pypaimon", "merges", "mor", MERGES, ("pypaimon",), module="pypaimon"),
    Peer(FILES, "files", "cow", "small_files_drawstring.py"),
    Peer("small-files-delta-rs", "files", "cow", "small_files_delta_rs.py", module="deltalake"),
    Peer(LARGE_GROUP, "group", "mor", "large_compaction.py", ("default",)),
    Peer(f"{LARGE_GROUP}-lsm", "group", "mor", "large_compaction.py", ("lsm",)),
    *(Peer(f"layout-{name}", "lsm", "mor", "lsm.py", (name,)) for name in LAYOUTS),
    *(
        Peer(f"layout-{name}", "lsm", "mor", LSM_JVM, (name,), jars=HUDI)
        for name in ("hudi-avro", "hudi-parquet")
    ),
    Peer(LAYOUT_PAIMON, "lsm", "mor", LSM_JVM, ("paimon",), jars=PAIMON),
    Peer(LAYOUT_PYPAIMON, "lsm", "mor", "lsm_pypaimon.py", module="pypaimon"),
    Peer(SERVICES, "services", "mor", "services_drawstring.py", module="pyspark"),
    Peer("services-hudi", "services", "mor", "services_hudi_jvm.py", jars=HUDI),
    Peer("services-delta", "services", "mor", "services_delta_jvm.py", jars=DELTA),
    Peer("services-iceberg", "services", "mor", "services_iceberg_jvm.py", jars=ICEBERG),
    Peer("services-paimon", "services", "mor", "services_paimon_jvm.py", jars=PAIMON),
    Peer(STREAMS, STREAMS, "mor", "streams_drawstring.py"),
    Peer("streams-spark", STREAMS, "mor", STREAMS_SCRIPT, ("drawstring",), module="pyspark"),
    Peer("streams-hudi", STREAMS, "mor", STREAMS_SCRIPT, ("hudi",), jars=HUDI + KAFKA),
    Peer("streams-delta", STREAMS, "mor", STREAMS_SCRIPT, ("delta",), jars=DELTA + KAFKA),
)
_SUITE_OF = {
    "scaling": "scaling",
    "indexes": "indexes",
    "indexes-spark": "indexes",
    "indexes-hudi": "indexes",
    "memory": "memory",
    "soak": "soak",
    "timeline": "timeline",
    "metadata": "metadata",
    "metadata-spark": "metadata",
    "metadata-keys": "metadata",
    "writers": "writers",
    "lsm": "lsm",
    "tpch": "tpch",
    "tpch-spark": "tpch",
    "cores": "cores",
    "loads": "lakeloader",
    "loads-spark": "lakeloader",
    "merges": "merges",
    "files": "services",
    "group": "services",
    "services": "services",
    "streams": "streams",
}
SUITES = {
    suite: tuple(peer for peer in PEERS if _SUITE_OF.get(peer.engine, "rides") == suite)
    for suite in ("rides", *dict.fromkeys(_SUITE_OF.values()))
}
BY_NAME = {peer.name: peer for peer in PEERS}


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a peer."""

    words: tuple[str, ...]
    env: dict[str, str]


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a peer cannot take part, and what to do about it."""

    why: str


def command(peer: Peer, data: Path, tables: Path) -> Command | Missing:
    """Return how to start a peer, or what it lacks."""
    if peer.script == "binary":
        return _binary(peer, data, tables)
    env = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    if peer.module == "pyspark" or peer.jars:
        home = jdk.find(newest=SPARK35_NEWEST_JDK) if peer.jars else jdk.find()
        if home is None:
            return Missing(jdk.advice())
        env["JAVA_HOME"] = home
    python, jars = sys.executable, ""
    if peer.jars:
        found = [_jar(coordinates) for coordinates in peer.jars]
        if lacking := [one for one, jar in zip(peer.jars, found, strict=True) if jar is None]:
            return Missing("no jar; get it with: " + "; ".join(map(_maven, lacking)))
        python, jars = _spark35(), ",".join(map(str, found))
        if not Path(python).exists():
            return Missing(
                f"no PySpark 3.5 at {python}: run `make setup-interop` or set BENCH_SPARK35_PYTHON"
            )
    elif peer.module == "pypaimon":
        python = os.environ.get(PYPAIMON_PYTHON) or str(ROOT / ".venv-pypaimon/bin/python")
        if not Path(python).exists():
            return Missing(f"no pypaimon at {python}: run `make setup-pypaimon` or set {PYPAIMON_PYTHON}")
    elif importlib.util.find_spec(peer.module) is None:
        return Missing(f"package {peer.module} is not installed")
    script = str(SCRIPTS / peer.script)
    folders = _folders(peer, data, tables)
    return Command((python, script, *folders, *([jars] if jars else []), *peer.args), env)


def _folders(peer: Peer, data: Path, tables: Path) -> tuple[str, ...]:
    """Return the data, the peer's own table, and the table whose files it imitates."""
    if peer.script == "hudi_rs.py":
        return str(data), str(tables / f"{peer.reads}{WITH_LOGS}")
    imitated = (str(tables / peer.reads),) if peer.reads else ()
    return str(data), str(tables / peer.name), *imitated


def _binary(peer: Peer, data: Path, tables: Path) -> Command | Missing:
    program = os.environ.get("BENCH_HUDI_RS_BINARY")
    if not program:
        return Missing("needs a program built on hudi-rs 0.6.0-rc.1: name it in BENCH_HUDI_RS_BINARY")
    return Command((program, str(data), str(tables), *peer.args), dict(os.environ))


def _spark35() -> str:
    return os.environ.get("BENCH_SPARK35_PYTHON") or str(ROOT / ".venv-referee/bin/python")


def _jar(coordinates: str) -> Path | None:
    """Find a jar in the local Maven repository, or where Spark's resolver puts it."""
    group, name, version = coordinates.split(":")
    maven = Path.home() / ".m2/repository" / group.replace(".", "/") / name / version
    places = [maven / f"{name}-{version}.jar"]
    folders = (ROOT / ".tools/ivy", Path.home() / ".ivy2", Path.home() / ".ivy2.5.2")
    places += [ivy / "jars" / f"{group}_{name}-{version}.jar" for ivy in folders]
    return next((place for place in places if place.is_file()), None)


def _maven(coordinates: str) -> str:
    return f"mvn dependency:get -Dartifact={coordinates} -Dtransitive=false"
