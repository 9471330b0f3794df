#!/usr/bin/env bash
# Builds MONET and models three training steps: ResNet-18 on an edge chip, GPT-2 on a data-centre chip, and a small GPT-2 with groups and cores searched for; then explores
# a small space of chips.
# Works on a fresh Debian 12 with git and bash, as root or with sudo.
# MONET_PRESET names another build to use, where there is one already.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/common.sh

ensure_packages "${packages_build[@]}"
preset=${MONET_PRESET:-release}
say "building (build/$preset)"
build "$preset" --target monet

out=${1:-out}
for experiment in edge_resnet18_cifar fusemax_gpt2 quad_core_gpt2_nano_optimised; do
  say "monet run examples/$experiment.yaml -o $out/$experiment --jobs 0"
  "build/$preset/apps/monet/monet" run "examples/$experiment.yaml" -o "$out/$experiment" --jobs 0
done
say "monet explore examples/spaces/small_edge.yaml -o $out/small_edge_space --jobs 0"
"build/$preset/apps/monet/monet" explore examples/spaces/small_edge.yaml -o "$out/small_edge_space" --jobs 0
