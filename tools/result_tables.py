#!/usr/bin/env python3
"""Prints the tables of docs/results.md and docs/explanation/training-memory.md.

    tools/result_tables.py build/release/apps/monet/monet fused [NETWORK ...]

fused       fused and layer-by-layer steps, inference and training, with every invariant checked
fusion      fusion searched by cost, the original study's objectives, automatic stacks and no fusion
stored      bytes that the reference networks store for the backward pass
study       the experiments in examples/study
images      cycles per image of automatic schedules, by batch size
memories    automatic schedules on chips with scaled memories of their arrays
allocation  searched, automatic and random allocations
pairs       both gradients of products in one operator and in two, layer by layer
spaces      designs of hardware spaces, and the processor time of one design
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MONET = ""  # path of the monet program, from the command line
CHIPS = ("edge_tpu", "tpu_like_quad_core", "fusemax")
STEPS = ("inference", "sgd", "adam")
SLACK = 1.02  # cycles above this factor times the minimum so far count as growth


def execute(*command: object) -> bytes:
    """Runs a command and returns its standard output."""
    words = [MONET, *map(str, command)]
    done = subprocess.run(words, capture_output=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr.decode()}")
    return done.stdout


def run(*command: object) -> tuple[dict, float]:
    """Returns the JSON result of a command and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = json.loads(execute(*command, "--json", "-"))
    return result, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def step_of(network: str, batch: int, chip: str | Path, training: str) -> list[object]:
    """Returns the options of a step; `training` is a file name, or "inference" for none."""
    hardware = chip if isinstance(chip, Path) else f"data/hardware/{chip}.yaml"
    options = ["--hardware", hardware, "--workload", f"data/workload/{network}.onnx", "--batch", batch]
    return options if training == "inference" else [*options, "--training", f"data/training/{training}.yaml"]


def table(headings: list[str], rows: Iterator[list] | list[list], words: int = 1) -> None:
    """Prints each row as soon as it is computed; the first `words` columns are not numbers."""
    print("| " + " | ".join(headings) + " |")
    print("|" + "---|" * words + "---:|" * (len(headings) - words))
    for row in rows:
        cells = [f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row]
        print("| " + " | ".join(cells) + " |", flush=True)
    print()


def offchip_mb(step: dict) -> float:
    return sum(layer["offchip_bytes"] for layer in step["layers"]) / 1e6


# --- Fusion ------------------------------------------------------------------------------------


def fused(wanted: list[str]) -> None:
    def row(what: str, step: dict) -> list:
        onchip = sum(core["peak_memory_bytes"] for core in step["cores"][:-1]) / 1e6
        return [what, step["latency_cycles"] / 1e6, step["energy_pj"] / 1e9, offchip_mb(step),
                step["peak_memory_bytes"] / 1e6, onchip, f"{sum(core['tiles'] for core in step['cores']):,}"]

    for network, batch, chip in (("resnet18_cifar", 4, "tpu_like_quad_core"), ("resnet18_cifar", 4, "edge_tpu"),
                                 ("resnet18", 1, "tpu_like_quad_core"), ("resnet18", 1, "edge_tpu"),
                                 ("gpt2", 1, "fusemax")):
        if wanted and network not in wanted:
            continue
        found = {mode: run("schedule", *step_of(network, batch, chip, "adam"), "--mode", mode, "--verify")
                 for mode in ("layer-by-layer", "fused")}
        rows = []
        for kind in ("inference", "training"):
            pair = [row(f"{kind}, {mode}", result["inference"] if kind == "inference" else result)
                    for mode, (result, _) in found.items()]
            rows += [*pair,
                     [f"{kind}, ratio", *(after / before for before, after in zip(*(one[1:-1] for one in pair))), ""]]
        print(f"### {network}, batch {batch}, on {chip}\n")
        table(["", "latency, Mcycles", "energy, mJ", "off-chip, MB", "peak live, MB", "peak on-chip, MB", "tiles"],
              rows)
        print("CPU with checks: " + ", ".join(f"{mode} {spent:.1f} s" for mode, (_, spent) in found.items()) + "\n")


