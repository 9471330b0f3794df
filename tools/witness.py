#!/usr/bin/env python3
"""Runs the same commands on two binaries and compares everything they write, byte for byte.

    tools/witness.py OLD_MONET NEW_MONET [--only REGEX] [--jobs N] [--keep DIR] [--remember DIR] [--list]

A redesign that changes no figure has no differences here. The script compares exit codes, standard output, every written file, and
standard error of failed commands. It ignores the times of searches (`seconds`) and the object `provenance` (version, commit and
hashes of inputs). --provenance compares that object too, except version and commit.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent

QUAD = "--hardware data/hardware/tpu_like_quad_core.yaml"
EDGE = "--hardware data/hardware/edge_tpu.yaml"
FUSEMAX = "--hardware data/hardware/fusemax.yaml"
RESNET = "--workload data/workload/resnet18_cifar.onnx --batch 1"
NANO = "--workload data/workload/gpt2_nano.onnx --batch 1"
PE = "--hardware data/hardware/cores/edge_tpu_pe.yaml"
ADAM = "--training data/training/adam.yaml"
TOY = "--hardware examples/core/two_by_two.yaml --workload examples/core/product.yaml --mapping examples/core/dataflow.yaml"

# name: command; OUT is a folder for its outputs.
CASES = {
    # every subcommand's help
    **{"help " + (c or "monet"): (c + " --help").strip() for c in (
        "", "run", "graph", "core", "schedule", "explore", "report", "optimise", "optimise allocation", "optimise fusion",
        "optimise checkpointing", "optimise joint")},
    # experiments
    "run edge": "run examples/edge_resnet18_cifar.yaml -o OUT",
    "run edge two jobs": "run examples/edge_resnet18_cifar.yaml --jobs 2 --verify -o OUT",
    "run edge fused": "run examples/edge_resnet18_cifar_fused.yaml -o OUT",
    "run nano optimised": "run examples/quad_core_gpt2_nano_optimised.yaml -o OUT",
    "run nano optimised two jobs": "run examples/quad_core_gpt2_nano_optimised.yaml --jobs 2 -o OUT",
    "run fusemax": "run examples/fusemax_gpt2.yaml -o OUT",
    "run fusemax fused": "run examples/fusemax_gpt2_fused.yaml -o OUT",
    "run quad fused": "run examples/quad_core_resnet18_cifar_fused.yaml -o OUT",
    "run mobilenet inference": "run examples/quad_core_mobilenet_inference.yaml -o OUT",
    "run batch": "run examples/edge_resnet18_cifar.yaml --batch 2 -o OUT",
    **{"run study " + s: f"run examples/study/{s}.yaml -o OUT" for s in (
        "lora", "lora_fused", "batch", "batch_split", "batch_unfused_update", "resnet18_layer_by_layer", "resnet18_fused",
        "resnet18_checkpointed", "resnet18_fused_checkpointed")},
    # clusters
    **{"cluster gpt3 " + n: f"cluster examples/cluster/gpt3_175b.yaml {v} -o OUT --json OUT/c.json" for n, v in {
        "as it is": "", "context": "--set context=4 --set data=4 --set zero=3 --set recompute=full",
        "offload": "--set offload=both --set zero=2 --set overlap=false --set sequence=false",
        "layers": "--set virtual=1 --set schedule=zb-h1 --set recompute=none --set layers=[10,12,12,12,12,13,13,12]",
        "wrong degrees": "--set data=3 --set expert=2 --set tensor=1 --set zero=4 --set tensors=2",
        "misfits": "--set data=15 --set expert=2 --set pipeline=7", "wrong sizes": "--set tensor=32 --set data=4 --set expert=2"}.items()},
    "cluster resnet": "cluster examples/cluster/resnet18_edge.yaml -o OUT --json OUT/c.json",
    "plan resnet": "optimise parallelism examples/cluster/resnet18_edge_plan.yaml --json OUT/p.json",
    "plan gpt2": "optimise parallelism examples/cluster/gpt2_fusemax_plan.yaml --json OUT/p.json",
    "plan gpt3 tensor": "optimise parallelism examples/cluster/gpt3_175b_plan.yaml --set tensor=8 --set pipeline=8 --json OUT/p.json",
    "explore clusters": "explore examples/cluster/transformer_edge_space.yaml --json OUT/e.json",
    # graphs
    "graph resnet": "graph data/workload/resnet18_cifar.onnx --batch 4 -o OUT/g.onnx --json OUT/g.json --svg OUT/g.svg",
    "graph nano adamw": "graph data/workload/gpt2_nano.onnx --batch 2 --training data/training/adamw.yaml -o OUT/g.onnx --json OUT/g.json",
    "graph unet bf16": "graph data/workload/unet.onnx --batch 1 --training data/training/bf16_mixed.yaml --in-place -o OUT/g.onnx --json OUT/g.json",
    "graph lstm fp16": "graph data/workload/lstm.onnx --batch 2 --training data/training/fp16_scaled.yaml -o OUT/g.onnx --json OUT/g.json",
    "graph vit sparse": "graph data/workload/vit_tiny.onnx --batch 1 --training data/training/momentum.yaml -o OUT/g.onnx --json OUT/g.json",
    "graph sparse": "graph data/workload/resnet18_cifar.onnx --batch 1 --training data/training/sparse.yaml -o OUT/g.onnx --json OUT/g.json",
    "graph qlora": "graph data/workload/gpt2_nano.onnx --batch 1 --training data/training/qlora.yaml -o OUT/g.onnx --json OUT/g.json",
    "graph inference": "graph data/workload/mobilenet_v2.onnx --batch 1 --inference --json -",
    "graph operators": "graph --operators",
    "graph execute": "graph data/workload/gpt2_nano.onnx --batch 2 --training data/training/sgd.yaml --execute --steps 3 --json OUT/e.json --save OUT/n",
    "graph execute fp32": "graph data/workload/lstm.onnx --batch 2 --execute --arithmetic fp32 --seed 3 --json -",
    # cores
    "core pe": f"core {PE} --workload data/workload/resnet18_cifar.onnx --batch 1 --json OUT/c.json",
    "core pe energy": f"core {PE} --workload data/workload/gpt2_nano.onnx --batch 1 --objective energy --lpf-limit none --json OUT/c.json",
    "core vector": "core --hardware data/hardware/cores/simd_64.yaml --workload data/workload/unet.onnx --batch 1 --json -",
    "core zigzag": f"core --model zigzag-3.8 {TOY} --json OUT/c.json",
    "core zigzag network": f"core --model zigzag-3.8 --hardware data/hardware/cores/tpu_like_pe.yaml --workload data/workload/resnet18_cifar.onnx --batch 1 --json OUT/c.json",
    "core choices": f"core {TOY} --choice free-unrolling=off --choice port-stalls-add=on --allocation even --json OUT/c.json",
    "core memories": "core --hardware data/hardware/edge_tpu_22nm.yaml --memories --json OUT/m.json",
    # schedules
    "schedule layer by layer": f"schedule {QUAD} {RESNET} --json OUT/s.json",
    "schedule fused": f"schedule {QUAD} {RESNET} --mode fused --jobs 2 --json OUT/s.json",
    "schedule recomputed halo": f"schedule {QUAD} {RESNET} --mode fused --halo recomputed --json OUT/s.json",
    "schedule training memory": f"schedule {EDGE} {NANO} {ADAM} --priority memory --json OUT/s.json",
    "schedule stream-like": f"schedule {QUAD} {RESNET} --priority order --stream-like links --stream-like multicast --stream-like overlap --stream-like routing --json OUT/s.json",
    "schedule mcu": "schedule --hardware data/hardware/single_core_mcu.yaml --workload data/workload/lstm.onnx --batch 1 --objective energy --json OUT/s.json",
    "schedule stream": f"schedule --model stream-coala {QUAD} {RESNET} --mapping examples/stream/quad_core_mapping.yaml --mode fused --json OUT/s.json",
    "schedule stream layer by layer": f"schedule --model stream-coala {QUAD} {RESNET} --mapping examples/stream/quad_core_mapping.yaml --json OUT/s.json",
    # searches
    "allocation": f"optimise allocation {QUAD} {RESNET} --evaluations 150 --random 20 --json OUT/a.json --mapping-out OUT/m.yaml --report OUT/r",
    "allocation two jobs": f"optimise allocation {QUAD} {RESNET} --evaluations 150 --jobs 2 --seed 3 --objective front --json OUT/a.json",
    "allocation energy fused": f"optimise allocation {EDGE} {NANO} --mode fused --evaluations 60 --objective edp --json -",
    "allocation memory": f"optimise allocation {QUAD} {NANO} {ADAM} --evaluations 40 --objective memory --json OUT/a.json",
    "fusion": f"optimise fusion {QUAD} {RESNET} --evaluations 60 --json OUT/f.json --stacks-out OUT/s.yaml --report OUT/r",
    "fusion two jobs": f"optimise fusion {QUAD} {RESNET} --evaluations 60 --jobs 2 --seed 2 --objective dram --json OUT/f.json",
    "fusion training energy": f"optimise fusion {FUSEMAX} {NANO} {ADAM} --evaluations 20 --objective energy --halo recomputed --json OUT/f.json",
    "fusion fewest groups": f"optimise fusion {QUAD} {RESNET} --method fewest-groups --objective edp --json OUT/f.json",
    "fusion einsum chain": "optimise fusion --model einsum --matmuls 64,64,64,64 --front --json OUT/e.json",
    "fusion einsum network": f"optimise fusion --model einsum {PE} {NANO} --buffer 4000000 --objective dram --json OUT/e.json",
    "checkpointing": f"optimise checkpointing {EDGE} {RESNET} {ADAM} --budget 70% --json OUT/c.json -o OUT/p.onnx --report OUT/r",
    "checkpointing sweep": f"optimise checkpointing {EDGE} {NANO} {ADAM} --sweep --steps 4 --memory stored --objective energy --jobs 2 --json OUT/c.json",
    "checkpointing peak sweep": f"optimise checkpointing {EDGE} {NANO} {ADAM} --sweep --steps 3 --method search --json OUT/c.json",
    "checkpointing genetic": f"optimise checkpointing {EDGE} {RESNET} {ADAM} --method genetic --memory stored --population 20 --generations 6 --json OUT/c.json",
    "joint within a budget": f"optimise joint {QUAD} {NANO} {ADAM} --budget 95% --levels 2 --rounds 1 --group-evaluations 5 --core-evaluations 5",
    "joint": f"optimise joint {QUAD} {NANO} {ADAM} --levels 2 --rounds 1 --group-evaluations 12 --core-evaluations 8 --json OUT/j.json --plan-out OUT/p --report OUT/r",
    "joint two jobs energy": f"optimise joint {EDGE} {NANO} {ADAM} --objective energy --levels 2 --rounds 1 --group-evaluations 12 --core-evaluations 8 --jobs 2 --json OUT/j.json",
    # spaces
    "explore small": "explore examples/spaces/small_edge.yaml --jobs 2 -o OUT --export-csv OUT/d.csv",
    **{f"explore {s}": f"explore data/spaces/edge_study.yaml --strategy {s} --budget 24 --seed 5 --jobs {j} --json OUT/e.json --export-csv OUT/d.csv"
       for s, j in (("random", 1), ("lhs", 2), ("nsga2", 2), ("halving", 1))},
    "explore halving small": "explore examples/spaces/small_edge.yaml --strategy halving --jobs 2 --json OUT/e.json --export-csv OUT/d.csv",
    "explore store": "explore examples/spaces/small_edge.yaml --strategy nsga2 --budget 8 --seed 2 --store OUT/ignored.sqlite --export-csv OUT/d.csv --json OUT/e.json",
    # failures
    "usage": "schedule --hardware data/hardware/edge_tpu.yaml",
    "usage choice": f"schedule {QUAD} {RESNET} --mode sideways",
    "usage range": f"optimise fusion {QUAD} {RESNET} --evaluations 0",
    "usage excluded": "graph data/workload/lstm.onnx --inference --training data/training/sgd.yaml",
    "usage experiment and options": f"optimise joint examples/edge_resnet18_cifar.yaml {EDGE}",
    "missing file": "run examples/nowhere.yaml",
    "bad file": "run data/hardware/edge_tpu.yaml",
    "infeasible": f"optimise checkpointing {EDGE} {NANO} {ADAM} --budget 1MiB",
}


def masked(data: bytes, provenance: bool) -> bytes:
    """Removes parts that may differ: provenance objects, seconds, scratch folders."""
    if b"\0" in data[:4096] and b'"provenance"' not in data:
        return data
    data = re.sub(rb'"((?:cpu_|genetic_|exact_)?seconds)": ?[0-9.eE+-]+', rb'"\1":0', data)
    data = re.sub(rb"\b[0-9.]+ ?s(, CPU|econds|\b(?=[,;)\n]))", b"T s", data) if data[:1] not in b"{<" else data
    out, at = [], 0
    for found in re.finditer(rb'"provenance": ?\{', data):
        if found.start() < at:
            continue
        out.append(data[at:found.start()])
        depth, end = 1, found.end()
        while depth:
            depth += {ord("{"): 1, ord("}"): -1}.get(data[end], 0)
            end += 1
        if provenance:
            out.append(re.sub(rb'"(git_hash|version)": ?"[^"]*"', rb"", data[found.start():end]))
        at = end
    return b"".join(out) + data[at:]


def run(binary, command, root):
    """Returns all outputs of a command, by name."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="witness", dir=root))
    for folder in ("data", "examples"):
        (scratch / folder).symlink_to(HERE / folder)
    (scratch / "OUT").mkdir()
    done = subprocess.run([binary, *command.split()], cwd=scratch, capture_output=True, stdin=subprocess.DEVNULL)
    made = {"exit code": str(done.returncode).encode(), "standard output": done.stdout}
    if done.returncode:
        made["standard error"] = re.sub(rb"(?m)^\[ *[0-9.]+ s\].*\n", b"", done.stderr)  # without progress
    for path in sorted((scratch / "OUT").rglob("*")):
        if path.is_file() and ".sqlite" not in path.name:
            made[str(path.relative_to(scratch / "OUT"))] = path.read_bytes()
    shutil.rmtree(scratch)
    return made


