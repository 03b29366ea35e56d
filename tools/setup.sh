#!/usr/bin/env bash
# Makes .venv from the lock file. Usage: tools/setup.sh [dev]. Idempotent; a fresh Debian needs nothing but Python >= 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-run}
stamp=.venv/.stamp-$what
if [ -f "$stamp" ] && [ "$stamp" -nt requirements.lock ] && [ "$stamp" -nt pyproject.toml ]; then exit 0; fi

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
  echo "setup: this needs root: $*" >&2; return 1; fi; }

python=""
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate; break
  fi
done
[ -n "$python" ] || { echo "setup: Python 3.11 or later is needed (set PYTHON=/path/to/python)" >&2; exit 1; }

if [ ! -x .venv/bin/python ]; then
  echo "setup: creating .venv with $($python --version)"
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "setup: installing python3-venv (Debian ships Python without it)"
    as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
  fi
  "$python" -m venv .venv
fi
echo "setup: installing locked packages ($what)"
lock=requirements.lock
[ "$what" = dev ] && lock=requirements-dev.lock
.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r "$lock"
.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements-build.lock
.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
touch "$stamp"
