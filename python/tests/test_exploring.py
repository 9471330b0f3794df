"""Spaces, strategies and sweeps from Python against the command line and against each other."""

from __future__ import annotations

import html
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import monet
import numpy as np
import pytest
from command_line import DATA, NETWORK, ROOT, TOOL
from monet.exploring import Design, read_store
from test_package import chip_dict

SMALL_EDGE = ROOT / "examples" / "spaces" / "small_edge.yaml"


class HillClimb:
    """What `climb` does: from the best design so far to its neighbours, in every objective."""

    def __init__(self, space: monet.Space, targets: Sequence[tuple[str, str]]) -> None:
        self.space, self.targets, self.known = space, list(targets), dict[int, Design]()

    def ask(self) -> list[int]:
        if not self.known:
            return [self.space.first_design()]
        for target in self.targets:
            best = min(self.known.values(), key=lambda design: (merit(design, *target), design.id))
            if near := [one for one in self.space.neighbours(best.id) if one not in self.known]:
                return near
        return []

    def tell(self, designs: Sequence[Design]) -> None:
        self.known.update((design.id, design) for design in designs)


def merit(design: Design, run: str, figure: str) -> float:
    if not design.feasible:
        return float("inf")
    return design.area_mm2 if figure == "area" else getattr(design.runs[run], figure)


TARGETS = [("inference", "latency_cycles"), ("inference", "energy_pj"), ("training", "latency_cycles"),
           ("training", "energy_pj"), ("training", "area")]  # fmt: skip


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """small_edge with a network and a mode that take milliseconds."""
    text = SMALL_EDGE.read_text().replace("../../data/workload/resnet18_cifar.onnx, batch: 4", f"{NETWORK}, batch: 1")
    text = text.replace("mode: auto", "mode: layer-by-layer").replace("../../data", str(DATA))
    text = text.replace("from: 256, to: 1024", "from: 64, to: 2048")
    path = tmp_path_factory.mktemp("space") / "quick.yaml"
    path.write_text(text)
    return path


def rows(path: Path) -> list[Design]:
    return read_store(path).designs


def test_space_is_the_files(quick: Path) -> None:
    space = monet.read_space(quick)
    assert space.parameters == {"elements": [1, 2, 4], "memory_kb": [64, 128, 256, 512, 1024, 2048],
                                "dram_kind": ["lpddr4", "lpddr5"]}  # fmt: skip
    assert space.size == 36
    assert space.values(7) == {"elements": 1, "memory_kb": 512, "dram_kind": "lpddr5"}
    assert space.id_of(space.choices(20)) == 20
    assert "elements > 1" in space.broken_constraint(0)
    assert space.first_design() == 6
    assert 0 not in space.neighbours(12)
    assert [core["name"] for core in space.chip(20).cores][:2] == ["element", "element"]
    assert "system.yaml" in space.hardware_files(20)
    with pytest.raises(IndexError, match="36"):
        space.values(36)
    with pytest.raises(IndexError, match="-1"):
        space.values(-1)
    assert pickle.loads(pickle.dumps(space)).size == 36


def test_exploration_is_the_command_lines(quick: Path) -> None:
    ended = subprocess.run([TOOL, "explore", quick, "--strategy", "racing", "--jobs", "2", "--json", "-"], check=True,
                           capture_output=True, text=True)  # fmt: skip
    theirs = json.loads(ended.stdout)
    found = monet.explore(quick, strategy="racing", jobs=2)
    ours = found.to_dict()
    for one in (ours, theirs):
        del one["seconds"]
    assert ours == theirs
    assert found.designs.rows == len(theirs["rows"])
    table = subprocess.run([TOOL, "explore", quick, "--strategy", "racing", "--jobs", "2"], check=True, capture_output=True,
                           text=True).stdout  # fmt: skip
    assert str(found) == table
    assert found._repr_html_() == f"<pre>{html.escape(table)}</pre>"
    stored = list(found)
    assert all(isinstance(design, Design) for design in stored)
    assert [design.id for design in stored] == found.designs["id"].tolist()
    front = found.front("inference: latency, energy")
    assert len(front["id"]) == len(theirs["fronts"]["inference: latency, energy"]["designs"])
    assert set(found.designs["elements"]) <= {1, 2, 4}


