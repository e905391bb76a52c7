"""Run Apache Hudi's SQL tests: `python -m tests.conformance ANSWERS.json FILE.scala[:pattern of names]...`.

`ENGINE=hudi` runs them on Apache Hudi's bundle (`HUDI_BUNDLE_JAR`, PySpark 3.5), else on drawstring.
Cases that ANSWERS has are not run again. `--compare DRAWSTRING.json HUDI.json` prints the cases that differ.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.conformance.interpreter import Interpreter, TimeOut

ENGINE = os.environ.get("ENGINE", "drawstring")
CASE_SECONDS_MAX = int(os.environ.get("CASE_SECONDS", "240"))
SMALL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
HUDI = {
    "spark.jars": os.environ.get("HUDI_BUNDLE_JAR", ""),
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
SMALL_HUDI = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    **{f"hoodie.{each}.shuffle.parallelism": "2" for each in ("upsert", "insert", "bulkinsert", "delete")},
}
UPSTREAM, PARTLY, DIFFERS, ACCEPTS, UNTRANSLATED = (
    "as upstream",
    "as upstream, some checks not translated",
    "differs",
    "accepts what upstream refuses",
    "not translated",
)


def session(folder: str) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={folder}"
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraJavaOptions", options)
    if ENGINE == "hudi":
        configuration = Path(folder, "conf")
        configuration.mkdir()
        lines = (f"{key} {value}\n" for key, value in SMALL_HUDI.items())
        (configuration / "hudi-defaults.conf").write_text("".join(lines))
        os.environ["HUDI_CONF_DIR"] = str(configuration)
    settings = {
        **SMALL,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **(HUDI if ENGINE == "hudi" else {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if ENGINE != "hudi":
        import drawstring.spark

        drawstring.spark.register(spark)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def judged(case: dict[str, Any]) -> str:
    """Return the result of a case beside what upstream expects."""
    kinds = Counter(each["kind"] for each in case["checks"])
    if kinds["wrong"] or kinds["error"] or case["ended"]:
        return DIFFERS
    if kinds["accepted"]:
        return ACCEPTS
    if not kinds and (case["untranslated"] or not case["statements"]):
        return UNTRANSLATED
    return PARTLY if case["untranslated"] else UPSTREAM


def time_is_over(*_: Any) -> None:
    raise TimeOut


def run(answers: Path, files: list[str]) -> None:
    found = json.loads(answers.read_text()) if answers.exists() else {}
    folder = tempfile.mkdtemp(prefix=f"conformance-{ENGINE}-")
    signal.signal(signal.SIGALRM, time_is_over)
    try:
        interpreter = Interpreter(session(folder), folder)
        for each in files:
            path, _, pattern = each.partition(":")
            for name, body in interpreter.cases(Path(path)):
                key = f"{Path(path).stem} / {name}"
                if key in found or not re.search(pattern, name):
                    continue
                start = time.monotonic()
                signal.alarm(CASE_SECONDS_MAX)
                case = asdict(interpreter.run(key, body))
                signal.alarm(0)
                found[key] = case | {"seconds": round(time.monotonic() - start, 1)}
                print(f"{judged(case)}: {key}, {found[key]['seconds']} s", flush=True)
                answers.write_text(json.dumps(found, indent=1, default=str))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        *(f"{count:4} {result}" for result, count in Counter(map(judged, found.values())).most_common()),
        sep="\n",
    )


def show(answers: Path, pattern: str) -> None:
    """Print what differs from upstream."""
    for key, case in json.loads(answers.read_text()).items():
        bad = [each for each in case["checks"] if each["kind"] not in ("right", "refused")]
        if not re.search(pattern, key) or not (bad or case["ended"]):
            continue
        print(f"## {key} ({len(case['statements'])} statements) {case['ended']} {case['untranslated'][:1]}")
        for each in bad[:3]:
            details = each.get("message") or f"found {each.get('found')}\n      wanted {each.get('wanted')}"
            print(f"   {each['kind']} {' '.join(each['sql'].split())[:400]}\n      {details[:600]}")


def outcomes(case: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the outcomes of a case that do not depend on the engine's texts."""
    return [
        (each["kind"], json.dumps(each.get("found"), sort_keys=True) if each["kind"] == "wrong" else "")
        for each in case["checks"]
    ]


def compare(ours: Path, theirs: Path) -> None:
    """Print the cases whose outcomes differ between two runs, and how many are alike."""
    left, right = json.loads(ours.read_text()), json.loads(theirs.read_text())
    both = [key for key in left if key in right]
    differing = [key for key in both if outcomes(left[key]) != outcomes(right[key])]
    for key in differing:
        print(f"## {key}\n   here: {judged(left[key])}, there: {judged(right[key])}")
    print(f"{len(both)} cases in both, {len(differing)} differ")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--compare", ours, theirs]:
            compare(Path(ours), Path(theirs))
        case ["--show", answers, *pattern]:
            show(Path(answers), pattern[0] if pattern else "")
        case [answers, *files] if files:
            run(Path(answers).absolute(), files)
        case _:
            sys.exit(__doc__)