def fusion(wanted: list[str]) -> None:
    names = {"best": "search", "none": "none", "auto": "automatic", "fewest-groups": "fewest groups",
             "least-traffic": "least traffic"}
    for network, chip in (("resnet18", "tpu_like_quad_core"), ("resnet18", "edge_tpu"), ("resnet18", "fusemax"),
                          ("gpt2", "fusemax")):
        if wanted and network not in wanted:
            continue
        rows, spent = [], []
        for objective, key, unit in (("latency", "latency_cycles", 1e6), ("energy", "energy_pj", 1e9)):
            result, seconds = run("optimise", "fusion", "--with-original", *step_of(network, 1, chip, "adam"), "--jobs", 2,
                                  "--objective", objective)
            spent.append(f"{objective} {seconds:.0f} s")
            for one in result["compared"]:
                gap = f"{100 * (one[key] / result['bound'] - 1):.1f} %"
                rows.append([objective, names[one["name"]], one["latency_cycles"] / 1e6, one["energy_pj"] / 1e9,
                             f"{one['offchip_bytes'] / 1e6:,.1f}", gap])
            bound = [result["bound"] / unit, ""] if objective == "latency" else ["", result["bound"] / unit]
            rows.append([objective, "bound", *bound, "", ""])
        print(f"### {network}, training, batch 1, on {chip}\n")
        table(["objective", "method", "latency, Mcycles", "energy, mJ", "off-chip, MB", "gap"], rows, 2)
        print("CPU: " + ", ".join(spent) + "\n")


def allocation(wanted: list[str]) -> None:
    def row(what: str, network: str, batch: int, training: str, mode: str) -> list:
        result, seconds = run("optimise", "allocation", *step_of(network, batch, "tpu_like_quad_core", training), "--mode", mode,
                              "--seed", 1, "--evaluations", 500, "--random", 500)
        cycles = [one["latency_cycles"] / 1e6 for one in result["compared"]]
        return [what, *(f"{one:.3f}" for one in cycles), f"{result['bound'] / 1e6:.3f}", f"{100 * result['gap']:.1f} %", f"{seconds:.0f} s"]

    rows = [("resnet18, fused", "resnet18", 1, "inference", "fused"),
            ("resnet18, layer by layer", "resnet18", 1, "inference", "layer-by-layer"),
            ("mobilenet_v2, fused", "mobilenet_v2", 1, "inference", "fused"),
            ("gpt2_nano, training with Adam, fused", "gpt2_nano", 1, "adam", "fused")]
    table(["", "automatic", "best", "best of 500 random plans", "bound", "gap", "CPU"],
          (row(*one) for one in rows if not wanted or one[1] in wanted))


def pairs(wanted: list[str]) -> None:
    """Prints megacycles, layer by layer, and the off-chip megabytes of the gradients of products."""
    def row(network: str, batch: int, chip: str) -> list:
        steps = [run("schedule", *step_of(network, batch, chip, training), "--mode", "layer-by-layer")[0]
                 for training in ("adam", "adam_paired")]
        moved = [sum(value for layer in step["backward"] for key, value in layer.items() if key.endswith("_bytes"))
                 for step in steps]
        return [f"{network}, {batch}, `{chip}`", *(f"{step['latency_cycles'] / 1e6:,.3f}" for step in steps), *(one / 1e6 for one in moved)]

    rows = [("gpt2", 1, "fusemax"), ("resnet18_cifar", 4, "edge_tpu"), ("resnet18_cifar", 4, "npu_small"), ("resnet50", 1, "npu_small"),
            ("gpt2_nano", 4, "edge_tpu"), ("lstm", 1, "edge_tpu"), ("unet", 2, "edge_tpu")]
    table(["network, batch, chip", "Mcycles, separate", "paired", "MB, separate", "paired"],
          (row(*one) for one in rows if not wanted or one[0] in wanted))


# --- Spaces of hardware ------------------------------------------------------------------------


