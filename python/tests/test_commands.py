"""Every command of the command line from Python: the same bytes, the same options, the same defaults."""

from __future__ import annotations

import html
import inspect
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import monet
import numpy as np
import pytest
from command_line import CHIP, DATA, NETWORK, ROOT, SMALL, TOOL, command
from monet import optimise
from monet.calls import options_of, program, python_name
from monet.model import Network, Step

ADAM = DATA / "training" / "adam.yaml"
STEP = ["--hardware", CHIP, "--workload", NETWORK, "--batch", 2]
TRAINING = [*STEP, "--training", ADAM]


def net() -> monet.Network:
    return monet.read_network(NETWORK, batch=2)


def step() -> monet.TrainingStep:
    return net().training_step(ADAM)


def chip() -> monet.Chip:
    return monet.read_chip(CHIP)


CORE = DATA / "hardware" / "cores" / "edge_tpu_pe.yaml"
NPU = DATA / "hardware" / "npu_small.yaml"
GEMM = DATA / "workload" / "gemm"
QUAD = DATA / "hardware" / "tpu_like_quad_core.yaml"
CIFAR = DATA / "workload" / "resnet18_cifar.onnx"
STREAM = ROOT / "examples" / "stream" / "quad_core_mapping.yaml"
CLUSTER = ROOT / "examples" / "cluster"

