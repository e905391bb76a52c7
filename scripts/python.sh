#!/usr/bin/env bash
# Print the path of a Python 3.11 or later, or say how to get one.
set -u
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
    [ -n "$candidate" ] || continue
    found=$("$candidate" -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null)
    [ -n "$found" ] && echo "$found" && exit 0
done
echo "Python 3.11 or later is needed, and none was found (looked for \$PYTHON, python3, python3.11 to 3.14)." >&2
if command -v apt-get >/dev/null; then
    echo "Get it with: sudo apt-get install python3 python3-venv" >&2
elif command -v dnf >/dev/null; then
    echo "Get it with: sudo dnf install python3.12" >&2
elif command -v brew >/dev/null; then
    echo "Get it with: brew install python@3.12" >&2
else
    echo "Get it from python.org or your system's packages." >&2
fi
exit 1
