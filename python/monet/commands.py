"""Commands of the command line: cores, NPUs, clusters, number formats, training and experiments.

Arguments have the names and defaults of the command's options, and a dict may replace a file. An
answer is a mapping of the JSON that the command prints with `--json -`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from monet import arguments
from monet.calls import Answer, File, FileOrDict, Inputs, Options, Ran, run_command
from monet.chips import Chip, read_chip
from monet.columns import Columns
from monet.dicts import DictText
from monet.model import Network, Step
from monet.progress import Progress

Array = np.ndarray[Any, Any]
Hardware = Chip | File | Options


def hardware_name(hardware: Hardware, inputs: Inputs) -> str:
    """The name of a chip, file or dict for the command line."""
    if isinstance(hardware, Mapping):
        hardware = read_chip(hardware)
    return hardware._add_to(inputs) if isinstance(hardware, Chip) else arguments.path("hardware", hardware)


class CoreCost(Answer):
    """The cost of layers on one core."""

    @property
    def latency_cycles(self) -> float:
        return float(self["latency_cycles"])

    @property
    def energy_pj(self) -> float:
        return float(self["energy_pj"])

    @cached_property
    def layers(self) -> Columns:
        """One row per layer: name, op_type, macs, latency_cycles, ideal_cycles, utilisation,
        energy_pj, ..."""
        return Columns.of_rows(self["layers"])

    def __repr__(self) -> str:
        return f"CoreCost({self['core']!r}: {self.latency_cycles:,.0f} cycles, {self.energy_pj:.4g} pJ)"


def core(
    hardware: Hardware,
    workload: Network | File | Sequence[Any],
    *,
    format: str | None = None,
    mapping: FileOrDict | None = None,
    precision: str | Options | None = None,
    objective: str = "latency",
    lpf_limit: int | str = 6,
    model: str = "monet",
    choices: Mapping[str, bool] | None = None,
    allocation: str = "uneven",
    generated: int = 3,
    unrollings: int = 12,
    mixed: bool = False,
    data_locality: bool = False,
) -> CoreCost:
    """The cost on one core of every layer of a network, or of a list of layers in ZigZag's form.
    `model`: monet, or zigzag-3.8, which is exact to the last bit. `choices`: those of `monet core
    --help`, by name."""
    inputs = Inputs()
    values = _workload(workload, inputs)
    values |= {
        "--hardware": hardware_name(hardware, inputs), "--format": format, "--precision": _precision(precision),
        "--mapping": None if mapping is None else inputs.name(mapping, "mapping"),
        "--objective": objective, "--lpf-limit": _limit(lpf_limit), "--model": model,
        "--choice": {name: "on" if arguments.flag(f"choices[{name!r}]", on) else "off"
                     for name, on in arguments.mapping("choices", choices).items()},
        "--allocation": allocation, "--generated": generated, "--unrollings": unrollings, "--mixed": mixed,
        "--data-locality": data_locality, "--json": "-",
    }  # fmt: skip
    return CoreCost(run_command(("core",), values, inputs=inputs))


def hardware_costs(hardware: Hardware) -> Answer:
    """Energy and area of every memory and array of a core or chip (`monet core --memories`)."""
    inputs = Inputs()
    values = {"--hardware": hardware_name(hardware, inputs), "--memories": True, "--json": "-"}
    return Answer(run_command(("core",), values, inputs=inputs))


def schedule_as_stream(
    network: Network,
    chip: Chip,
    mapping: FileOrDict | Sequence[Any],
    *,
    mode: str = "auto",
    stacks: FileOrDict | Sequence[Any] | None = None,
    core_costs: Sequence[File] = (),
    pooling: str = "stream",
) -> Answer:
    """Schedules inference as the reference scheduler Stream does, exact to the last cycle (`monet
    schedule --model stream-coala`). `core_costs`: files or folders of recorded costs, in place of
    modelled ones. `pooling`: stream, or once for each channel."""
    arguments.instance("network", network, Network, "read_network()")
    arguments.instance("chip", chip, Chip, "read_chip()")
    inputs = Inputs()
    values: dict[str, object] = {
        "--model": "stream-coala", "--workload": network.path, **network._values(), "--hardware": chip._add_to(inputs),
        "--mapping": inputs.name(mapping, "mapping"), "--mode": mode, "--core-costs": core_costs, "--pooling": pooling,
        "--stacks": None if stacks is None else inputs.name(stacks, "stacks"), "--json": "-",
    }  # fmt: skip
    return Answer(run_command(("schedule",), values, inputs=inputs))


class BackwardCost(Answer):
    """The cost of dX and dW of every layer, by technique."""

    @cached_property
    def layers(self) -> Columns:
        return Columns.of_rows(self.get("layers", []))


def backward(
    hardware: Hardware | None = None,
    workload: Network | File | None = None,
    *,
    gemm: Sequence[int] | None = None,
    batch: int | None = None,
    technique: str | None = None,
    cores: int | None = None,
    partition: str = "none",
    tiles: str = "searched",
    keep: str = "chosen",
    major: str = "results",
    timing: str = "systolic-os",
    im2col: str = "expanded",
    rule: str = "dimensions",
    element_bits: int = 16,
    partial_bits: int = 32,
    state_bits: int = 0,
    pipelined: bool = False,
    wait_for_writes: bool = False,
    single_buffer: bool = False,
    study: File | None = None,
    output: File | None = None,
    jobs: int = 1,
    progress: Progress = None,
) -> BackwardCost:
    """Maps dX and dW of every layer together on an NPU. `gemm`: (M, K, N) in place of a workload.
    `study`: computes every figure of a study, next to the published ones, in place of one
    network."""
    inputs = Inputs()
    values = {} if workload is None else _workload(workload, inputs)
    if batch is not None:
        values["--batch"] = batch
    values |= {
        "--hardware": None if hardware is None else hardware_name(hardware, inputs), "--gemm": gemm,
        "--technique": technique, "--cores": cores, "--partition": partition, "--tiles": tiles, "--keep": keep,
        "--major": major, "--timing": timing, "--im2col": im2col, "--rule": rule, "--element-bits": element_bits,
        "--partial-bits": partial_bits, "--state-bits": state_bits, "--pipelined": pipelined,
        "--wait-for-writes": wait_for_writes, "--single-buffer": single_buffer,
        "--study": study, "--out": output, "--jobs": jobs, "--json": "-",
    }  # fmt: skip
    return BackwardCost(run_command(("backward",), values, inputs=inputs, progress=progress))


def cluster(
    experiment: FileOrDict,
    *,
    settings: Options | None = None,
    allow_overflow: bool = False,
    output: File | None = None,
    progress: Progress = None,
) -> Answer:
    """Models a training step that is divided over the devices of a cluster. `settings`:
    replacements for keys of the experiment's `parallel`. `output`: a folder for the report page."""
    inputs = Inputs()
    name = inputs.name(experiment, "experiment")
    values = {"--set": _settings(settings), "--allow-overflow": allow_overflow, "--output": output, "--json": "-"}
    return Answer(run_command(("cluster",), values, [name], inputs=inputs, progress=progress))


