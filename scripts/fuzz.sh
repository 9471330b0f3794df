#!/usr/bin/env bash
# scripts/fuzz.sh [--structured] [SECONDS] [TARGET...]: fuzzes for about so many seconds in all, each target for its share: those of
# fuzz_readers, with --structured those of fuzz_pipeline as well, or those named. MONET_FUZZ_JOBS targets run side by side.
# It starts from the committed corpora, the tests' small networks, and libonnx-testdata's single-operator models when they are installed.
# New inputs stay in build/fuzz. An input that crashes, takes over 10 s or over 2 GB is kept there and makes this fail; where mappings are
# searched it may take 60 s, for sanitizers make that search 30 times slower.
set -euo pipefail
cd "$(dirname "$0")/.."
readers=(yaml onnx npy operator_log core_costs space gemms cluster kernel_table parallel formats cifar10 idx npy_images execute)
pipeline=(schedule optimise graph core backward chip training report compare store spaces)
names=("${readers[@]}")
if [ "${1:-}" = --structured ]; then
  names+=("${pipeline[@]}")
  shift
fi
seconds=${1:-60}
[ $# -lt 2 ] || names=("${@:2}")
jobs=${MONET_FUZZ_JOBS:-$(nproc)}
work=build/fuzz
share=$((seconds * jobs / ${#names[@]}))
[ "$share" -gt 0 ] || share=1

program_of() {
  case " ${readers[*]} " in
    *" $1 "*) echo "$work/fuzz/fuzz_readers" ;;
    *) echo "$work/fuzz/fuzz_pipeline" ;;
  esac
}

# Seconds that one input may take.
limit_of() {
  case $1 in
    schedule | optimise | core | backward | chip) echo 60 ;;
    *) echo 10 ;;
  esac
}

# The folders that a target starts from. Formats share seeds.
seeds_of() {
  case $1 in
    onnx | execute | schedule | optimise | graph | core | backward) echo fuzz/corpus/onnx "$work/networks" fuzz/corpus/execute ;;
    chip) echo fuzz/corpus/yaml fuzz/chips fuzz/chips/cores data/hardware data/hardware/cores ;;
    training) echo fuzz/training data/training ;;
    yaml) echo fuzz/corpus/yaml fuzz/training data/training data/hardware data/hardware/cores tests/fixtures/zigzag/layers ;;
    operator_log) echo tests/fixtures/remat ;;
    cluster | kernel_table) echo fuzz/corpus/$1 data/cluster ;;
    gemms) echo fuzz/corpus/gemms data/workload/gemm ;;
    report | compare) echo fuzz/corpus/report ;;
    *) echo "fuzz/corpus/$1" ;;
  esac
}

collect_networks() {
  mkdir -p "$work/networks"
  tar -xf tests/fixtures/training/networks.tar -C "$work/networks"
  find "$work/networks" -name '*.onnx' -size +3k -delete
  local testdata=/usr/share/libonnx-testdata/data/node
  [ ! -d "$testdata" ] ||
    find "$testdata" -name model.onnx -size -4k -exec sh -c 'cp -u "$1" "$2/$(basename "$(dirname "$1")").onnx"' _ {} "$work/networks" \;
}

fuzz() {
  local name=$1 log=$work/$1.log
  local corpus=$work/corpus_$name
  mkdir -p "$corpus"
  local seeds=()
  for folder in $(seeds_of "$name"); do
    [ ! -d "$folder" ] || seeds+=("$folder")
  done
  if MONET_FUZZ_TARGET=$name UBSAN_OPTIONS=print_stacktrace=1 "$(program_of "$name")" -max_total_time="$share" -timeout="$(limit_of "$name")" -rss_limit_mb=2048 \
    -malloc_limit_mb=2048 -max_len=16384 -dict="$work/dictionary" -artifact_prefix="$work/crash_${name}_" -print_final_stats=1 -print_funcs=0 \
    "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    echo "$name: $(grep -m1 number_of_executed_units "$log" | grep -o '[0-9]*$') executions, no report"
  else
    echo "$name failed; the input is in $work:" >&2
    grep -v '^#' "$log" | tail -n 60 >&2
    return 1
  fi
}

collect_networks
MONET_FUZZ_DICTIONARY=$work/dictionary "$(program_of "${names[0]}")"
status=0
running=0
for name in "${names[@]}"; do
  if [ "$running" -ge "$jobs" ]; then
    wait -n || status=1
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || status=1
  running=$((running - 1))
done
exit $status
