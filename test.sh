#!/usr/bin/env bash
# Runs the tests: the fast and medium suites, the parsers under sanitizers, a minute of fuzzing, and the
# report in a browser. `--slow` adds the slow suite, the benches' compilation, the Python package and own threads under sanitizers, and half an hour of fuzzing all that the command line does.
# `--fuzz-seconds` sets how long is fuzzed. Installs what it needs on Debian 12.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/common.sh

slow=no
fuzz_seconds=
usage() { echo "usage: ./test.sh [--slow] [--fuzz-seconds N]"; }
while [ $# -gt 0 ]; do
  case $1 in
    --slow) slow=yes ;;
    --fuzz-seconds) fuzz_seconds=${2:?--fuzz-seconds needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

ensure_packages "${packages_build[@]}" "${packages_test[@]}" "${packages_fuzz[@]}" "${packages_browser[@]}"
if [ "$slow" = yes ]; then ensure_packages "${packages_slow[@]}"; fi
ensure_node

check_reports() {
  build/dev/apps/monet/monet run examples/study/gpt_fused.yaml -o build/browser_report --jobs 0 >/dev/null
  tests/browser/run.sh
  tests/browser/run.sh build/browser_report/report.html
  build/dev/tests/cli/cli_test --gtest_brief=1 --gtest_filter='HostilePages.*' # leaves pages
  tests/browser/run.sh --hostile build/dev/hostile_pages
}

if [ "$slow" = yes ]; then export MONET_SLOW=ON; else export MONET_SLOW=OFF; fi
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
beside web/check_bundle.sh
say "building (build/dev)"
build dev
say "viewer bundle rebuilt and compared"
join_besides

# Packages come from a registry and a browser waits: beside what keeps processors busy.
beside check_reports

say "parsers under address and undefined-behaviour sanitizers (build/fuzz)"
build fuzz --target base_test hardware_test mapping_file_test workload_test robustness_test fuzz_readers
run_tests --preset fuzz -j2 -R '^(base|hardware|mapping_file|workload|robustness)\.'

say "fuzzing (build/fuzz)"
if [ "$slow" = yes ]; then # fuzz_pipeline needs every stage built once more
  build fuzz --target fuzz_pipeline
  scripts/fuzz.sh --structured "${fuzz_seconds:-1800}"
else
  scripts/fuzz.sh "${fuzz_seconds:-60}"
fi

say "the report in a browser"
join_besides

labels='fast|medium'
if [ "$slow" = yes ]; then
  labels="$labels|slow"
  say "properties on cases of 40 other seeds"
  scripts/properties.sh 40
  say "wrong calls of the Python package under sanitizers (build/asan-ubsan)"
  build asan-ubsan --target monet_python monet_python_files
  run_tests --preset asan-ubsan -R '^python\.'
  say "own threads under the thread sanitizer (build/tsan)"
  build tsan --target base_test core_cost_test schedule_test optimise_core_test optimise_exact_test explore_store_test
  run_tests --preset tsan -R '^(base|core_cost|schedule|optimise_core|optimise_exact|explore_store)\.'
fi

say "tests labelled $labels"
ctest --preset dev -j2 --no-tests=error --output-on-failure -L "$labels"
