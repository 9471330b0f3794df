#!/bin/bash
# generate.sh [--check]: writes what follows from a record, into sources and documents. After it the tree is as before,
# unless a record changed. With --check it writes nothing, and fails if a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tools/figures.py "$@" # docs/*.schema.json: figures of results
[ $# -eq 0 ] || exit 0 # the test docs.options checks the tables of options with the writer that was just built
writer=build/dev/apps/monet/monet_help_pages
if [ -x "$writer" ]; then
  "$writer" --sources .
else
  echo "generate: build monet_help_pages to write the tables of options as well" >&2
fi
