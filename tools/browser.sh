#!/usr/bin/env bash
# The browser that the page's tests drive: Debian's chromium, with a font that has Chinese characters.
set -euo pipefail
if command -v chromium >/dev/null && [ "$(fc-list 2>/dev/null | grep -ci 'noto.*cjk')" != 0 ]; then exit 0; fi
if ! command -v apt-get >/dev/null; then echo "setup: no apt-get here; browser tests will be skipped" >&2; exit 0; fi
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi; }
echo "setup: installing chromium and fonts-noto-cjk for the browser tests"
as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-noto-cjk fontconfig >/dev/null ||
  echo "setup: chromium could not be installed; browser tests will be skipped (in CI: fail)" >&2
