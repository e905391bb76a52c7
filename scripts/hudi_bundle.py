"""Fetch Apache Hudi's Spark bundle, the reference that tests/interop compares with; print its path.

Taken from, in this order: the file that HUDI_BUNDLE_JAR names, the local Maven repository, `mvn`,
and the resolver inside PySpark (which asks Maven Central and needs no Maven). Run it with a Python
that has PySpark 3.5.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

GROUP, NAME, VERSION = "org.apache.hudi", "hudi-spark3.5-bundle_2.12", "1.2.0"
COORDINATES = f"{GROUP}:{NAME}:{VERSION}"
SHA1 = "3f67a3f29a8f914ecb55a2aeacf2298dced576d3"
LOCAL = Path.home() / ".m2/repository" / GROUP.replace(".", "/") / NAME / VERSION / f"{NAME}-{VERSION}.jar"
IVY = Path.home() / ".ivy2/jars" / f"{GROUP}_{NAME}-{VERSION}.jar"


def is_whole(jar: Path) -> bool:
    """Tell whether the jar is there and is the released one."""
    if not jar.is_file():
        return False
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest() == SHA1


def present() -> Path | None:
    """Return the jar if this machine has it."""
    if named := os.environ.get("HUDI_BUNDLE_JAR"):
        if not Path(named).is_file():
            sys.exit(f"HUDI_BUNDLE_JAR names no file: {named}")
        return Path(named)
    return next((jar for jar in (LOCAL, IVY) if is_whole(jar)), None)


def fetch_with_maven() -> None:
    """Let Maven put the jar into the local repository."""
    command = ["mvn", "-q", "-B", "dependency:get", f"-Dartifact={COORDINATES}", "-Dtransitive=false"]
    subprocess.run(command, stdout=sys.stderr, check=False)


def fetch_with_spark() -> None:
    """Let the resolver that spark-submit uses for --packages put it into ~/.ivy2."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway(SparkConf())
    try:
        resolver = gateway.jvm.org.apache.spark.deploy.SparkSubmitUtils
        nothing = gateway.jvm.scala.Option.apply(None)
        settings = resolver.buildIvySettings(nothing, nothing, False)
        exclusions = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
        resolver.resolveMavenCoordinates(COORDINATES, settings, nothing, False, exclusions, False)
    finally:
        gateway.shutdown()


def main() -> int:
    """Run the command line."""
    jar = present()
    if jar is None and shutil.which("mvn"):
        fetch_with_maven()
        jar = present()
    if jar is None:
        fetch_with_spark()
        jar = present()
    if jar is None:
        print(f"{COORDINATES} could not be fetched; set HUDI_BUNDLE_JAR to the file.", file=sys.stderr)
        return 1
    print(jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
