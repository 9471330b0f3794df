#!/usr/bin/env python3
"""Fused against layer by layer, as the tables in docs/results.md. Every invariant is checked.

    tools/fused_table.py build/release/apps/monet/monet [NETWORK ...]
"""

import json
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Network, batch, system, options of the training step.
CASES = [
    ("resnet18_cifar", 4, "tpu_like_quad_core", "adam"),
    ("resnet18_cifar", 4, "edge_tpu", "adam"),
    ("resnet18", 1, "tpu_like_quad_core", "adam"),
    ("resnet18", 1, "edge_tpu", "adam"),
    ("gpt2", 1, "fusemax", "adam"),
]
MODES = ["layer-by-layer", "fused"]
HEADINGS = ["latency, Mcycles", "energy, mJ", "off-chip, MB", "peak live, MB", "peak on-chip, MB", "tiles"]


def run(monet: str, network: str, batch: int, system: str, training: str, mode: str) -> tuple[dict, float]:
    """The result of the step and of inference, and the CPU seconds they took."""
    command = [monet, "schedule", "--hardware", f"data/hardware/{system}.yaml"]
    command += ["--workload", f"data/workload/{network}.onnx", "--batch", str(batch)]
    command += ["--training", f"data/training/{training}.yaml", "--mode", mode, "--verify", "--json", "-"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return json.loads(done.stdout), after.ru_utime - before.ru_utime


def figures(step: dict) -> list[float]:
    offchip = sum(layer["offchip_bytes"] for layer in step["layers"])
    onchip = sum(core["peak_memory_bytes"] for core in step["cores"][:-1])
    tiles = sum(core["tiles"] for core in step["cores"])
    return [
        step["latency_cycles"] / 1e6,
        step["energy_pj"] / 1e9,
        offchip / 1e6,
        step["peak_memory_bytes"] / 1e6,
        onchip / 1e6,
        tiles,
    ]


def row(what: str, numbers: list[float]) -> str:
    cells = [f"{n:,.2f}" if n < 100 else f"{n:,.0f}" for n in numbers[:-1]] + [f"{numbers[-1]:,}"]
    return f"| {what} | " + " | ".join(cells) + " |"


def main() -> None:
    monet = str(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:]
    for network, batch, system, training in CASES:
        if wanted and network not in wanted:
            continue
        results = {mode: run(monet, network, batch, system, training, mode) for mode in MODES}
        print(f"\n### {network}, batch {batch}, on {system}\n")
        print("| | " + " | ".join(HEADINGS) + " |")
        print("|---|" + "---:|" * len(HEADINGS))
        for kind in ("inference", "training"):
            pair = []
            for mode in MODES:
                result = results[mode][0]
                pair.append(figures(result["inference"] if kind == "inference" else result))
                print(row(f"{kind}, {mode}", pair[-1]))
            gain = [f"{after / before:.2f}" for before, after in zip(*pair)]
            print(f"| {kind}, ratio | " + " | ".join(gain[:-1]) + " | |")
        print("\nCPU with checks: " + ", ".join(f"{mode} {results[mode][1]:.1f} s" for mode in MODES))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
