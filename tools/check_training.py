#!/usr/bin/env python3
"""Compare training steps of many small networks with PyTorch's: gradients, MACs, stored bytes.

    tools/check_training.py build/release/apps/monet/monet [--only NAME...] [--kind KIND...]

Prints a line for every case and a summary; exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor

from training_cases.families import FAMILIES, all_cases
from training_cases.framework import (
    SEED,
    Case,
    double_model,
    export,
    file_names,
    input_tensors,
    updated_statistics,
)
from training_cases.oracle import Facts, facts

TOLERANCE = 1e-10  # of a gradient's largest element
LOOSER = 1e-10  # of three steps' changes
KINDS = ("runs", "parameters", "macs", "eager", "minimal", "loss", "gradients", "buffers", "steps")


@dataclass
class Difference:
    kind: str  # one of KINDS
    text: str


@dataclass
class Work:
    """A case in a folder of its own."""

    case: Case
    folder: Path
    facts: Facts
    names: dict[str, str]  # PyTorch's name -> the file's
    statistics: dict[str, str]  # a running statistic's name -> the tensor that replaces it
    options: argparse.Namespace

    @property
    def graph_loss(self) -> bool:
        return self.case.loss == "in_graph"


# --- Files -----------------------------------------------------------------------------------


def training_text(work: Work, store: str, optimizer: dict) -> str:
    loss = work.options.graph_loss if work.graph_loss else work.case.loss
    made = {"loss": loss, "optimizer": optimizer, "store": store, **work.case.options}
    if work.options.freeze_buffers and "trainable" not in made:
        frozen = [work.names[name] for name in frozen_buffers(work.facts) if name in work.names]
        made.update({"trainable": {"freeze": frozen}} if frozen else {})
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in made.items())


def frozen_buffers(made: Facts) -> list[str]:
    """Those that nothing but a training file says anything of."""
    return [name for name, buffer in made.buffers.items() if buffer.dim() and name not in made.updated]


def prepare(case: Case, folder: Path, options: argparse.Namespace) -> Work:
    exported = export(case)
    onnx.save(exported, folder / "network.onnx")
    made = facts(case)
    tensors = dict(zip((given.name for given in case.inputs), input_tensors(case, torch.float64)))
    numbers = {name: tensor.numpy() for name, tensor in tensors.items()}
    numbers.update(made.targets)
    if case.loss == "in_graph" and options.graph_loss == "none":
        numbers["loss_value.grad"] = np.ones_like(made.output.numpy())
    for name, array in numbers.items():
        np.save(folder / f"{name}.npy", array)
    work = Work(case, folder, made, file_names(exported, double_model(case)), {}, options)
    work.statistics = updated_statistics(exported)
    (folder / "inputs.json").write_text(json.dumps(sorted(numbers)), encoding="utf-8")
    return work


@dataclass
class Run:
    """What MONET made of a case."""

    code: int
    text: str
    json: dict
    folder: Path

    def tensor(self, name: str) -> np.ndarray | None:
        path = self.folder / (name.replace("/", "_") + ".npy")
        return np.load(path) if path.exists() else None


def run(work: Work, name: str, store: str, optimizer: dict, steps: int) -> Run:
    folder = work.folder / name
    training = work.folder / f"{name}.yaml"
    training.write_text(training_text(work, store, optimizer), encoding="utf-8")
    command = [work.options.monet, "graph", work.folder / "network.onnx", "--training", training]
    command += ["--execute", "--seed", str(SEED), "--steps", str(steps), "--save", folder]
    command += ["--json", work.folder / f"{name}.json"]
    for given in json.loads((work.folder / "inputs.json").read_text(encoding="utf-8")):
        command += ["--numbers", f"{given}={work.folder / given}.npy"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    path = work.folder / f"{name}.json"
    made = json.loads(path.read_text(encoding="utf-8")) if result.returncode == 0 else {}
    return Run(result.returncode, result.stderr.strip(), made, folder)


# --- Comparisons -----------------------------------------------------------------------------


def error(expected: Tensor, actual: np.ndarray | None, scale: float = 0.0) -> float:
    """Largest difference, as part of the largest magnitude."""
    if actual is None:
        return float("inf")
    wanted = expected.detach().to(torch.float64).numpy()
    if wanted.size != actual.size:
        return float("inf")
    largest = max(np.abs(wanted).max(initial=0.0), scale)
    difference = np.abs(wanted.reshape(-1) - actual.reshape(-1)).max(initial=0.0)
    return float(difference / largest) if largest > 0.0 else float(difference)


def compare_counts(work: Work, minimal: Run) -> Iterator[Difference]:
    expected = work.facts
    trained = {record["name"] for record in minimal.json["execution"]["parameters"]}
    wanted = {work.names.get(name, name) for name in expected.trained}
    if trained != wanted or minimal.json["trained_parameters"] != expected.parameters:
        what = "; ".join(
            f"{word} {', '.join(sorted(names))}"
            for word, names in (("trains", trained - wanted), ("does not train", wanted - trained))
            if names
        )
        ours = minimal.json["trained_parameters"]
        yield Difference("parameters", f"parameters {ours} instead of {expected.parameters}: {what}")
    ours = {key: minimal.json["macs"][key] for key in expected.macs}
    if ours != expected.macs:
        wrong = [f"{key} {ours[key]} instead of {n}" for key, n in expected.macs.items() if ours[key] != n]
        yield Difference("macs", "MACs " + ", ".join(wrong))
    least = minimal.json["stored_activations_bytes"]
    if least > expected.eager_bytes:
        yield Difference("minimal", f"minimal bytes {least} above eager {expected.eager_bytes}")


def compare_eager(work: Work, eager: Run) -> Iterator[Difference]:
    stored = eager.json["stored_activations_bytes"]
    if stored != work.facts.eager_bytes:
        yield Difference("eager", f"eager bytes {stored} instead of {work.facts.eager_bytes}")


def compare_numbers(work: Work, result: Run) -> Iterator[Difference]:
    expected = work.facts
    if work.graph_loss:
        saved = result.tensor("loss_value")
        loss = float(saved.reshape(-1)[0]) if saved is not None else float("nan")
    else:
        loss = result.json["execution"]["steps"][0]["loss"]
    if not abs(loss - expected.loss) <= TOLERANCE * abs(expected.loss):
        yield Difference("loss", f"loss {loss:.12g} instead of {expected.loss:.12g}")
    wrong = {}
    for name, gradient in expected.trained.items():
        actual = result.tensor(work.names.get(name, name) + ".grad")
        if expected.is_rounding(name):
            off = error(gradient, actual, expected.largest)
        else:
            off = error(gradient, actual)
        if off > TOLERANCE and actual is not None:
            wrong[name] = off
    if wrong:
        worst = max(wrong, key=wrong.get)
        yield Difference("gradients", f"{len(wrong)} gradients, {worst} by {wrong[worst]:.2g}")
    statistics = {name: expected.buffers[name] for name in sorted(expected.updated)}
    yield from compare_statistics(work, result, statistics, TOLERANCE)


def compare_statistics(
    work: Work, result: Run, buffers: dict[str, Tensor], tolerance: float
) -> Iterator[Difference]:
    for name, buffer in buffers.items():
        replaced = work.statistics.get(work.names.get(name, name))
        off = error(buffer, result.tensor(replaced) if replaced else None)
        if off > tolerance:
            yield Difference("buffers", f"{name} by {off:.2g}")
            return


def compare_steps(work: Work, result: Run) -> Iterator[Difference]:
    expected = work.facts
    rate = expected.steps["options"]["learning_rate"]
    losses = [step["loss"] for step in result.json["execution"]["steps"] if "loss" in step]
    for ours, theirs in zip(losses, expected.steps["losses"]):
        if not abs(ours - theirs) <= LOOSER * abs(theirs):
            yield Difference("steps", f"losses {losses} instead of {expected.steps['losses']}")
            break
    wrong = {}
    for name, after in expected.tensors["after"].items():
        actual = result.tensor(work.names.get(name, name) + ".updated")
        if expected.is_rounding(name) or actual is None:
            continue
        before = expected.tensors["before"][name]
        moved = torch.from_numpy(actual.reshape(before.shape)) - before
        wrong[name] = error(after - before, moved.numpy(), 1e-3 * rate)
    worst = max(wrong, key=wrong.get, default=None)
    if worst and wrong[worst] > LOOSER:
        yield Difference("steps", f"after three steps {worst} by {wrong[worst]:.2g}")
    yield from compare_statistics(work, result, expected.tensors["buffers"], LOOSER)


def complaint(work: Work, result: Run) -> str:
    text = " ".join(result.text.replace(f"{work.folder}/network.onnx", "").split())
    return text[:200]


def check(work: Work, pool: ThreadPoolExecutor) -> list[Difference]:
    """Everything that differs."""
    made = work.facts
    optimizer = made.steps["options"] if made.steps else {"type": "sgd", "learning_rate": 0.05}
    first = pool.submit(run, work, "minimal", "minimal", optimizer, 1)
    second = pool.submit(run, work, "eager", "pytorch-eager", optimizer, 3 if made.steps else 1)
    minimal, eager = first.result(), second.result()
    differences = [
        Difference("runs", f"{name}: exit code {result.code}: {complaint(work, result)}")
        for name, result in (("minimal", minimal), ("eager", eager))
        if result.code != 0
    ]
    if minimal.code == 0:
        differences += compare_counts(work, minimal)
        differences += compare_numbers(work, minimal) if work.case.compare else []
    if eager.code == 0:
        differences += compare_eager(work, eager)
        differences += compare_steps(work, eager) if made.steps and work.case.compare else []
    unique = {(d.kind, d.text): d for d in differences}
    return [d for d in unique.values() if d.kind in work.options.kind]


# --- Command line ----------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("monet", type=Path, help="the program to check")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="these cases alone")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, help="these families alone")
    parser.add_argument("--tag", help="cases with this tag alone")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS, help="what is compared")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave the files here")
    parser.add_argument(
        "--graph-loss", default="none", help="the training file's loss where the network has its own (default: none)"
    )
    parser.add_argument(
        "--freeze-buffers", action="store_true", help="name the buffers in the training file, not to be trained"
    )
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    known = set()
    for family, case in all_cases(options.family):
        known.add(case.name)
        if options.only and case.name not in options.only:
            continue
        if options.tag is None or options.tag in case.tags:
            yield family, case
    if unknown := set(options.only) - known:
        sys.exit(f"no case is called {', '.join(sorted(unknown))}")


def main() -> int:
    options = parse_arguments()
    options.monet = options.monet.resolve()
    torch.set_num_threads(1)
    count = Counter()
    root = options.keep or Path(tempfile.mkdtemp())
    with ThreadPoolExecutor(2) as pool:
        for family, case in chosen(options):
            folder = root / case.name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            differences = check(prepare(case, folder, options), pool)
            text = "; ".join(d.text for d in differences) or "OK"
            print(f"{family}/{case.name}: {text}", flush=True)
            count["cases"] += 1
            count.update({d.kind for d in differences})
            count["differ"] += bool(differences)
    if not options.keep:
        shutil.rmtree(root)
    kinds = ", ".join(f"{kind} {count[kind]}" for kind in KINDS if count[kind])
    print(f"{count['cases']} cases, {count['differ']} differ{': ' + kinds if kinds else ''}")
    return 1 if count["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
