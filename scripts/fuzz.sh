#!/usr/bin/env bash
# scripts/fuzz.sh SECONDS [NAME...]: runs the libFuzzer targets (all, or those named) in build/fuzz side by side from the committed corpus,
# and from libonnx-testdata's single-operator models when they are installed.
# New inputs stay in build/fuzz; an input that crashes is kept there and makes this fail.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
names=("${@:2}")
[ ${#names[@]} -gt 0 ] || names=(yaml onnx npy core_costs operator_log space)
running=()
for name in "${names[@]}"; do
  work=build/fuzz/corpus_$name
  mkdir -p "$work"
  seeds=("fuzz/corpus/$name")
  testdata=/usr/share/libonnx-testdata/data/node
  if [ "$name" = onnx ] && [ -d "$testdata" ]; then seeds+=("$testdata"); fi
  (
    build/fuzz/fuzz/fuzz_$name -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -max_len=65536 \
      -artifact_prefix="build/fuzz/crash_${name}_" -print_final_stats=1 \
      "$work" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1
  ) &
  running+=("$!:$name")
done
status=0
for entry in "${running[@]}"; do
  name=${entry#*:}
  if wait "${entry%%:*}"; then
    echo "fuzz_$name: $(grep -m1 'number_of_executed_units' "build/fuzz/$name.log"), no crash"
  else
    status=1
    echo "fuzz_$name failed:" >&2
    tail -n 40 "build/fuzz/$name.log" >&2
  fi
done
exit $status