@pytest.mark.parametrize("jobs", [1, 2])
def test_own_strategy_has_the_rows_of_the_built_in(quick: Path, tmp_path: Path, jobs: int) -> None:
    space = monet.read_space(quick)
    monet.explore(space, strategy="climb", store=tmp_path / "theirs.sqlite", jobs=jobs)
    found = monet.explore(space, strategy=HillClimb(space, TARGETS), store=tmp_path / "ours.sqlite", jobs=jobs)
    assert found["strategy"] == "python: HillClimb"
    assert rows(tmp_path / "ours.sqlite") == rows(tmp_path / "theirs.sqlite")
    assert 5 < len(rows(tmp_path / "ours.sqlite")) < 34


def test_own_strategy_goes_on_after_kill_9(quick: Path, tmp_path: Path) -> None:
    space, store = monet.read_space(quick), tmp_path / "killed.sqlite"
    monet.explore(space, strategy="climb", store=tmp_path / "whole.sqlite")
    whole = rows(tmp_path / "whole.sqlite")
    script = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import monet, test_exploring as t\n"
        f"space = monet.read_space({str(quick)!r})\n"
        "class Slow(t.HillClimb):\n"
        "    def ask(self):\n"
        "        time.sleep(0.4)\n"
        "        return super().ask()\n"
        f"monet.explore(space, strategy=Slow(space, t.TARGETS), store={str(store)!r}, jobs=1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.1)
        try:
            if len(rows(store)) >= 4:
                break
        except monet.Error:
            continue
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = len(rows(store))
    assert 0 < before < len(whole)
    found = monet.explore(space, strategy=HillClimb(space, TARGETS), store=store, resume=True)
    assert rows(store) == whole
    assert not found.interrupted


def test_constraints_and_figures_are_called(quick: Path, tmp_path: Path) -> None:
    def constraint(design: Design) -> str | None:
        return "too small" if design.values["memory_kb"] == 512 else None

    figures = {"pj_per_cycle": lambda design: design.runs["training"].energy_pj / design.runs["training"].latency_cycles}
    one = monet.explore(quick, constraint=constraint, figures=figures, jobs=1, store=tmp_path / "one.sqlite")
    two = monet.explore(quick, constraint=constraint, figures=figures, jobs=2, store=tmp_path / "two.sqlite")
    assert rows(tmp_path / "one.sqlite") == rows(tmp_path / "two.sqlite")
    assert [design[:3] + design[4:] for design in one] == [design[:3] + design[4:] for design in rows(tmp_path / "one.sqlite")]
    kept = [design for design in rows(tmp_path / "one.sqlite") if design.feasible]
    assert kept
    for design in kept:
        training = design.runs["training"]
        assert design.metrics["pj_per_cycle"] == training.energy_pj / training.latency_cycles
    assert {"too small"} == {design.reason for design in rows(tmp_path / "one.sqlite")
                             if design.values["memory_kb"] == 512 and "budget" not in design.reason}  # fmt: skip
    assert len(two.designs["id"]) == one["designs"]
    best = two.designs.front(minimise=["pj_per_cycle", "area_mm2"])
    cost = {design.id: (design.metrics["pj_per_cycle"], design.area_mm2) for design in kept}
    assert set(best["id"]) == {one for one, (pj, mm2) in cost.items()
                               if not any(a <= pj and b <= mm2 and (a, b) != (pj, mm2) for a, b in cost.values())}  # fmt: skip
    with pytest.raises(monet.InputError, match="space"):  # another question than the store's
        monet.explore(quick, store=tmp_path / "one.sqlite", resume=True)


@pytest.mark.parametrize(
    ("asks", "error", "says"),
    [([99], IndexError, "design 99"), ([0], ValueError, "excludes design 0"), ([12, 12], ValueError, "asked for before"),
     (["x"], TypeError, "not a number"), (5, TypeError, "iterable")],
)  # fmt: skip
def test_wrong_asks_are_named(quick: Path, asks: Any, error: type[Exception], says: str) -> None:
    class Wrong:
        def ask(self) -> Any:
            return asks

        def tell(self, designs: Sequence[Design]) -> None:
            return None

    with pytest.raises(error, match=says):
        monet.explore(quick, strategy=Wrong())


