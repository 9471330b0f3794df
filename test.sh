#!/usr/bin/env bash
# Builds and tests MONET at one of three levels; installs the packages it needs on Debian 12.
#   ./test.sh         the product and the fast suite, with invariants checked after every stage
#   ./test.sh --full  also the command line, parsers under sanitizers, a minute of fuzzing, reports in a browser, the Python
#                     package, the installed package and every example: what continuous integration runs
#   ./test.sh --slow  also many more cases, properties with other seeds, thread sanitizer, validation tables, half an hour of
#                     fuzzing and every command of the documents
# --fuzz-seconds N sets the time of fuzzing.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/common.sh

level=fast
fuzz_seconds=
usage() { echo "usage: ./test.sh [--full | --slow] [--fuzz-seconds N]"; }
while [ $# -gt 0 ]; do
  case $1 in
    --full) level=full ;;
    --slow) level=slow ;;
    --fuzz-seconds) fuzz_seconds=${2:?--fuzz-seconds needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
export MONET_TEST_LEVEL=$level
export MONET_UNITY=${MONET_UNITY:-ON} # for a new build folder; one that exists keeps its setting
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

ensure_packages "${packages_build[@]}" "${packages_fast[@]}"
if [ "$level" = fast ]; then
  say "building (build/dev)"
  build dev -DMONET_PYTHON=OFF --target fast_tests
  say "fast tests"
  exec ctest --preset dev -j2 --no-tests=error -L fast
fi

ensure_packages "${packages_full[@]}"
[ "$level" = full ] || ensure_packages "${packages_slow[@]}"
ensure_node

check_reports() {
  build/dev/apps/monet/monet run examples/study/gpt_fused.yaml -o build/browser_report --jobs 0 >/dev/null
  build/dev/tests/cli_test --gtest_brief=1 --gtest_filter='HostilePages.*' # leaves pages
  tests/browser/run.sh
  tests/browser/run.sh build/browser_report/report.html
  tests/browser/run.sh --hostile build/dev/hostile_pages
}

targets=(medium_tests)
labels='fast|medium'
if [ "$level" = slow ]; then
  targets=(all slow_tests)
  labels="$labels|slow"
fi
in_background web/check_bundle.sh
say "building (build/dev)"
build dev -DMONET_PYTHON=ON --target "${targets[@]}"
say "viewer bundle rebuilt and compared"
join_background

# Chromium and the package registry leave the processors idle at times.
in_background check_reports

say "fuzzing the parsers under address and undefined-behaviour sanitizers (build/fuzz)"
if [ "$level" = full ]; then
  build fuzz --target fuzz_readers
  scripts/fuzz.sh "${fuzz_seconds:-60}"
else
  build fuzz --target readers_test fuzz_readers fuzz_pipeline
  run_tests --preset fuzz -j2 -R '^readers\.'
  scripts/fuzz.sh --structured "${fuzz_seconds:-1800}"
fi

say "reports in a browser"
join_background

if [ "$level" = slow ]; then
  say "properties with 40 other seeds"
  scripts/properties.sh 40
  say "wrong calls of the Python package under sanitizers (build/asan-ubsan)"
  build asan-ubsan --target monet_python monet_python_files
  run_tests --preset asan-ubsan -R '^python\.'
  say "threads under the thread sanitizer (build/tsan)"
  build tsan --target readers_test core_cost_test schedule_test optimise_test explore_test
  MONET_TEST_LEVEL=fast run_tests --preset tsan -R '^(readers|core_cost|schedule|optimise|explore)\.'
fi

say "tests labelled $labels"
ctest --preset dev -j2 --no-tests=error -L "$labels"