CALLS: dict[str, tuple[list[object], Callable[[], monet.Answer]]] = {
    "core": (
        ["core", "--hardware", CORE, "--workload", SMALL],
        lambda: monet.core(CORE, SMALL),
    ),
    "core of a network": (
        ["core", "--hardware", CORE, "--workload", NETWORK, "--batch", 2, "--objective", "energy", "--precision", "int8"],
        lambda: monet.core(CORE, net(), objective="energy", precision="int8"),
    ),
    "core of a list": (
        ["core", "--hardware", ROOT / "examples/core/two_by_two.yaml", "--workload", ROOT / "examples/core/product.yaml"],
        lambda: monet.core(ROOT / "examples/core/two_by_two.yaml", ROOT / "examples/core/product.yaml"),
    ),
    "core as ZigZag": (
        ["core", "--hardware", ROOT / "examples/core/two_by_two.yaml", "--workload", ROOT / "examples/core/product.yaml",
         "--model", "zigzag-3.8", "--choice", "widest-step=on", "--lpf-limit", "none"],
        lambda: monet.core(ROOT / "examples/core/two_by_two.yaml", ROOT / "examples/core/product.yaml",
                           model="zigzag-3.8", choices={"widest-step": True}, lpf_limit="none"),
    ),
    "memories": (["core", "--hardware", CHIP, "--memories"], lambda: monet.hardware_costs(CHIP)),
    "memories of a chip": (["core", "--hardware", NPU, "--memories"], lambda: monet.hardware_costs(monet.read_chip(NPU))),
    "backward": (
        ["backward", "--hardware", NPU, "--workload", GEMM / "dlrm.yaml", "--batch", 4],
        lambda: monet.backward(NPU, GEMM / "dlrm.yaml", batch=4),
    ),
    "backward of a product": (
        ["backward", "--hardware", NPU, "--gemm", "512,256,128", "--technique", "algorithm-1", "--tiles", "array",
         "--keep", "steps", "--pipelined"],
        lambda: monet.backward(NPU, gemm=(512, 256, 128), technique="algorithm-1", tiles="array", keep="steps",
                               pipelined=True),
    ),
    "backward on cores": (
        ["backward", "--hardware", NPU, "--workload", GEMM / "ncf.yaml", "--cores", 2, "--partition", "auto"],
        lambda: monet.backward(monet.read_chip(NPU), GEMM / "ncf.yaml", cores=2, partition="auto"),
    ),
    "cluster": (
        ["cluster", CLUSTER / "gpt3_175b.yaml"],
        lambda: monet.cluster(CLUSTER / "gpt3_175b.yaml"),
    ),
    "cluster with settings": (
        ["cluster", CLUSTER / "gpt3_175b.yaml", "--set", "micro_batch=2", "--allow-overflow"],
        lambda: monet.cluster(CLUSTER / "gpt3_175b.yaml", settings={"micro_batch": 2}, allow_overflow=True),
    ),
    "graph": (["graph", NETWORK, "--batch", 2, "--training", ADAM], lambda: monet.graph(step())),
    "graph of a network": (["graph", NETWORK, "--batch", 2, "--in-place"], lambda: monet.graph(net(), in_place=True)),
    "graph of inference": (
        ["graph", NETWORK, "--batch", 2, "--inference", "--precision", "int8"],
        lambda: monet.graph(net().inference("int8")),
    ),
    "execution": (
        ["graph", NETWORK, "--batch", 2, "--training", ADAM, "--execute", "--seed", 3, "--steps", 2],
        lambda: monet.graph(step(), execute=True, seed=3, steps=2),
    ),
    "execution in formats": (
        ["graph", NETWORK, "--batch", 2, "--training", DATA / "training" / "bf16_mixed.yaml", "--execute",
         "--arithmetic", "formats"],
        lambda: monet.graph(net().training_step(DATA / "training" / "bf16_mixed.yaml"), execute=True, arithmetic="formats"),
    ),
    "schedule": (
        ["schedule", *TRAINING, "--mode", "layer-by-layer"],
        lambda: step().schedule(chip(), mode="layer-by-layer"),  # type: ignore[dict-item, return-value]
    ),
    "schedule as Stream": (
        ["schedule", "--model", "stream-coala", "--hardware", QUAD, "--workload", CIFAR, "--batch", 1, "--mapping", STREAM,
         "--mode", "fused"],
        lambda: monet.schedule_as_stream(monet.read_network(CIFAR, batch=1), monet.read_chip(QUAD), STREAM, mode="fused"),
    ),
    "formats": (["formats"], lambda: monet.formats()),
    "formats by name": (["formats", "fp8_e4m3", "mxfp4_e2m1"], lambda: monet.formats("fp8_e4m3", "mxfp4_e2m1")),
    "numbers rounded": (
        ["formats", "--format", "fp8_e4m3", "--saturate", "--round", "0.3", "--round", "1000.0", "--round=-0.0"],
        lambda: monet.formats(format="fp8_e4m3", saturate=True, round=[0.3, 1000, -0.0]),
    ),
    "fusion": (
        ["optimise", "fusion", *STEP, "--evaluations", 1],
        lambda: optimise.fusion(net().inference(), chip(), evaluations=1),
    ),
    "fusion of Einsums": (
        ["optimise", "fusion", "--model", "einsum", "--matmuls", 64, 32, 48, 16, "--buffer", 8192],
        lambda: optimise.einsum(matmuls=(64, 32, 48, 16), buffer=8192),
    ),
    "allocation": (
        ["optimise", "allocation", *STEP, "--mode", "layer-by-layer", "--evaluations", 20, "--population", 8],
        lambda: optimise.allocation(net().inference(), chip(), mode="layer-by-layer", evaluations=20, population=8),
    ),
    "checkpointing": (
        ["optimise", "checkpointing", *TRAINING, "--mode", "layer-by-layer", "--memory", "stored", "--budget", "70%"],
        lambda: optimise.checkpointing(step(), chip(), mode="layer-by-layer", memory="stored", budget="70%"),
    ),
    "a sweep of budgets": (
        ["optimise", "checkpointing", *TRAINING, "--mode", "layer-by-layer", "--memory", "stored", "--sweep", "--steps", 3,
         "--method", "heuristics"],
        lambda: optimise.checkpointing(step(), chip(), mode="layer-by-layer", memory="stored", sweep=True, steps=3,
                                       method="heuristics"),
    ),
    "joint": (
        ["optimise", "joint", "--hardware", NPU, "--workload", SMALL, "--precision", "int8", "--evaluations", 1,
         "--group-evaluations", 0, "--core-evaluations", 0, "--levels", 0, "--rounds", 1],
        lambda: optimise.joint(monet.read_network(SMALL).inference("int8"), monet.read_chip(NPU), evaluations=1,
                               group_evaluations=0, core_evaluations=0, levels=0, rounds=1),
    ),
    "parallelism": (
        ["optimise", "parallelism", CLUSTER / "gpt3_175b_plan.yaml", "--set", "pipeline=8", "--set", "tensor=[4, 8]",
         "--set", "micro_batch=1"],
        lambda: optimise.parallelism(CLUSTER / "gpt3_175b_plan.yaml", settings={"pipeline": 8, "tensor": [4, 8], "micro_batch": 1}),
    ),
}  # fmt: skip


def without_time(text: str) -> str:
    """Seconds that a search took are no result."""
    return re.sub(r'"(seconds|evaluations_per_second)":[0-9.e+-]+', r'"\1":0', text)