def small_space() -> dict[str, Any]:
    """An array with three sizes of its memory; the first holds nothing."""
    chip = chip_dict()
    del chip["name"]
    array, dram = chip["cores"][0], chip["cores"][1]
    array["memories"]["sram"]["size"] = "${kib * 8192}"
    return {
        "name": "small", "workload": {"network": str(DATA / "workload" / "ds_cnn.onnx")}, "runs": ["inference"],
        "schedule": {"mode": "layer-by-layer", "lpf_limit": 3}, "parameters": {"kib": [2**-9, 64, 256]},
        "chip": {**chip, "cores": ["array", "dram"]}, "cores": {"array": array, "dram": dram},
    }  # fmt: skip


def test_designs_that_cannot_run_have_their_reason() -> None:
    found = monet.explore(small_space(), constraint=lambda design: design.values["kib"] < 200 or "too large by 56 KiB", jobs=1)
    reasons = list(found.designs["reason"])
    assert "bits" in reasons[0]
    assert reasons[1] == ""
    assert reasons[2] == "too large by # KiB"
    assert found["infeasible"] == 2
    assert set(found.front()["kib"]) == {64}


def test_exceptions_of_own_parts_end_the_run(quick: Path) -> None:
    class Raises(HillClimb):
        def tell(self, designs: Sequence[Design]) -> None:
            raise RuntimeError("enough of this")

    space = monet.read_space(quick)
    with pytest.raises(RuntimeError, match="enough of this"):
        monet.explore(space, strategy=Raises(space, TARGETS))
    with pytest.raises(ZeroDivisionError):
        monet.explore(quick, figures={"wrong": lambda design: 1 / 0}, jobs=2)
    with pytest.raises(TypeError, match=r"ask\(\)"):
        monet.explore(quick, strategy=object())  # type: ignore[arg-type]


def test_ctrl_c_gives_the_designs_so_far() -> None:
    threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    found = monet.explore(SMALL_EDGE, jobs=1)
    assert found.interrupted
    assert found["evaluated"] < 16


def test_ctrl_c_gives_the_best_so_far() -> None:
    step = monet.read_network(DATA / "workload" / "resnet18_cifar.onnx", batch=4).training_step(DATA / "training/adam.yaml")
    threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    states: list[Any] = []
    found = monet.optimise.fusion(step, monet.read_chip(DATA / "hardware/edge_tpu.yaml"), progress=states.append)
    assert found.interrupted
    assert found.best is not None
    assert found.bound is not None
    assert found.best >= found.bound > 0
    assert any(isinstance(state, dict) and state["best"] for state in states)


def test_a_callback_ends_a_search() -> None:
    class Enough(Exception):
        pass

    def progress(state: Any) -> None:
        if isinstance(state, dict) and state["done"] >= 1:
            raise Enough

    step = monet.read_network(NETWORK, batch=1).inference()
    with pytest.raises(Enough):
        monet.optimise.fusion(step, monet.read_chip(DATA / "hardware/edge_tpu.yaml"), progress=progress)


# --- Sweeps -----------------------------------------------------------------------------------


def small_step() -> monet.Step:
    return monet.read_network(ROOT / "fuzz" / "corpus" / "onnx" / "conv_block.onnx", batch=1).inference("int8")


def test_a_thousand_combinations_stream_and_resume(tmp_path: Path) -> None:
    chip = monet.read_chip(DATA / "hardware" / "single_core_mcu.yaml")
    axes: dict[str, Any] = {
        "dram_bandwidth_bits": [64 * n for n in range(1, 51)],
        "priority": ["latency", "memory", "order"][:2],
        "lpf_limit": list(range(1, 11)),
        "mode": "layer-by-layer",
    }
    store = tmp_path / "sweep.sqlite"
    whole = monet.sweep(small_step(), chip, store=store, **axes)
    assert len(whole) == 1000
    streamed = iter(whole)
    first = [next(streamed) for _ in range(100)]
    assert all(row["feasible"] for row in first)
    streamed.close()  # type: ignore[attr-defined]
    again = monet.sweep(small_step(), chip, store=store, **axes)
    begin = time.process_time()
    table = again.rows
    first_pass = time.process_time() - begin
    assert len(table) == 1000
    begin = time.process_time()
    stored = monet.sweep(small_step(), chip, store=store, **axes).rows
    assert time.process_time() - begin < max(1.0, first_pass)
    assert stored == table
    for row in (table[0], table[517], table[999]):
        changed = chip.with_(dram_bandwidth_bits=row["dram_bandwidth_bits"])
        alone = small_step().schedule(changed, mode="layer-by-layer", priority=row["priority"], lpf_limit=row["lpf_limit"])
        assert row["latency_cycles"] == alone.latency_cycles
        assert row["energy_pj"] == alone.energy_pj
    columns = again.columns()
    assert columns["latency_cycles"].dtype == np.int64
    assert columns.rows == 1000


