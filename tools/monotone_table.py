#!/usr/bin/env python3
"""Whether schedules can be trusted: what is chosen automatically is never above layer by layer nor fused, more images
cost no more each, and a chip that has more of one resource is not worse. Prints Markdown; fails where 2 % is exceeded.

    tools/monotone_table.py build/release/apps/monet/monet [--networks NET ...] [--batches N ...] [--chips CHIP ...]
                            [--searched SECONDS] [--memories SHARE ...] [--pairs N] [--first N] [--seed N]
                            [--limit SECONDS] [--jobs N]

--searched compares with `monet optimise fusion --time-limit SECONDS`; --memories takes the arrays' memories times each
share instead of comparing modes; --pairs grows random chips by one resource, from number --first on. A schedule that
takes longer than --limit, and those of more images, are left out (">"). Rows are printed as they are known.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NETWORKS = [
    "resnet18_cifar",
    "resnet18",
    "mobilenet_v2",
    "vit_tiny",
    "gpt2_nano",
    "gpt_4x512",
    "unet",
    "vgg16",
    "lstm",
    "gpt2",
]
CHIPS = ["edge_tpu", "tpu_like_quad_core", "fusemax", "single_core_mcu"]
STEPS = ["inference", "sgd", "adam"]
SLACK = 1.02


class TooLongError(Exception):
    """A schedule that is not waited for."""


def latency(command: list[str], limit: float | None = None) -> int | None:
    """Cycles of the step, or nothing where it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise TooLongError from error
    if done.returncode != 0:
        return None
    result = json.loads(done.stdout)
    return result.get("latency_cycles") or int(result["best"])


def step_options(network: str, batch: int, step: str) -> list[str]:
    options = ["--workload", f"data/workload/{network}.onnx", "--batch", str(batch)]
    return options if step == "inference" else [*options, "--training", f"data/training/{step}.yaml"]


def modes(case: tuple, arguments: argparse.Namespace) -> dict:
    network, step, chip, batch = case
    common = ["--hardware", f"data/hardware/{chip}.yaml", *step_options(network, batch, step), "--json", "-"]
    found = {
        mode: latency([arguments.monet, "schedule", *common, "--mode", mode], arguments.limit)
        for mode in ("auto", "layer-by-layer", "fused")
    }
    if arguments.searched > 0:
        limit = ["--time-limit", str(arguments.searched)]
        found["searched"] = latency([arguments.monet, "optimise", "fusion", *common, *limit])
    return found


def core(name: str, kind: str, lanes: list[int], kib: int, port: int) -> str:
    """A core with one memory; an array's dataflow unrolls output and input channels."""
    operands = "I1, I2, O"
    flow = {"D1": f'["K, {lanes[0]}"]', "D2": f'["C, {lanes[-1]}"]'}
    dimensions = list(flow)[: len(lanes)]
    return f"""name: {name}
kind: {kind}
memories:
  sram:
    size: {kib * 8192}
    r_cost: 100
    w_cost: 100
    area: 0
    latency: 1
    operands: [{operands}]
    ports:
      - {{name: r, type: read, bandwidth_min: 64, bandwidth_max: {port}, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"]}}
      - {{name: w, type: write, bandwidth_min: 64, bandwidth_max: {port}, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"]}}
    served_dimensions: [{", ".join(dimensions)}]
operational_array:
  unit_energy: 0.1
  unit_area: 0
  dimensions: [{", ".join(dimensions)}]
  sizes: [{", ".join(str(size) for size in lanes)}]
dataflows:
""" + "".join(f"  {d}: {flow[d]}\n" for d in dimensions)


