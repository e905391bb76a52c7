"""Fetch Apache Hudi's Spark bundle, the reference that tests/interop compares with; print its path.

Taken from, in this order: the file that HUDI_BUNDLE_JAR names, the local Maven repository, this
project's own `.tools/ivy`, and Maven Central by the resolver inside PySpark (which needs no Maven).
Run it with a Python that has PySpark 3.5.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

GROUP, NAME, VERSION = "org.apache.hudi", "hudi-spark3.5-bundle_2.12", "1.2.0"
COORDINATES = f"{GROUP}:{NAME}:{VERSION}"
SHA1 = "3f67a3f29a8f914ecb55a2aeacf2298dced576d3"
MAVEN = Path.home() / ".m2/repository" / GROUP.replace(".", "/") / NAME / VERSION / f"{NAME}-{VERSION}.jar"
IVY_FOLDER = Path(__file__).parents[1] / ".tools/ivy"
IVY = IVY_FOLDER / "jars" / f"{GROUP}_{NAME}-{VERSION}.jar"
ATTEMPTS = 3

Found = TypeVar("Found")


def is_whole(jar: Path, sha1: str = SHA1) -> bool:
    """Tell whether the jar is there and is the released one."""
    if not jar.is_file():
        return False
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest() == sha1


def present() -> Path | None:
    """Return the jar if this machine has it."""
    if named := os.environ.get("HUDI_BUNDLE_JAR"):
        if not Path(named).is_file():
            sys.exit(f"HUDI_BUNDLE_JAR names no file: {named}")
        return Path(named)
    return next((jar for jar in (MAVEN, IVY) if is_whole(jar)), None)


def fetch(coordinates: str = COORDINATES, into: Path = IVY_FOLDER, *, transitive: bool = False) -> None:
    """Let the resolver that spark-submit uses for --packages put jars into a folder."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway(SparkConf())
    try:
        resolver = gateway.jvm.org.apache.spark.deploy.SparkSubmitUtils
        option = gateway.jvm.scala.Option
        folder = option.apply(str(into))
        settings = resolver.buildIvySettings(option.apply(None), folder, False)
        exclusions = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
        resolver.resolveMavenCoordinates(
            coordinates, settings, option.apply(None), transitive, exclusions, False
        )
    finally:
        gateway.shutdown()


def in_attempts(fetch_once: Callable[[], None], found: Callable[[], Found]) -> Found:
    """Fetch jars, more than once if the network fails, and return what is found then."""
    for attempt in range(ATTEMPTS):
        time.sleep(10 * attempt)
        try:
            fetch_once()
        except Exception as error:  # a Java exception; what it says is all that there is to say
            print(f"attempt {attempt + 1} of {ATTEMPTS}: {error}", file=sys.stderr)
        if found():
            break
    return found()


def main() -> int:
    """Run the command line."""
    jar = present() or in_attempts(fetch, present)
    if jar is None:
        print(f"{COORDINATES} could not be fetched; set HUDI_BUNDLE_JAR to the file.", file=sys.stderr)
        return 1
    print(jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