class Statistics(Answer):
    """Statistics of a step's graph: operators by phase, parameters, memory, and the results of
    `execute`."""


def graph(
    step: Step | Network,
    *,
    in_place: bool = False,
    svg: File | None = None,
    output: File | None = None,
    execute: bool = False,
    arithmetic: str = "fp64",
    seed: int = 0,
    steps: int = 1,
    numbers: Mapping[str, File] | None = None,
    memory_limit: str = "80%",
    save: File | None = None,
    jobs: int = 1,
    progress: Progress = None,
) -> Statistics:
    """Statistics of a step's graph. A network is differentiated with the default options, as `monet
    graph` does. `Step.execute()` returns arrays in place of norms."""
    inputs = Inputs()
    if isinstance(step, Network):
        network, values = step, step._values()
    else:
        arguments.instance("step", step, Step, "Network.training_step()")
        network, values = step.network, step._values(inputs)
        values["--inference"] = "--training" not in values
    values |= {"--in-place": in_place, "--svg": svg, "--output": output, "--json": "-"}
    if arguments.flag("execute", execute):
        values |= {
            "--execute": True, "--arithmetic": arithmetic, "--seed": seed, "--steps": steps, "--numbers": numbers,
            "--memory-limit": memory_limit, "--save": save, "--jobs": jobs,
        }  # fmt: skip
    return Statistics(run_command(("graph",), values, [network.path], inputs=inputs, progress=progress))


def operators() -> str:
    """The supported operators, as a table in Markdown."""
    return run_command(("graph",), {"--operators": True}).table


def run(
    experiment: FileOrDict,
    output: File,
    *,
    batch: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    precision: str | Options | None = None,
    jobs: int = 1,
    verify: bool = False,
    progress: Progress = None,
) -> Answer:
    """Models an experiment and writes its report into the folder `output`. Returns the content of
    result.json or, for steps that take turns, of iteration.json."""
    inputs = Inputs()
    name, output = inputs.name(experiment, "experiment"), arguments.path("output", output)
    values = {"--output": output, "--batch": batch, "--dim": dimensions, "--precision": _precision(precision),
              "--jobs": jobs, "--verify": verify}  # fmt: skip
    ran = run_command(("run",), values, [name], inputs=inputs, progress=progress)
    return Answer(_with_file(ran, output))