def test_sweeps_tell_what_cannot_run_and_what_is_wrong() -> None:
    chip = monet.read_chip(DATA / "hardware" / "npu_small.yaml")
    number, core = next(iter(chip.to_dict()["cores"].items()))
    place = f"cores.{number}.memories.{list(core['memories'])[-1]}.size"
    rows = monet.sweep(small_step(), chip, mode="layer-by-layer", **{place: [8, 2**23]}).rows
    assert [row["feasible"] for row in rows] == [False, True]
    assert "bits" in rows[0]["reason"]
    slow = monet.sweep(small_step(), chip, mode="layer-by-layer", dram_bandwidth_bits=[64, 4096]).rows
    assert [row["feasible"] for row in slow] == [True, False]
    assert "channels of lpddr5" in slow[1]["reason"]
    with pytest.raises(TypeError, match="mod"):
        monet.sweep(small_step(), chip, mod=["fused"])
    with pytest.raises(ValueError, match="mode"):
        monet.sweep(small_step(), chip, mode=[])
    batches = monet.sweep(monet.read_network(NETWORK, batch=1).inference(), chip, batch=[1, 2], mode="layer-by-layer")
    assert repr(batches) == str(batches) == "Sweep(2 combinations of batch, mode: not all finished)"
    assert batches._done is None  # to look at it models nothing
    one, two = batches.rows
    assert str(batches) == str(batches.columns())
    assert batches._repr_html_() == batches.columns()._repr_html_()
    assert "energy_pj" in str(batches)
    assert one["latency_cycles"] < two["latency_cycles"]


# --- Execution --------------------------------------------------------------------------------


def test_execution_has_the_command_lines_numbers(tmp_path: Path) -> None:
    network = monet.read_network(NETWORK, batch=2)
    step = network.training_step(DATA / "training" / "adam.yaml")
    images = np.random.default_rng(1).normal(size=(2, 3, 16, 16))
    name = network.inputs[0].name
    run = step.execute({name: images}, seed=5, steps=2)
    np.save(tmp_path / "images.npy", images)
    told = monet.graph(step, execute=True, numbers={name: tmp_path / "images.npy"}, seed=5, steps=2, save=tmp_path / "out")
    assert run.losses == [row["loss"] for row in told["execution"]["steps"]]
    assert len(run.gradients) == len(told["execution"]["parameters"])
    for row in told["execution"]["parameters"]:
        gradient = run.gradients[row["name"]]
        assert list(gradient.shape) == row["shape"]
        assert np.linalg.norm(gradient) == pytest.approx(row["gradient_norm"], rel=1e-12)
        assert np.linalg.norm(run.updated[row["name"]]) == pytest.approx(row["updated_norm"], rel=1e-12)
    assert set(run.outputs) <= {tensor.name for tensor in network.outputs} | set(run.outputs)
    everything = step.execute({name: images}, seed=5, keep_all=True)
    assert len(everything.tensors) > len(run.tensors)
    with pytest.raises(KeyError, match="keep_all"):
        run[next(tensor for tensor in everything.tensors if tensor not in run.tensors)]


def test_wrong_numbers_are_named() -> None:
    step = monet.read_network(NETWORK, batch=2).training_step(DATA / "training" / "adam.yaml")
    with pytest.raises(monet.InputError, match="does not exist"):
        step.execute({"imput": np.zeros(3)})
    name = step.network.inputs[0].name
    with pytest.raises(monet.InputError, match=r"has shape \[2, 2\]"):
        step.execute({name: np.zeros((2, 2))})
    with pytest.raises(TypeError, match="has no numbers"):
        step.execute({name: np.array(["a"])})
    with pytest.raises(monet.InfeasibleError, match="bytes"):
        step.execute(memory_limit="1000")
