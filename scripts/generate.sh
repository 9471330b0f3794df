#!/bin/bash
# generate.sh [--check]: writes what follows from a record, into sources and documents. After it the tree is as before,
# unless a record changed. With --check it writes nothing, and fails if a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tools/figures.py "$@" # docs/*.schema.json: figures of results
# Tables of options, where a build has the writer (the test docs.options runs it after each build).
writer=build/dev/apps/monet/monet_help_pages
[ ! -x "$writer" ] || "$writer" --sources . "$@"