class Curves(Answer):
    """The results of a training run."""


def train(
    experiment: FileOrDict,
    output: File,
    *,
    resume: bool = False,
    jobs: int = 1,
    instructions: str = "best",
    memory_limit: str = "80%",
    progress: Progress = None,
) -> Curves:
    """Trains a network numerically, for every variant and seed. Writes result.json, curves and
    checkpoints into the folder `output`. Ctrl-C returns the results so far, and `resume` continues
    the run."""
    inputs = Inputs()
    name, output = inputs.name(experiment, "experiment"), arguments.path("output", output)
    values = {"--output": output, "--resume": resume, "--jobs": jobs, "--instructions": instructions,
              "--memory-limit": memory_limit}  # fmt: skip
    ran = run_command(("train",), values, [name], inputs=inputs, progress=progress)
    return Curves(_with_file(ran, output))


def report(result: File | Mapping[str, Any], output: File) -> str:
    """Writes the report page of a result.json or explore.json, or of the dict from a result's
    `to_dict()`. Returns its path."""
    inputs = Inputs()
    name, page = inputs.name(result, "result"), arguments.path("output", output)
    run_command(("report",), {"--output": page}, [name], inputs=inputs)
    return page


def validate(*files: File, batch: int | None = None, dimensions: Mapping[str, int] | None = None) -> str:
    """Reads files with the readers of their kinds. Returns a line for each with its kind; raises
    `InputError` with the problems of all files if any is invalid."""
    names = [arguments.path("files", file) for file in files]
    return run_command(("validate",), {"--batch": batch, "--dim": dimensions}, names, inputs=Inputs()).table


def compare(
    *results: File | Mapping[str, Any],
    layers: int = 20,
    csv: File | None = None,
    output: File | None = None,
    progress: Progress = None,
) -> Answer:
    """Compares results of modelled steps: files, folders, or dicts from `to_dict()`. The first is
    what the others are compared with. `output`: a folder for the page."""
    inputs = Inputs()
    names = [inputs.name(one, "results") for one in results]
    values = {"--layers": layers, "--csv": csv, "--output": output, "--json": "-"}
    return Answer(run_command(("compare",), values, names, inputs=inputs, progress=progress))


def explain(
    experiment: FileOrDict,
    *,
    layer: str | None = None,
    layers: int = 10,
    no_what_if: bool = False,
    jobs: int = 1,
    progress: Progress = None,
) -> Answer:
    """Shows why the step of an experiment takes its time, and models it again after changes that
    could help. `layer`: a layer whose loop nest is printed."""
    inputs = Inputs()
    name = inputs.name(experiment, "experiment")
    values = {"--layer": layer, "--layers": layers, "--no-what-if": no_what_if, "--jobs": jobs, "--json": "-"}
    return Answer(run_command(("explain",), values, [name], inputs=inputs, progress=progress))


class Formats(Answer):
    """Number formats, or numbers rounded to one."""

    def __init__(self, ran: Ran, array: Array | None = None, scales: Array | None = None, codes: Array | None = None):
        super().__init__(ran)
        self.array = array
        """The rounded array, or the product; None without either."""
        self.scales = scales
        """Scales of blocks, or None."""
        self.codes = codes
        """Codes of elements, or None."""