@pytest.mark.parametrize("name", CALLS)
def test_call_is_the_command_lines(name: str) -> None:
    words, call = CALLS[name]
    ours, theirs = call().to_json(), command(*words)
    if words[0] == "optimise":
        ours, theirs = without_time(ours), without_time(theirs)
    assert ours == theirs


@pytest.mark.parametrize("name", CALLS)
def test_answer_shows_the_command_lines_table(name: str) -> None:
    words, call = CALLS[name]
    answer = call()
    shown = subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True).stdout
    assert str(answer) == shown
    assert shown.count("\n") >= 4
    assert "('')" not in repr(answer)
    if not isinstance(answer, monet.Result):
        assert answer._repr_html_() == f"<pre>{html.escape(shown)}</pre>"


def test_run_is_the_command_lines(tmp_path: Path) -> None:
    experiment = tmp_path / "small.yaml"
    experiment.write_text(f"workload: {{network: {NETWORK}, batch: 2}}\nhardware: {CHIP}\ntraining: {ADAM}\n"
                          "schedule: {mode: layer-by-layer}\n")  # fmt: skip
    subprocess.run([TOOL, "run", experiment, "-o", tmp_path / "theirs"], check=True, capture_output=True)
    answer = monet.run(experiment, tmp_path / "ours")
    assert answer.to_json() == (tmp_path / "theirs" / "result.json").read_text()
    page = monet.report(tmp_path / "ours" / "result.json", tmp_path / "again.html")
    assert Path(page).read_text() == (tmp_path / "theirs" / "report.html").read_text()
    of_dict = monet.run({"name": "small", "workload": {"network": str(NETWORK), "batch": 2}, "hardware": str(CHIP),
                         "training": str(ADAM), "schedule": {"mode": "layer-by-layer"}}, tmp_path / "dict")  # fmt: skip
    assert of_dict["latency_cycles"] == answer["latency_cycles"]
    assert "training step" in str(answer)
    assert "critical path (cycles)" in answer._repr_html_()


def test_steps_that_take_turns_are_an_iteration(tmp_path: Path) -> None:
    turns = tmp_path / "steps.yaml"
    turns.write_text("- {name: d, repeat: 2, loss: {type: network, outputs: {discriminator_loss: 1}},\n"
                     "   trainable: {train: ['discriminator.*']}, optimizer: adam}\n"
                     "- {name: g, loss: {type: network, outputs: {generator_loss: 1}},\n"
                     "   trainable: {train: ['generator.*']}, optimizer: adam}\n")  # fmt: skip
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.json").write_text("{}")  # of another run
    answer = monet.run({"workload": {"network": str(ROOT / "tests/fixtures/alternating/gan.onnx")}, "hardware": str(CHIP),
                        "training": str(turns)}, tmp_path / "out")  # fmt: skip
    assert answer.to_json() == (tmp_path / "out" / "iteration.json").read_text()
    assert answer["latency_cycles"] == sum(step["repeat"] * step["latency_cycles"] for step in answer["steps"])
    assert "an iteration" in str(answer)


def test_train_is_the_command_lines(tmp_path: Path) -> None:
    brief = tmp_path / "brief.yaml"
    brief.write_text(f"network: {NETWORK}\nbatch: 8\ndata: {{format: generated, train: 16, test: 8}}\n"
                     "training: {loss: cross_entropy, optimizer: {type: sgd, learning_rate: 0.05}}\nepochs: 1\nseeds: [1]\n")  # fmt: skip
    subprocess.run([TOOL, "train", brief, "-o", tmp_path / "theirs"], check=True, capture_output=True)
    curves = monet.train(brief, tmp_path / "ours")
    ours, theirs = curves.to_dict(), json.loads((tmp_path / "theirs" / "result.json").read_text())
    assert timeless(ours) == timeless(theirs)
    assert not curves.interrupted
    assert "test accuracy" in str(curves)
    assert "Curves('brief')" in repr(curves)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if "second" not in key}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def test_arrays_are_rounded(tmp_path: Path) -> None:
    numbers = np.linspace(-3, 3, 64).reshape(2, 32)
    made = monet.formats(quantise=numbers, format="mxfp4_e2m1")
    np.save(tmp_path / "in.npy", numbers)
    subprocess.run([TOOL, "formats", "--quantise", tmp_path / "in.npy", "--format", "mxfp4_e2m1", "-o", tmp_path / "out.npy"],
                   check=True, capture_output=True)  # fmt: skip
    assert made.array is not None
    assert np.array_equal(made.array, np.load(tmp_path / "out.npy"))
    assert made.scales is not None
    assert made.scales.shape == (2, 1)
    assert str(made).startswith("quantise.npy in fp4_e2m1")
    product = monet.formats(gemm=(np.eye(4), np.arange(16.0).reshape(4, 4)), mul="exact", acc="fp32")
    assert product.array is not None
    assert np.array_equal(product.array, np.arange(16.0).reshape(4, 4))