def spaces(wanted: list[str]) -> None:
    def row(space: str, budget: int | None) -> list:
        options = ["--strategy", "nsga2", "--budget", budget, "--seed", 1] if budget else []
        result, seconds = run("explore", space, "--jobs", 1, *options)
        evaluated = result["evaluated"] + result["infeasible"]
        return [f"`{space}`", f"{result['designs']:,}", f"{evaluated:,}" + (" by `nsga2`" if budget else ""), result["infeasible"],
                f"{seconds:,.0f} s", f"{seconds / evaluated:.2g} s"]

    rows: list[tuple[str, int | None]] = [
        ("examples/spaces/small_edge.yaml", None), ("data/spaces/edge_study.yaml", 100), ("data/spaces/edge.yaml", 100),
        ("data/spaces/fusemax_study.yaml", None), ("data/spaces/fusemax.yaml", 200)]
    table(["space", "designs", "evaluated", "infeasible", "CPU", "CPU a design"],
          (row(*one) for one in rows if not wanted or Path(one[0]).stem in wanted))


# --- Stored activations ------------------------------------------------------------------------


def stored(wanted: list[str]) -> None:
    def row(network: Path) -> list:
        found = []
        for policy in ("pytorch-eager", "minimal"):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as training:
                training.write(f"store: {policy}\n")
                training.flush()
                found.append(run("graph", network, "--batch", 1, "--training", training.name)[0])
        before, after = (result["stored_activations_bytes"] for result in found)
        arenas = []
        for memory in (result["memory"] for result in found):
            is_tight = memory["arena_bytes"] == memory["arena_bound_bytes"]
            arenas.append(f"{memory['arena_bytes']:,}" + ("" if is_tight else " (not tight)"))
        return [network.stem, f"{before:,}", f"{after:,}", f"{after / before:.1%}", *arenas]

    networks = sorted((ROOT / "data" / "workload").glob("*.onnx"))
    table(["network, batch 1", "pytorch-eager", "minimal", "", "arena, eager", "arena, minimal"],
          (row(network) for network in networks if not wanted or network.stem in wanted))


# --- The study ---------------------------------------------------------------------------------


def experiment(name: str, *options: object) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        execute("run", f"examples/{name}.yaml", "-o", folder, *options)
        return json.loads((Path(folder) / "result.json").read_text(encoding="utf-8"))


def before_update(step: dict, key: str) -> float:
    return sum(phase[key] for phase in step["phases"] if phase["phase"] != "update")


def study_batches() -> None:
    figures: dict[str, list[list]] = {"Latency, Mcycles": [], "Energy, mJ": []}
    for batch in (1, 2, 4, 8, 16, 32):
        steps = [experiment(f"study/{name}", "--batch", batch)
                 for name in ("batch", "batch_split", "batch_unfused_update")]
        for rows, key, unit in zip(figures.values(), ("latency_cycles", "energy_pj"), (1e6, 1e9)):
            whole = [step[key] / unit for step in steps]
            bare = [before_update(step, key) / unit for step in steps[:2]]
            rows.append([batch, *whole, *bare, steps[0]["inference"][key] / unit, whole[0] / batch, bare[0] / batch])
    for title, rows in figures.items():
        print(f"{title}:\n")
        table(["batch", "step", "images over cores", "Adam unfused", "without optimiser",
               "without optimiser, images over cores", "inference", "step, an image", "without optimiser, an image"], rows)


def study_adapters() -> None:
    rows, memory = [], []
    owners = ("parameters", "gradients", "optimizer_state", "stored_activations", "temporaries")
    for name, file in (("full training", "study/full"), ("adapters of rank 8", "study/lora"),
                       ("full training, fused", "edge_resnet18_cifar_fused"),
                       ("adapters of rank 8, fused", "study/lora_fused")):
        step = experiment(file)
        # In a fused step, updates run with their gradients.
        bare = "-" if file.endswith("fused") else before_update(step, "latency_cycles") / 1e6
        products = [step["macs"][part] / 1e9 for part in ("forward", "backward_input", "backward_weight")]
        rows.append([name, *products, step["latency_cycles"] / 1e6, bare, step["energy_pj"] / 1e9, offchip_mb(step)])
        memory.append([name, step["peak_memory_bytes"] / 1e6,
                       *(step["memory"][f"{part}_bytes"] / 1e6 for part in owners)])
    table(["", "forward, GMAC", "dX, GMAC", "dW, GMAC", "latency, Mcycles", "before the update", "energy, mJ",
           "off-chip, MB"], rows)
    print("Live at the peak, MB:\n")
    table(["", "all", "parameters", "gradients", "moments", "stored activations", "temporaries"], memory)


