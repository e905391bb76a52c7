#!/usr/bin/env bash
# Write the lock files in requirements/ anew. Arguments go to uv, for example --upgrade.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    local out=$1
    shift
    echo "lock: $out"
    .tools/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --output-file "requirements/$out" "$@"
}
everything=(pyproject.toml --all-extras --group dev)
compile tools.lock requirements/tools.in "$@"
compile dev.lock "${everything[@]}" --group demo "$@"
compile docs.lock pyproject.toml --group docs "$@"
compile bench.lock pyproject.toml --all-extras --group bench "$@"
compile oldest.lock "${everything[@]}" --resolution lowest-direct "$@"
compile referee.lock requirements/referee.in "$@"
compile pypaimon.lock requirements/pypaimon.in "$@"
