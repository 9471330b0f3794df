#!/usr/bin/env python3
"""The experiments in examples/study, as the tables in docs/results.md.

    tools/study_table.py build/release/apps/monet/monet
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHES = [1, 2, 4, 8, 16, 32]
LORA = [
    ("full training", "study/full"),
    ("adapters of rank 8", "study/lora"),
    ("full training, fused", "edge_resnet18_cifar_fused"),
    ("adapters of rank 8, fused", "study/lora_fused"),
]
WAYS = [
    ("layer by layer", "layer_by_layer"),
    ("fused", "fused"),
    ("checkpointed", "checkpointed"),
    ("both", "fused_checkpointed"),
]
SEARCHED = ("both, groups searched", "searched")


def run(monet: str, experiment: str, *options: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        command = [monet, "run", f"examples/{experiment}.yaml", "-o", folder, *options]
        done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr.decode()}")
        return json.loads((pathlib.Path(folder) / "result.json").read_text())


def before_update(step: dict, key: str) -> float:
    return sum(phase[key] for phase in step["phases"] if phase["phase"] != "update")


def offchip(step: dict) -> float:
    return sum(layer["offchip_bytes"] for layer in step["layers"])


def table(headings: list[str], rows: list[list]) -> None:
    print("| " + " | ".join(headings) + " |")
    print("|---|" + "---:|" * (len(headings) - 1))
    for row in rows:
        cells = [f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row]
        print("| " + " | ".join(cells) + " |")
    print()


def batches(monet: str) -> None:
    latency, energy = [], []
    for batch in BATCHES:
        whole, split, unfused = (
            run(monet, f"study/{name}", "--batch", str(batch))
            for name in ("batch", "batch_split", "batch_unfused_update")
        )
        for rows, key, unit in ((latency, "latency_cycles", 1e6), (energy, "energy_pj", 1e9)):
            steps = [step[key] / unit for step in (whole, split, unfused)]
            bare = [before_update(step, key) / unit for step in (whole, split)]
            alone = whole["inference"][key] / unit
            rows.append([batch, *steps, *bare, alone, steps[0] / batch, bare[0] / batch])
    headings = ["step", "images over cores", "Adam unfused", "without optimiser", "the same, images over cores"]
    headings += ["inference", "step, an image", "without optimiser, an image"]
    print("Latency, Mcycles:\n")
    table(["batch", *headings], latency)
    print("Energy, mJ:\n")
    table(["batch", *headings], energy)


def owners(step: dict) -> list:
    parts = ("parameters", "gradients", "optimizer_state", "stored_activations", "temporaries")
    return [step["memory"][f"{part}_bytes"] / 1e6 for part in parts]


def lora(monet: str) -> None:
    rows = []
    memory = []
    for name, file in LORA:
        step = run(monet, file)
        apart = not file.endswith("fused")  # else updates run with their gradients
        bare = before_update(step, "latency_cycles") / 1e6 if apart else "-"
        macs = step["macs"]
        products = [macs[part] / 1e9 for part in ("forward", "backward_input", "backward_weight")]
        figures = [step["latency_cycles"] / 1e6, bare, step["energy_pj"] / 1e9, offchip(step) / 1e6]
        rows.append([name, *products, *figures])
        memory.append([name, step["peak_memory_bytes"] / 1e6, *owners(step)])
    headings = ["", "forward, GMAC", "dX, GMAC", "dW, GMAC", "latency, Mcycles", "before the update", "energy, mJ"]
    table([*headings, "off-chip, MB"], rows)
    print("Live at the peak, MB:\n")
    table(["", "all", "parameters", "gradients", "moments", "stored activations", "temporaries"], memory)


def ways(monet: str, network: str) -> None:
    rows = []
    for name, suffix in WAYS + [SEARCHED] * (network == "gpt"):
        step = run(monet, f"study/{network}_{suffix}")
        compared = step.get("optimise", {}).get("compared")
        stored = f"{compared[-1]['stored_activations_bytes'] / 1e6:,.2f}" if compared else "all"
        figures = [step["latency_cycles"] / 1e6, step["energy_pj"] / 1e9, offchip(step) / 1e6]
        figures += [step["peak_memory_bytes"] / 1e6, stored, step["macs"]["total"] / 1e9]
        rows.append([name, *figures])
    headings = ["latency, Mcycles", "energy, mJ", "off-chip, MB", "peak live, MB", "stored, MB", "GMAC"]
    table(["", *headings], rows)


def main() -> None:
    monet = str(pathlib.Path(sys.argv[1]).resolve())
    batches(monet)
    lora(monet)
    for network in ("resnet18", "gpt"):
        print(f"{network}:\n")
        ways(monet, network)


if __name__ == "__main__":
    main()
