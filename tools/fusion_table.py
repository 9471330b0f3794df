#!/usr/bin/env python3
"""Fusion searched by cost against the original study's objectives, automatic stacks and none, as the table in docs/results.md.

    tools/fusion_table.py build/release/apps/monet/monet [NETWORK ...]
"""

import json
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Network, system; batch 1, Adam.
CASES = [
    ("resnet18", "tpu_like_quad_core"),
    ("resnet18", "edge_tpu"),
    ("resnet18", "fusemax"),
    ("gpt2", "fusemax"),
]
OBJECTIVES = ["latency", "energy"]
NAMES = {"best": "search", "none": "none", "auto": "automatic", "fewest-groups": "fewest groups", "least-traffic": "least traffic"}


def run(monet: str, network: str, system: str, objective: str) -> tuple[dict, float]:
    """The result and the CPU seconds that it took."""
    command = [monet, "optimise", "fusion", "--hardware", f"data/hardware/{system}.yaml", "--jobs", "2"]
    command += ["--workload", f"data/workload/{network}.onnx", "--batch", "1", "--training", "data/training/adam.yaml"]
    command += ["--objective", objective, "--json", "-"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return json.loads(done.stdout), after.ru_utime - before.ru_utime


def main() -> None:
    monet = str(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:]
    for network, system in CASES:
        if wanted and network not in wanted:
            continue
        print(f"\n### {network}, training, batch 1, on {system}\n")
        print("| objective | method | latency, Mcycles | energy, mJ | off-chip, MB | gap |")
        print("|---|---|---:|---:|---:|---:|")
        spent = []
        for objective in OBJECTIVES:
            result, seconds = run(monet, network, system, objective)
            spent.append(f"{objective} {seconds:.0f} s")
            for row in result["compared"]:
                value = row["latency_cycles"] if objective == "latency" else row["energy_pj"]
                cells = [f"{row['latency_cycles'] / 1e6:,.2f}", f"{row['energy_pj'] / 1e9:,.2f}", f"{row['offchip_bytes'] / 1e6:,.1f}"]
                print(f"| {objective} | {NAMES[row['name']]} | " + " | ".join(cells) + f" | {100 * (value / result['bound'] - 1):.1f} % |")
            print(f"| {objective} | bound | " + (f"{result['bound'] / 1e6:,.2f} | |" if objective == "latency" else f"| {result['bound'] / 1e9:,.2f} |") + " | |")
        print("\nCPU: " + ", ".join(spent))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
