#!/usr/bin/env bash
# Runs the properties (RapidCheck) of the tests of build/dev on cases of other seeds than ctest's.
#   scripts/properties.sh [SEEDS] [FIRST]
# RC_PARAMS="seed=N" repeats the cases of a seed that failed.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-40} first=${2:-2}
properties=$(grep -rhoE 'RC_GTEST_PROP\(\w+, *\w+' tests | sed -E 's/RC_GTEST_PROP\((\w+), */\1./' | paste -sd:)
mapfile -t binaries < <(for binary in $(find build/dev/tests -type f -executable -name '*_test'); do
  "$binary" --gtest_filter="$properties" --gtest_list_tests 2>/dev/null | grep -q '^  ' && echo "$binary"
done)
[ ${#binaries[@]} -gt 0 ] || { echo "properties: build/dev has no tests" >&2; exit 1; }
log=$(mktemp) failed=0
for ((seed = first; seed < first + seeds; ++seed)); do
  for binary in "${binaries[@]}"; do
    RC_PARAMS="seed=$seed" "$binary" --gtest_filter="$properties" >"$log" 2>&1 && continue
    cat "$log" >&2
    echo "properties: $binary failed with RC_PARAMS=\"seed=$seed\"" >&2
    failed=1
  done
done
rm -f "$log"
[ "$failed" -eq 0 ] && echo "$seeds seeds, ${#binaries[@]} binaries: all properties hold"
exit "$failed"
