#!/usr/bin/env bash
# Writes the lock files (hashes, no addresses) from pyproject.toml. Run after changing a dependency: make lock
set -euo pipefail
cd "$(dirname "$0")/.."
compile=(.venv/bin/uv pip compile -q pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url)
"${compile[@]}" --extra querydata -o requirements.lock "$@"
"${compile[@]}" --extra querydata --group dev -o requirements-dev.lock "$@"
echo hatchling | .venv/bin/uv pip compile -q - --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --with editables -o requirements-build.lock 2>/dev/null || printf 'hatchling\neditables\n' | .venv/bin/uv pip compile -q - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -o requirements-build.lock