def formats(
    *names: str,
    round: Sequence[float] | None = None,
    quantise: Array | None = None,
    gemm: tuple[Array, Array] | None = None,
    format: str | None = None,
    block: tuple[int, int] | None = None,
    axes: tuple[int, int] | None = None,
    scale_mode: str = "floor",
    rounding: str = "even",
    seed: int = 0,
    saturate: bool = False,
    flush_subnormals: bool = False,
    symmetric: bool = False,
    full_range: bool = False,
    before: Array | None = None,
    operands: str | None = None,
    mul: str | None = None,
    acc: str | None = None,
    variant: str | None = None,
    fma: bool = False,
    lanes: int = 1,
    instructions: str = "best",
    jobs: int = 1,
) -> Formats:
    """Shows formats, rounds numbers or an array to one, or multiplies two matrices by an emulated unit.
    Names and options: docs/reference/number-formats.md."""
    values: dict[str, object] = {
        "--format": format, "--block": None if block is None else _shape("block", block), "--axes": axes,
        "--saturate": saturate, "--flush-subnormals": flush_subnormals, "--symmetric": symmetric,
        "--full-range": full_range, "--operands": operands, "--mul": mul, "--acc": acc, "--variant": variant,
        "--fma": fma, "--json": "-",
        "--scale-mode": _unless("floor", scale_mode), "--rounding": _unless("even", rounding),
        "--seed": _unless(0, seed), "--lanes": _unless(1, lanes), "--jobs": _unless(1, jobs),
        "--instructions": _unless("best", instructions),
    }  # fmt: skip
    if round is not None:
        values["--round"] = [_number(f"round[{i}]", number) for i, number in enumerate(arguments.several("round", round))]
    with tempfile.TemporaryDirectory(prefix="monet-") as folder:

        def saved(name: str, array: Array, argument: str) -> str:
            path = os.path.join(folder, name + ".npy")
            np.save(path, np.ascontiguousarray(arguments.numbers(argument, array)))
            return path

        results = {"--output": "array.npy", "--scales": "scales.npy", "--codes": "codes.npy"}
        if quantise is not None:
            values["--quantise"] = saved("quantise", quantise, "quantise")
        if gemm is not None:
            factors = arguments.several("gemm", gemm, 2)
            values["--gemm"] = [saved(f"factor{i}", factor, f"gemm[{i}]") for i, factor in enumerate(factors)]
        if before is not None:
            values["--before"] = saved("before", before, "before")
        wanted = {} if quantise is None and gemm is None else {"--output": results["--output"]}
        if quantise is not None:
            wanted |= {"--codes": "codes.npy"} | ({"--scales": "scales.npy"} if _has_blocks(format, block) else {})
        values |= {option: os.path.join(folder, name) for option, name in wanted.items()}
        ran = run_command(("formats",), values, list(names))
        ran.table = ran.table.replace(folder + os.sep, "")
        made = {option: np.load(os.path.join(folder, name)) for option, name in wanted.items()}
    return Formats(ran, made.get("--output"), made.get("--scales"), made.get("--codes"))


def _has_blocks(format: str | None, block: tuple[int, int] | None) -> bool:
    if block is not None or format is None:
        return block is not None
    shown = json.loads(run_command(("formats",), {"--json": "-"}, [format]).json)
    return any("blocks" in one for one in shown.get("formats", []))


def _workload(workload: Network | File | Sequence[Any], inputs: Inputs) -> dict[str, object]:
    if isinstance(workload, Network):
        return {"--workload": workload.path, **workload._values()}
    return {"--workload": inputs.name(workload, "workload")}


def _limit(limit: int | str) -> object:
    return "none" if type(limit) is int and limit == 0 else limit


def _precision(precision: str | Options | None) -> str | None:
    if precision is None or isinstance(precision, str):
        return precision
    if not isinstance(precision, Mapping):
        raise TypeError(f"precision: {arguments.kind_of(precision)} is neither the name of a type nor a dict")
    return json.dumps(DictText(precision, "precision").value)


def _settings(settings: Options | None) -> dict[str, object]:
    return {
        key: value if isinstance(value, str) else json.dumps(DictText(value, f"settings[{key!r}]").value)
        for key, value in arguments.mapping("settings", settings).items()
    }


def _unless(default: int | str, value: object) -> object:
    """None for the default, because an explicit option may require other options."""
    return None if type(value) is type(default) and value == default else value


def _shape(name: str, value: object) -> str:
    """Rows and columns as text, joined by "x"."""
    sizes = enumerate(arguments.several(name, value, 2))
    return "x".join(str(arguments.whole(f"{name}[{i}]", size, 1, 2**31)) for i, size in sizes)


def _number(name: str, value: object) -> str:
    """Any number as text, including infinities and NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: {arguments.kind_of(value)} is not a number")
    try:
        return repr(float(value))
    except OverflowError:
        raise ValueError(f"{name}: the number is too large") from None


def _with_file(ran: Ran, folder: File) -> Ran:
    """The command's output with the JSON file that it wrote in place of `--json -`: result.json or,
    for steps that take turns, iteration.json. The last line of the table then names the latter."""
    takes_turns = ran.table.rstrip().rpartition("\n")[2].startswith("iteration: ")
    text = Path(folder, "iteration.json" if takes_turns else "result.json").read_text(encoding="utf-8")
    return Ran(ran.code, ran.table, text, ran.messages)


__all__ = ["backward", "cluster", "compare", "core", "explain", "formats", "graph", "hardware_costs", "operators", "report", "run", "train", "validate"]
