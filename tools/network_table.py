#!/usr/bin/env python3
"""Compares MONET with PyTorch on networks that users bring, and writes docs/reference/networks.md.

    tools/network_table.py build/release/apps/monet/monet --write docs/reference/networks.md

PyTorch exports every network of network_list/, and `monet graph` reads it. Parameters and multiply-accumulates
are compared with those of PyTorch's step.
"""

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from torch import nn

from net import exported_model
from network_list import FAMILIES, Network, oracle

KEPT_ELEMENTS = 100_000  # A floating tensor up to this size keeps its values.
TIME_LIMIT_S = 120
PHASES = ("forward", "backward_input", "backward_weight")
TITLE = """# Networks

This page lists networks that users bring, as PyTorch 1.13 exports them for training. For each it has the
parameters that MONET trains and the multiply-accumulates of one step.

A cell has one figure if PyTorch, observed while it runs the step, has the same; otherwise it has MONET's /
PyTorch's. A test compares all gradients of 278 small networks of these and more kinds
(`tests/fixtures/training/`, `execute_test --gtest_filter='*TrainingCases*'`).

The page is generated:

    tools/network_table.py build/release/apps/monet/monet --write docs/reference/networks.md
"""
HEADER = ("| network | family | loads | trains | parameters | MACs forward | MACs dX | MACs dW | because |",
          "|---|---|---|---|---:|---:|---:|---:|---|")

# --- A network as a file ---------------------------------------------------------------------


def build(network: Network) -> nn.Module:
    torch.manual_seed(0)
    model = network.build().train()
    # Half precision is run as bfloat16, the 16 bits that CPUs have operators for.
    return model if network.precision == "float" else model.bfloat16()


def example(network: Network, batch: int) -> tuple[torch.Tensor, ...]:
    tensors = network.inputs(batch)
    if network.precision == "float":
        return tensors
    return tuple(one.bfloat16() if one.is_floating_point() else one for one in tensors)


def export(model: nn.Module, network: Network) -> onnx.ModelProto:
    """Exports a network with `torch.onnx.export` for training; the first axis of every input is free."""
    batch = network.batch if network.fixed else 2  # Not 1: a traced 1 would seem a broadcast.
    inputs = example(network, batch)
    names = [f"input_{i}" for i in range(len(inputs))]
    exported = exported_model(model, inputs, network.opset, input_names=names,
                              dynamic_axes=None if network.fixed else {name: {0: "batch"} for name in names})
    if network.precision == "half":
        as_half(exported.graph)
    return exported


def as_half(graph: onnx.GraphProto) -> None:
    """Replaces bfloat16 by float16, as in the file that `module.half()` exports on a GPU."""
    bfloat16, float16 = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16
    typed = [value.type.tensor_type for value in (*graph.input, *graph.output, *graph.value_info)]
    for one in typed:
        one.elem_type = float16 if one.elem_type == bfloat16 else one.elem_type
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    for tensor in (*graph.initializer, *(attribute.t for attribute in attributes)):
        tensor.data_type = float16 if tensor.data_type == bfloat16 else tensor.data_type
    for attribute in attributes:
        if attribute.name in ("to", "dtype") and attribute.i == bfloat16:
            attribute.i = float16


def strip(exported: onnx.ModelProto) -> None:
    """Reduces large floating tensors to their types and shapes."""
    kinds = onnx.TensorProto
    floating = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE)
    for tensor in exported.graph.initializer:
        if tensor.data_type in floating and math.prod(tensor.dims) > KEPT_ELEMENTS:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="stripped.weights")
    exported.metadata_props.add(key="monet.weights", value="stripped")


# --- MONET's figures -------------------------------------------------------------------------


