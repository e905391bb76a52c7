"""Fetch AWS's lock client for DynamoDB, which Hudi's lock provider uses; print the class path.

Taken from this project's own `.tools/ivy-locks`, and from Maven Central by the resolver inside PySpark.
Run it with a Python that has PySpark 3.5. Hudi's class around it is not in the Spark bundle, and its jar,
hudi-aws 1.2.0, is not on Maven Central.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts import hudi_bundle

NAME, VERSION = "dynamodb-lock-client", "1.2.0"
COORDINATES = f"com.amazonaws:{NAME}:{VERSION}"
FOLDER = Path(__file__).parents[1] / ".tools/ivy-locks"


def class_path() -> str | None:
    """Return the class path of the client and all that it needs, None where it was not fetched."""
    jars = [path.name for path in (FOLDER / "jars").glob("*.jar")]
    is_whole = f"com.amazonaws_{NAME}-{VERSION}.jar" in jars and any("awssdk_dynamodb" in jar for jar in jars)
    return f"{FOLDER}/jars/*" if is_whole else None


def main() -> int:
    """Run the command line."""
    if class_path() is None:
        hudi_bundle.fetch(COORDINATES, FOLDER, transitive=True)
    found = class_path()
    if found is None:
        print(f"{COORDINATES} could not be fetched.", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