def test_results_are_compared_and_explained(tmp_path: Path) -> None:
    experiment = {"name": "small", "workload": {"network": str(DATA / "workload/resnet8_16.onnx"), "batch": 1},
                  "training": {"optimizer": {"type": "sgd"}}, "schedule": {"mode": "layer-by-layer"},
                  "hardware": str(DATA / "hardware/npu_small.yaml")}  # fmt: skip
    results = [monet.run(experiment, tmp_path / str(batch), batch=batch) for batch in (1, 2)]
    made = monet.compare(tmp_path / "1", tmp_path / "2")
    assert made["totals"][0]["values"] == [result["latency_cycles"] for result in results]
    assert "difference" in str(made)
    explained = monet.explain(experiment, no_what_if=True)
    assert explained["latency_cycles"] == results[0]["latency_cycles"]
    assert "waits most for" in str(explained)


# --- The list of commands and options ----------------------------------------------------------

# What in Python is an object, or has no use: of a step, a chip, the result.
STEP_OPTIONS = {"hardware", "workload", "training", "precision", "batch", "dimensions", "experiment", "json"}
FUNCTIONS: dict[tuple[str, ...], list[tuple[Callable[..., Any], set[str]]]] = {
    ("run",): [(monet.run, {"json"})],
    ("graph",): [(monet.graph, {"network", "operators", "training", "inference", "batch", "dimensions", "precision",
                                "json"})],
    ("core",): [(monet.core, {"memories", "batch", "dimensions", "json"}), (monet.hardware_costs, set())],
    ("backward",): [(monet.backward, {"dimensions", "json", "out"})],
    ("schedule",): [(Step.schedule, STEP_OPTIONS), (monet.schedule_as_stream, {"model"})],
    ("optimise", "allocation"): [(optimise.allocation, STEP_OPTIONS)],
    ("optimise", "fusion"): [(optimise.fusion, STEP_OPTIONS), (optimise.einsum, {"model"})],
    ("optimise", "checkpointing"): [(optimise.checkpointing, STEP_OPTIONS)],
    ("optimise", "joint"): [(optimise.joint, STEP_OPTIONS)],
    ("optimise", "parallelism"): [(optimise.parallelism, {"set", "json"})],
    ("explore",): [(monet.explore, {"compare", "of", "out", "json"}), (monet.compare_explorations, set())],
    ("formats",): [(monet.formats, {"formats", "output", "scales", "codes", "json"})],
    ("cluster",): [(monet.cluster, {"set", "json"})],
    ("train",): [(monet.train, {"json"})],
    ("report",): [(monet.report, set())],
    ("validate",): [(monet.validate, set())],
    ("compare",): [(monet.compare, {"fail_if", "json"})],
    ("explain",): [(monet.explain, {"json"})],
}  # fmt: skip


def leaves(described: dict[str, Any], words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not described["commands"]:
        return [words]
    return [leaf for one in described["commands"] for leaf in leaves(one, (*words, one["name"]))]


def test_every_command_is_there() -> None:
    assert set(leaves(program())) == set(FUNCTIONS)


@pytest.mark.parametrize("words", FUNCTIONS, ids=" ".join)
def test_every_option_is_there_with_its_default(words: tuple[str, ...]) -> None:
    parameters: dict[str, inspect.Parameter] = {}
    elsewhere: set[str] = set()
    for function, others in FUNCTIONS[words]:
        signature = inspect.signature(function).parameters
        parameters = {**signature, **parameters}
        elsewhere |= others
        if any(one.kind is one.VAR_KEYWORD for one in signature.values()):
            elsewhere |= set(optimise._COMMON)
    for option, described in options_of(words).items():
        name = python_name(option)
        if name in elsewhere:
            continue
        assert name in parameters, f"{option} of monet {' '.join(words)}"
        default = parameters[name].default
        if described["kind"] in ("flag", "text", "integer", "number") and default not in (None, inspect.Parameter.empty):
            expected = described["default"]
            assert default == expected or str(default) == str(expected), option


def test_networks_and_steps_are_exported() -> None:
    assert set(monet.__all__) <= set(dir(monet))
    assert isinstance(net(), Network)