def run_monet(monet: Path, file: Path, network: Network, *options: str) -> tuple[dict, str]:
    """Returns the statistics, or {} and the first line of the error."""
    command = [str(monet), "graph", str(file), "--json", "-", *options]
    if not network.fixed:
        command += ["--batch", str(network.batch)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {}, f"no answer in {TIME_LIMIT_S} s"
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return {}, shortened(lines[0], file)


def shortened(reason: str, file: Path) -> str:
    """Removes the file's name and the path of the gradient from an error."""
    reason = reason.removeprefix("error: ").removeprefix(str(file)).lstrip(": ")
    return reason.split(" (the gradient's way")[0].split(" (no gradient has")[0]


# --- The table -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Figures of a network: parameters, then MACs by phase, from MONET and from PyTorch."""

    name: str
    family: str
    loads: bool
    trains: bool
    figures: tuple[tuple[int | None, int], ...]
    because: str
    fault: str = ""  # error of this list: the network does not run or export

    def agrees(self) -> bool:
        return self.trains and all(said == counted for said, counted in self.figures)

    def markdown(self) -> str:
        numbers = []
        for said, counted in self.figures:
            both = said is not None and said != counted
            numbers.append(f"{said:,} / {counted:,}" if both else f"{counted:,}")
        states = ["yes" if state else "no" for state in (self.loads, self.trains)]
        because = self.because.replace("|", "\\|")
        return f"| {' | '.join([self.name, self.family, *states, *numbers, because])} |"


def measure(monet: Path, family: str, name: str, directory: Path) -> Row:
    """Run, export and compare one network."""
    network = FAMILIES[family][name]
    model = build(network)
    facts = oracle.observe(model, example(network, network.batch), network.loss)
    counted = [facts.parameters, *(getattr(facts.macs, phase) for phase in PHASES)]
    if facts.macs.executed != facts.macs.backward_input + facts.macs.backward_weight:
        raise ValueError(f"backward: {facts.macs}")
    model.zero_grad(set_to_none=True)
    exported = export(model, network)
    del model
    strip(exported)
    file = directory / f"{name}.onnx"
    file.write_bytes(exported.SerializeToString())
    training = directory / f"{name}.yaml"
    options = {"loss": network.loss, "trainable": {"freeze": list(network.freeze)}}
    training.write_text(json.dumps(options), encoding="utf-8")
    said, because = run_monet(monet, file, network, "--training", str(training))
    if not said:
        loads = bool(run_monet(monet, file, network, "--inference")[0])
        return Row(name, family, loads, False, tuple((None, n) for n in counted), because)
    figures = [said["trained_parameters"], *(said["macs"][phase] for phase in PHASES)]
    note = "" if figures == counted else network.note
    return Row(name, family, True, True, tuple(zip(figures, counted)), note)


def attempt(monet: Path, family: str, name: str, directory: Path) -> tuple[Row, float]:
    """Returns a row and its seconds. A network that fails here is an error in the list."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # The tracer warns about every shape assertion.
    begin = time.monotonic()
    try:
        row = measure(monet, family, name, directory)
    except Exception as error:  # noqa: BLE001
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        row = Row(name, family, False, False, (), "", fault)
    return row, time.monotonic() - begin


def summary(rows: list[Row]) -> str:
    loaded = sum(row.loads for row in rows)
    trained = sum(row.trains for row in rows)
    equal = sum(row.agrees() for row in rows)
    return f"{len(rows)} networks: {loaded} load, {trained} train, {equal} with PyTorch's figures."


def write_whole(path: Path, text: str) -> None:
    """Writes a temporary file and renames it, so that the file is never incomplete."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def parse_arguments() -> argparse.Namespace:
    names = [name for family in FAMILIES.values() for name in family]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("monet", type=Path, metavar="MONET", help="the program")
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=names, default=names, help="these alone")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the table into FILE")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep the exported files")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    monet = arguments.monet.resolve()
    chosen = [(family, name) for family, networks in FAMILIES.items() for name in networks if name in arguments.only]
    rows = []
    with contextlib.ExitStack() as stack:
        directory = arguments.keep
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        pool = stack.enter_context(ProcessPoolExecutor(arguments.jobs))
        pending = [pool.submit(attempt, monet, *one, directory) for one in chosen]
        for task in pending:
            row, seconds = task.result()
            rows.append(row)
            state = row.fault or ("equal" if row.agrees() else row.because or "differs")
            print(f"{row.name}: {state} ({seconds:.1f} s)", file=sys.stderr, flush=True)
    whole = [row for row in rows if not row.fault]
    lines = [TITLE, summary(whole), "", *HEADER, *(row.markdown() for row in whole)]
    text = "\n".join(lines) + "\n"
    if arguments.write:
        write_whole(arguments.write, text)
    else:
        print(text, end="")
    return 1 if len(whole) < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
