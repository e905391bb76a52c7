#!/usr/bin/env bash
# Make an environment from a lock file: scripts/venv.sh FOLDER LOCK [--project]
# --project also installs this working copy, editable. An environment made from the same lock is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 lock=$2 project=${3:-}
tools_lock=requirements/tools.lock

python=$(scripts/python.sh)
if ! cmp -s "$tools_lock" .tools/made-from; then
    echo "setup: uv into .tools"
    rm -rf .tools
    if ! "$python" -m venv .tools; then
        rm -rf .tools
        echo "Python's venv module is missing; on Debian and Ubuntu: sudo apt-get install python3-venv" >&2
        exit 1
    fi
    .tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$tools_lock"
    cp "$tools_lock" .tools/made-from
fi

key=$(cat "$lock" pyproject.toml | cksum)
if [ -x "$folder/bin/python" ] && [ "$key" = "$(cat "$folder/made-from" 2>/dev/null)" ]; then
    exit 0
fi
echo "setup: $folder from $lock"
[ -x "$folder/bin/python" ] || .tools/bin/uv venv --quiet --python "$python" "$folder"
rm -f "$folder/made-from"
.tools/bin/uv pip sync --quiet --python "$folder/bin/python" --require-hashes "$lock"
if [ "$project" = --project ]; then
    .tools/bin/uv pip install --quiet --python "$folder/bin/python" --no-deps --editable .
fi
echo "$key" >"$folder/made-from"
