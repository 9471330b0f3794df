#!/bin/sh
# Opens reports in headless Chromium and checks what they show. With no report: only the made-up ones.
# Usage: tests/browser/run.sh [--screenshot OUT.png] [REPORT.html]..., or --hostile FOLDER with pages of hostile names,
# or --tutorials RESULTS DIR, which makes the pictures of docs/tutorials (screenshots.mjs says from what).
# Needs node, npm (the registry, the first time) and Debian's chromium. Packages go to BUILD_DIR (default build/browser).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${BUILD_DIR:-$here/../../build/browser}
mkdir -p "$work"
cp "$here/package.json" "$here/package-lock.json" "$work/"
(cd "$work" && npm ci --no-audit --no-fund --loglevel=error)
export MODULES="$work/node_modules"
if [ "${1:-}" = --tutorials ]; then
  shift
  exec node "$here/screenshots.mjs" "$@"
fi
exec node "$here/browser_test.mjs" "$@"
