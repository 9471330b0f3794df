#!/bin/bash
# generate.sh [--check]: writes what follows from a record, into sources and documents. After it the tree is as before,
# unless a record changed. With --check it writes nothing, and fails if a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tools/figures.py "$@" # docs/*.schema.json: figures of results