def write_chip(folder: pathlib.Path, chip: dict) -> pathlib.Path:
    """Elements and a vector core on a bus with the off-chip memory, elements in a chain of links."""
    folder.mkdir()
    elements = chip["elements"]
    (folder / "element.yaml").write_text(core("element", "array", [chip["units"], chip["inputs"]], chip["kib"], 2048))
    (folder / "vector.yaml").write_text(core("vector", "vector", [chip["vector"]], chip["vector_kib"], 2048))
    dram = (ROOT / "data/hardware/cores/dram_64bit.yaml").read_text()
    for key in ("bandwidth_min", "bandwidth_max"):
        dram = dram.replace(f"{key}: 64", f"{key}: {chip['dram']}")
    (folder / "dram.yaml").write_text(dram)
    cores = "".join(f"  {i}: element.yaml\n" for i in range(elements))
    links = "".join(
        f"  - {{type: link, cores: [{i}, {i + 1}], bandwidth: {chip['link']}, unit_energy_cost: 0}}\n"
        for i in range(elements)
    )
    everybody = ", ".join(str(i) for i in range(elements + 2))
    (folder / "chip.yaml").write_text(
        f"name: chip\nfrequency_hz: 1e9\ncores:\n{cores}  {elements}: vector.yaml\n  {elements + 1}: dram.yaml\n"
        f"offchip_core_id: {elements + 1}\ncore_connectivity:\n{links}"
        f"  - {{type: bus, cores: [{everybody}], bandwidth: {chip['bus']}, unit_energy_cost: 0}}\n"
    )
    return folder / "chip.yaml"


SIZES = {
    "elements": [1, 2, 3, 4, 6, 8],
    "units": [8, 16, 32, 64],
    "inputs": [1, 2, 4, 8],
    "kib": [256, 512, 1024, 1536, 2048, 3072, 4096, 8192],
    "vector": [16, 32, 64, 128],
    "vector_kib": [64, 128, 192, 256, 512, 1024],
    "dram": [32, 64, 128, 256],
    "link": [16, 32, 64, 128],
    "bus": [64, 128, 256],
}
STUDIED = [
    ("resnet18_cifar", 1, "inference"),
    ("resnet18_cifar", 4, "inference"),
    ("mobilenet_v2", 1, "inference"),
    ("unet", 1, "inference"),
    ("gpt2_nano", 1, "adam"),
    ("gpt2_nano", 4, "sgd"),
    ("resnet18_cifar", 2, "sgd"),
    ("lstm", 1, "adam"),
]


def pair(number: int, arguments: argparse.Namespace, scratch: pathlib.Path) -> tuple[str, float | None]:
    """What grew, and latency after over before."""
    rng = random.Random(arguments.seed * 1_000_003 + number)
    chip = {key: rng.choice(sizes) for key, sizes in SIZES.items()}
    grown = rng.choice([key for key in SIZES if chip[key] < SIZES[key][-1]])
    more = {**chip, grown: rng.choice([size for size in SIZES[grown] if size > chip[grown]])}
    network, batch, step = rng.choice(STUDIED)
    taken = []
    for name, sizes in (("before", chip), ("after", more)):
        system = write_chip(scratch / f"{number}_{name}", sizes)
        options = ["--hardware", str(system), *step_options(network, batch, step), "--json", "-"]
        try:
            taken.append(latency([arguments.monet, "schedule", *options], arguments.limit))
        except TooLongError:
            taken.append(None)
    what = f"{grown} {chip[grown]} to {more[grown]}, {network} batch {batch} {step}"
    return what, taken[1] / taken[0] if all(taken) else None


def steps_of(arguments: argparse.Namespace) -> list[tuple]:
    return [
        (network, step, chip, batch)
        for network in arguments.networks
        for step in STEPS
        for chip in arguments.chips
        for batch in arguments.batches
    ]


def row_of(row: tuple, arguments: argparse.Namespace) -> list[dict | None]:
    """What each batch comes to, the smallest first; nothing from the first on that takes too long."""
    found: list[dict | None] = []
    for batch in arguments.batches:
        try:
            found.append(modes((*row, batch), arguments))
        except TooLongError:
            break
    return found + [None] * (len(arguments.batches) - len(found))


def mode_cells(found: list[dict | None], arguments: argparse.Namespace, ratios: list[float]) -> tuple[list[str], bool]:
    cells = []
    good = True
    least = None  # cycles per sample so far
    for batch, row in zip(arguments.batches, found):
        if row is None:
            cells.append(">")
            continue
        auto = row["auto"]
        if auto is None:
            cells.append("-")
            continue
        others = [row[mode] for mode in ("layer-by-layer", "fused") if row[mode]]
        marks = "" if auto <= min(others, default=auto) else " **above**"
        marks += " **grows**" if least is not None and auto / batch > SLACK * least else ""
        good = good and not marks
        least = min(least or auto / batch, auto / batch)
        layers = row["layer-by-layer"]  # nothing where a layer does not fit as a whole
        cell = f"{auto / batch / 1e6:.3f} ({auto / layers:.2f}" if layers else f"{auto / batch / 1e6:.3f} (-"
        if row.get("searched"):
            ratios.append(auto / row["searched"])
            cell += f", {ratios[-1]:.2f}"
        cells.append(cell + ")" + marks)
    return cells, good


