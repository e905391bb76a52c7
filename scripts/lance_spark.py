"""Fetch Lance's connector for Spark, by which Apache Hudi reads and writes Lance base files; print its jars.

Taken from this project's own `.tools/ivy-lance`, and from Maven Central by the resolver inside PySpark, with
all that it needs: 250 MB. Run it with a Python that has PySpark 3.5.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts import hudi_bundle

GROUP, NAME, VERSION = "org.lance", "lance-spark-3.5_2.12", "0.4.0"
COORDINATES = f"{GROUP}:{NAME}:{VERSION}"
FOLDER = Path(__file__).parents[1] / ".tools/ivy-lance"
SHA1 = {
    f"{GROUP}_{NAME}-{VERSION}.jar": "c0335b5f7abc11c3da30451ec6ef2318f68866f6",
    f"{GROUP}_lance-spark-base_2.12-{VERSION}.jar": "75a6d26872f33a600adf39a6e2e1ab2a0786cfeb",
    f"{GROUP}_lance-core-4.0.0.jar": "e3865ea1ffd744af9f5c2e6aab4e81d04676ef08",
}
"""Lance's own jars; those of others are fetched with them."""


def jars() -> list[Path]:
    """Return the connector and all that it needs, nothing where it was not fetched."""
    folder = FOLDER / "jars"
    is_whole = all(hudi_bundle.is_whole(folder / name, sha1) for name, sha1 in SHA1.items())
    return sorted(folder.glob("*.jar")) if is_whole else []


def fetched() -> list[Path]:
    """Return the jars, fetched if they are not there."""
    return jars() or hudi_bundle.in_attempts(
        lambda: hudi_bundle.fetch(COORDINATES, FOLDER, transitive=True), jars
    )


def main() -> int:
    """Run the command line."""
    found = fetched()
    if not found:
        print(f"{COORDINATES} could not be fetched.", file=sys.stderr)
        return 1
    print(",".join(map(str, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
