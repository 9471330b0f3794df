#!/usr/bin/env bash
# scripts/tidy.sh [FOLDER...]: clang-tidy's checks of .clang-tidy over the sources below FOLDER (default: src apps).
# Needs a configured build for its compile_commands.json: BUILD_DIR (default build/dev). Minutes, so not part of test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build/dev}
[ -f "$build/compile_commands.json" ] || { echo "error: $build/compile_commands.json is missing: cmake --preset dev" >&2; exit 1; }
tidy=$(command -v clang-tidy-16) || { echo "error: no clang-tidy-16 (its Debian package; 14 lacks std::source_location)" >&2; exit 1; }
[ $# -gt 0 ] || set -- src apps
# g++'s own warning options are unknown to clang.
find "$@" -name '*.cpp' -print0 | sort -z |
  xargs -0 -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
