#!/usr/bin/env bash
# Builds MONET and models two training steps: ResNet-18 on an edge chip and GPT-2 on a data-centre chip.
# Works on a fresh Debian 12 with git and bash, as root or with sudo.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/common.sh

ensure_packages "${packages_build[@]}"
say "building (build/release)"
build release --target monet

out=${1:-out}
for experiment in edge_resnet18_cifar fusemax_gpt2; do
  say "monet run examples/$experiment.yaml -o $out/$experiment"
  build/release/apps/monet/monet run "examples/$experiment.yaml" -o "$out/$experiment"
done