def study(_: list[str]) -> None:
    study_batches()
    study_adapters()
    ways = {"layer_by_layer": "layer by layer", "fused": "fused", "checkpointed": "checkpointed",
            "fused_checkpointed": "both", "searched": "both, groups searched"}

    def row(network: str, way: str) -> list:
        step = experiment(f"study/{network}_{way}")
        compared = step.get("optimise", {}).get("compared")
        kept = compared[-1]["stored_activations_bytes"] / 1e6 if compared else "all"
        return [ways[way], step["latency_cycles"] / 1e6, step["energy_pj"] / 1e9, offchip_mb(step),
                step["peak_memory_bytes"] / 1e6, kept, step["macs"]["total"] / 1e9]

    for network in ("resnet18", "gpt"):
        print(f"{network}:\n")
        table(["", "latency, Mcycles", "energy, mJ", "off-chip, MB", "peak live, MB", "stored, MB", "GMAC"],
              (row(network, way) for way in ways if network == "gpt" or way != "searched"))


# --- Automatic schedules -----------------------------------------------------------------------


def growing(cycles: list[float], cell: Callable[[int], str]) -> list[str]:
    """Returns the cells, marked where more images or memory than in an earlier cell need more cycles."""
    return [cell(i) + " **grows**" * (i > 0 and cycles[i] > SLACK * min(cycles[:i])) for i in range(len(cycles))]


def steps_of(wanted: list[str]) -> Iterator[tuple[str, str, str]]:
    return ((network, step, chip) for network in wanted or ["resnet18_cifar"] for step in STEPS for chip in CHIPS)


def images(wanted: list[str]) -> None:
    batches = (1, 4, 16, 64)

    def row(network: str, step: str, chip: str) -> list[str]:
        found = [[run("schedule", *step_of(network, batch, chip, step), "--mode", mode)[0]["latency_cycles"]
                  for mode in ("auto", "layer-by-layer")] for batch in batches]
        cycles = [auto / batch for (auto, _), batch in zip(found, batches)]
        return [network, step, chip, *growing(
            cycles, lambda i: f"{cycles[i] / 1e6:.3f} ({found[i][0] / found[i][1]:.2f})")]

    table(["network", "step", "chip", *(f"batch {batch}" for batch in batches)],
          (row(*one) for one in steps_of(wanted)), 3 + len(batches))


def write_scaled(folder: Path, share: float) -> None:
    """Writes all chips with the outermost memory of their arrays scaled by `share`."""
    shutil.copytree(ROOT / "data" / "hardware", folder)
    for path in (folder / "cores").glob("*.yaml"):
        text = path.read_text()
        if "kind: array" in text:
            largest = max(re.findall(r"size: ([0-9_]+)", text), key=int)
            path.write_text(text.replace(f"size: {largest}", f"size: {int(int(largest) * share)}"))


def memories(wanted: list[str]) -> None:
    shares = (0.5, 0.75, 1.0, 1.25, 2.0, 4.0)
    with tempfile.TemporaryDirectory() as folder:
        for share in shares:
            write_scaled(Path(folder) / f"{share:g}", share)

        def row(network: str, step: str, chip: str) -> list[object]:
            chips = [Path(folder) / f"{share:g}" / f"{chip}.yaml" for share in shares]
            cycles = [run("schedule", *step_of(network, 4, one, step))[0]["latency_cycles"] for one in chips]
            return [network, step, chip, 4, *growing(cycles, lambda i: f"{cycles[i] / 1e6:.2f}")]

        table(["network", "step", "chip", "batch", *(f"x {share:g}" for share in shares)],
              (row(*one) for one in steps_of(wanted)), 4 + len(shares))


def main() -> None:
    global MONET
    tables = {one.__name__: one for one in (fused, fusion, stored, study, images, memories, allocation, pairs, spaces)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet")
    parser.add_argument("table", choices=tables)
    parser.add_argument("networks", nargs="*", help="only these networks")
    arguments = parser.parse_args()
    MONET = str(Path(arguments.monet).resolve())
    tables[arguments.table](arguments.networks)


if __name__ == "__main__":
    main()
