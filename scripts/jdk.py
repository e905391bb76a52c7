"""Print the home of a JDK that Spark can run on; without one, say which is needed and how to get it.

    python scripts/jdk.py            # 17 or later
    python scripts/jdk.py --newest 21

Exits with 1 and prints nothing on standard output when there is none. Standard library only.
"""

from __future__ import annotations

import argparse
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = 17
NEWEST = 99


def candidates() -> Iterator[Path]:
    """Yield folders that may be a Java home, the user's own choice first."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
    for pattern in (
        "/usr/lib/jvm/*",
        "/opt/java/*",
        "/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "/opt/homebrew/opt/openjdk*",
        "/usr/local/opt/openjdk*",
        str(Path.home() / ".sdkman/candidates/java/*"),
    ):
        yield from map(Path, sorted(glob.glob(pattern), reverse=True))


def major_version(home: Path) -> int | None:
    """Return the major version of the Java at `home`, None when there is none that runs."""
    try:
        told = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match else None


def find(oldest: int = OLDEST, newest: int = NEWEST) -> str | None:
    """Return the first Java home with a version in the range."""
    for home in candidates():
        version = major_version(home)
        if version is not None and oldest <= version <= newest:
            return str(home)
    return None


def advice(oldest: int = OLDEST, newest: int = NEWEST) -> str:
    """Say what is needed and how this system installs it."""
    wanted = f"JDK {oldest} or later" if newest == NEWEST else f"JDK {oldest} to {newest}"
    looked = "looked at JAVA_HOME, PATH and the usual folders"
    return f"No {wanted} found ({looked}). Get it with: {_command(oldest)}"


def _command(version: int) -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install openjdk-{version}-jdk-headless (or default-jdk-headless)"
    if shutil.which("dnf"):
        return f"sudo dnf install java-{version}-openjdk-headless (or java-latest-openjdk-headless)"
    if platform.system() == "Darwin":
        return f"brew install openjdk@{version}"
    return f"your system's packages, or adoptium.net (Temurin {version}), and set JAVA_HOME"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--newest", type=int, default=NEWEST)
    newest = parser.parse_args().newest
    home = find(newest=newest)
    if home is None:
        print(advice(newest=newest), file=sys.stderr)
        return 1
    print(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