def mode_table(arguments: argparse.Namespace, pool: concurrent.futures.Executor) -> bool:
    rows = list(dict.fromkeys(case[:3] for case in steps_of(arguments)))
    good = True
    ratios: list[float] = []
    print("| network | step | chip | " + " | ".join(f"batch {b}" for b in arguments.batches) + " |")
    print("|---|---|---|" + "---|" * len(arguments.batches), flush=True)
    for row, found in zip(rows, pool.map(lambda row: row_of(row, arguments), rows)):
        cells, row_good = mode_cells(found, arguments, ratios)
        good = good and row_good
        print(f"| {' | '.join(row)} | " + " | ".join(cells) + " |", flush=True)
    print("\nMcycles per sample (over layer by layer, over searched)")
    if ratios:
        print(f"over searched: median {statistics.median(ratios):.3f}, most {max(ratios):.3f}")
    return good


def write_scaled(folder: pathlib.Path, chip: str, share: float) -> pathlib.Path:
    """The chip with the outermost memory of its arrays `share` times as large."""
    shutil.copytree(ROOT / "data/hardware", folder)
    for path in (folder / "cores").glob("*.yaml"):
        text = path.read_text()
        sizes = re.findall(r"size: ([0-9_]+)", text)
        if "kind: array" in text:
            largest = max(sizes, key=lambda size: int(size.replace("_", "")))
            scaled = int(int(largest.replace("_", "")) * share)
            path.write_text(text.replace(f"size: {largest}", f"size: {scaled}"))
    return folder / f"{chip}.yaml"


def memory_table(arguments: argparse.Namespace, pool: concurrent.futures.Executor) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        chips = {
            (chip, share): write_scaled(pathlib.Path(folder) / f"{chip}_{share}", chip, share)
            for chip in arguments.chips
            for share in arguments.memories
        }
        rows = steps_of(arguments)

        def taken(case: tuple) -> int | None:
            (network, step, chip, batch), share = case
            options = ["--hardware", str(chips[chip, share]), *step_options(network, batch, step), "--json", "-"]
            return latency([arguments.monet, "schedule", *options])

        cases = [(row, share) for row in rows for share in arguments.memories]
        found = dict(zip(cases, pool.map(taken, cases)))
    good = True
    print("| network | step | chip | batch | " + " | ".join(f"x {share:g}" for share in arguments.memories) + " |")
    print("|---|---|---|---:|" + "---|" * len(arguments.memories))
    for row in rows:
        cells = []
        least = None
        for share in arguments.memories:
            cycles = found[row, share]
            if cycles is None:
                cells.append("-")
                continue
            worse = least is not None and cycles > SLACK * least
            cells.append(f"{cycles / 1e6:.2f}" + (" **grows**" if worse else ""))
            good = good and not worse
            least = min(least or cycles, cycles)
        print("| " + " | ".join(str(part) for part in row) + " | " + " | ".join(cells) + " |", flush=True)
    print("\nMcycles")
    return good


def pair_table(arguments: argparse.Namespace, pool: concurrent.futures.Executor) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        found = list(pool.map(lambda n: pair(arguments.first + n, arguments, scratch), range(arguments.pairs)))
    ratios = sorted((ratio, what) for what, ratio in found if ratio is not None)
    if not ratios:
        return False
    worse = [(ratio, what) for ratio, what in ratios if ratio > SLACK]
    print(f"\n{len(ratios)} pairs that run: median {statistics.median(r for r, _ in ratios):.4f}, ", end="")
    print(f"{len(worse)} worse by more than 2 %, most {ratios[-1][0]:.3f}")
    for ratio, what in reversed(worse):
        print(f"- {ratio:.3f}: {what}")
    return not worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet")
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--searched", type=float, default=0)
    parser.add_argument("--memories", nargs="+", type=float)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    arguments.monet = str(pathlib.Path(arguments.monet).resolve())
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        table = memory_table if arguments.memories else mode_table
        good = not arguments.networks or table(arguments, pool)
        good = (arguments.pairs == 0 or pair_table(arguments, pool)) and good
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