def remembered(folder, name, binary, command, root):
    """Returns the outputs of the old binary, from the folder of --remember if they are there."""
    if not folder:
        return run(binary, command, root)
    key = hashlib.sha256(repr((binary, os.stat(binary).st_mtime_ns, command)).encode()).hexdigest()
    path = pathlib.Path(folder) / (name.replace(" ", "_") + "-" + key[:16])
    if path.exists():
        return pickle.loads(path.read_bytes())
    made = run(binary, command, root)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(made))
    return made


def differences(name, old, new, keep):
    found = []
    for part in sorted(old.keys() | new.keys()):
        a, b = old.get(part), new.get(part)
        if a == b:
            continue
        if a is None or b is None:
            found.append(f"{part}: only {'new' if a is None else 'old'}")
            continue
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        found.append(f"{part}: byte {at}: {a[max(0, at - 60):at + 60]!r} -> {b[max(0, at - 60):at + 60]!r}")
        if keep:
            for which, data in (("old", a), ("new", b)):
                path = pathlib.Path(keep) / name.replace(" ", "_") / which / part.replace(" ", "_")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--only", default="", help="only the cases whose name matches this expression")
    parser.add_argument("--jobs", type=int, default=1, help="number of commands that run in parallel")
    parser.add_argument("--keep", help="folder for outputs that differ")
    parser.add_argument("--remember", help="folder that keeps the outputs of the old binary for later runs")
    parser.add_argument("--provenance", action="store_true",
                        help="compare provenance too, except version and commit")
    parser.add_argument("--list", action="store_true", help="print the cases")
    arguments = parser.parse_args()
    cases = {name: command for name, command in CASES.items() if re.search(arguments.only, name)}
    if arguments.list:
        for name, command in cases.items():
            print(f"{name:32} monet {command}")
        return 0
    if not arguments.new:
        parser.error("two binaries are needed")
    binaries = [os.path.abspath(arguments.old), os.path.abspath(arguments.new)]
    root = tempfile.mkdtemp(prefix="monet_witness")
    parts = different = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        def compare(item):
            old, new = ({part: masked(data, arguments.provenance) for part, data in made.items()} for made in (
                            remembered(arguments.remember, item[0], binaries[0], item[1], root),
                            run(binaries[1], item[1], root)))
            return item[0], len(old), old["exit code"], differences(item[0], old, new, arguments.keep)
        for name, count, code, found in pool.map(compare, cases.items()):
            parts += count
            different += bool(found)
            print(f"{'differs' if found else 'same':8}{name} ({count} parts, exit code {code.decode()})", flush=True)
            for line in found:
                print("        " + line, flush=True)
    shutil.rmtree(root)
    print(f"{len(cases)} commands, {parts} parts compared, {different} commands with differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
