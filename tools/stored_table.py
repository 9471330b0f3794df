#!/usr/bin/env python3
"""Bytes stored for the backward part of the reference networks, as the table in docs/training.md.

    tools/stored_table.py build/dev/apps/monet/monet
"""

import json
import pathlib
import subprocess
import sys
import tempfile

BATCH = 1


def stored(monet: str, network: pathlib.Path, policy: str) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as training:
        training.write(f"store: {policy}\n")
        training.flush()
        command = [monet, "graph", network, "--batch", str(BATCH), "--training", training.name]
        result = subprocess.run([*command, "--json", "-"], capture_output=True, check=True)
    return json.loads(result.stdout)


def main() -> None:
    monet = sys.argv[1]
    networks = pathlib.Path(__file__).resolve().parent.parent / "data" / "workload"
    print("| network, batch 1 | pytorch-eager | minimal | | arena, eager | arena, minimal |")
    print("|---|---:|---:|---:|---:|---:|")
    for network in sorted(networks.glob("*.onnx")):
        eager = stored(monet, network, "pytorch-eager")
        minimal = stored(monet, network, "minimal")
        before, after = (run["stored_activations_bytes"] for run in (eager, minimal))
        arenas = []
        for run in (eager, minimal):
            memory = run["memory"]
            exact = "" if memory["arena_bytes"] == memory["arena_bound_bytes"] else " (not tight)"
            arenas.append(f"{memory['arena_bytes']:,}{exact}")
        print(
            f"| {network.stem} | {before:,} | {after:,} | {after / before:.1%} "
            f"| {arenas[0]} | {arenas[1]} |"
        )


if __name__ == "__main__":
    main()
