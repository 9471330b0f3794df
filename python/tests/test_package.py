"""The package against the command line, and what it says of wrong calls."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import monet
import numpy as np
import pytest
from command_line import CHIP, DATA, NETWORK, SMALL, command


@pytest.fixture(scope="module")
def net() -> monet.Network:
    return monet.read_network(NETWORK, batch=2)


@pytest.fixture(scope="module")
def chip() -> monet.Chip:
    return monet.read_chip(CHIP)


@pytest.fixture(scope="module")
def result(net: monet.Network, chip: monet.Chip) -> monet.Result:
    return net.training_step(DATA / "training" / "adam.yaml").schedule(chip, mode="layer-by-layer")


def test_network_says_what_it_is(net: monet.Network) -> None:
    assert net.inputs[0].shape == (2, 3, 16, 16)
    assert net.outputs[0].shape == (2, 10)
    assert net.parameters > 70_000
    assert "operators" in repr(net)


@pytest.mark.parametrize("training", ["adam", "momentum", "sgd_fp16", "bf16_mixed", "mxint8_vectors"])
def test_training_is_the_command_lines(net: monet.Network, chip: monet.Chip, training: str) -> None:
    file = DATA / "training" / f"{training}.yaml"
    ours = net.training_step(file).schedule(chip, mode="layer-by-layer").to_json()
    assert ours == command("schedule", "--hardware", CHIP, "--workload", NETWORK, "--batch", "2", "--mode",
                           "layer-by-layer", "--training", file)  # fmt: skip


@pytest.mark.parametrize("hardware", ["pulp_cluster", "a100", "tpu_like_quad_core", "imc_digital"])
@pytest.mark.parametrize("mode", ["layer-by-layer", "fused", "auto"])
def test_inference_is_the_command_lines(hardware: str, mode: str) -> None:
    file = DATA / "hardware" / f"{hardware}.yaml"
    precision = "int8" if hardware == "imc_digital" else "fp16"
    ours = monet.read_network(SMALL).inference(precision).schedule(monet.read_chip(file), mode=mode, jobs=2).to_json()
    assert ours == command("schedule", "--hardware", file, "--workload", SMALL, "--mode", mode, "--precision", precision)


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("--objective", {"objective": "energy"}),
        ("--priority", {"priority": "memory"}),
        ("--lpf-limit", {"lpf_limit": 4}),
        ("--stream-like", {"stream_like": ["multicast"]}),
    ],
)
def test_options_are_the_command_lines(net: monet.Network, chip: monet.Chip, option: str, arguments: dict) -> None:
    value = next(iter(arguments.values()))
    text = value[0] if isinstance(value, list) else str(value)
    ours = net.inference().schedule(chip, mode="layer-by-layer", **arguments).to_json()
    assert ours == command("schedule", "--hardware", CHIP, "--workload", NETWORK, "--batch", "2", "--mode",
                           "layer-by-layer", option, text)  # fmt: skip


def test_dict_is_the_file(net: monet.Network, chip: monet.Chip, result: monet.Result) -> None:
    step = net.training_step(loss="cross_entropy", optimizer={"type": "adam", "learning_rate": 1e-3})
    ours = step.schedule(chip, mode="layer-by-layer")
    assert ours.latency_cycles == result.latency_cycles
    assert ours.energy_pj == result.energy_pj


def core_dict() -> dict:
    port = {"type": "read_write", "bandwidth_min": 8, "bandwidth_max": 64,
            "allocation": ["I1, tl", "I1, fh", "I2, tl", "I2, fh", "O, tl", "O, fh", "O, fl", "O, th"]}  # fmt: skip
    memory = {"size": 8388608, "r_cost": 10, "w_cost": 12, "operands": ["I1", "I2", "O"], "ports": [{"name": "p", **port}],
              "served_dimensions": ["D1", "D2"]}  # fmt: skip
    return {"name": "array", "vector_operators": True, "memories": {"sram": memory},
            "operational_array": {"unit_energy": 0.5, "unit_area": 0, "dimensions": ["D1", "D2"], "sizes": [8, 8]}}  # fmt: skip


def chip_dict() -> dict:
    dram = core_dict() | {"name": "dram", "kind": "offchip"}
    del dram["vector_operators"]
    dram["memories"] = {"dram": core_dict()["memories"]["sram"] | {"size": 10**12, "r_cost": 900, "w_cost": 900}}
    return {"name": "small", "cores": {0: core_dict(), 1: dram}, "offchip_core_id": 1,
            "core_connectivity": [{"type": "link", "cores": [0, 1], "bandwidth": 64, "unit_energy_cost": 0}]}  # fmt: skip


def test_chip_of_a_dict(net: monet.Network) -> None:
    chip = monet.read_chip(chip_dict())
    assert [core["name"] for core in chip.cores] == ["array", "dram"]
    assert chip.cores[0]["lanes"] == 64
    assert net.inference("int8").schedule(chip, mode="layer-by-layer").latency_cycles > 0


def test_optimisers_are_dicts(net: monet.Network) -> None:
    assert monet.AdamW(lr=1e-3, betas=(0.9, 0.99)) == {"type": "adamw", "learning_rate": 1e-3, "betas": [0.9, 0.99]}
    makers = [getattr(monet, name) for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "LAMB", "Muon")]
    for maker in makers:
        assert net.training_step(optimizer=maker(lr=0.01)) is not None
    assert net.training_step(optimizer=monet.Adafactor(weight_decay=0.1)) is not None
    with pytest.raises(TypeError, match="lr is learning_rate"):
        monet.Adam(learning_rate=1, lr=2)
    with pytest.raises(monet.InputError, match="momentun"):
        net.training_step(optimizer=monet.SGD(momentun=0.9))


def test_parts_are_attributes(result: monet.Result) -> None:
    assert result.memory.peak == result.peak_memory_bytes
    energy = result.energy
    parts = [energy.compute, energy.on_chip, energy.links, energy.off_chip, energy.leakage]
    assert sum(parts) == pytest.approx(result.energy_pj, rel=1e-12)
    assert energy.off_chip == energy["offchip_pj"] > 0


def test_columns_are_views(result: monet.Result) -> None:
    tiles = result.tiles
    assert tiles.rows == sum(core["tiles"] for core in result.to_dict()["cores"])
    starts = tiles["start_cycle"]
    assert not starts.flags.owndata
    assert not starts.flags.writeable
    assert np.all(np.diff(starts) >= 0)
    assert tiles["end_cycle"].max() <= result.latency_cycles
    assert set(np.unique(tiles["operator"])) <= set(range(len(result.operators)))
    with pytest.raises(ValueError):
        starts[0] = 1


def test_columns_keep_their_rows_alive(net: monet.Network, chip: monet.Chip) -> None:
    starts = net.inference().schedule(chip, mode="layer-by-layer").tiles["start_cycle"]
    copy = starts.copy()
    gc.collect()
    waste = [bytearray(1 << 20) for _ in range(16)]
    assert np.array_equal(starts, copy)
    del waste


def test_layers_and_memory_add_up(result: monet.Result) -> None:
    layers = result.layers
    assert layers["macs"].sum() == result.macs["total"]
    assert layers["critical_path_cycles"].sum() == result.latency_cycles
    assert layers.rows == len(result.operators)
    assert [result.operators[i] for i in layers["operator"]] == list(layers["name"])
    # Layers that cost most come first, equal ones in their order.
    order = list(zip(-layers["critical_path_cycles"], layers["operator"]))
    assert order == sorted(order)
    assert np.array_equal(layers["span_cycles"], layers["end_cycle"] - layers["start_cycle"])
    memory = result.memory_over_time
    owners = [name for name in memory if name.endswith("_bytes") and not name.startswith("offloaded")]
    assert sum(memory[name] for name in owners).max() == result.peak_memory_bytes
    assert result.transfers["bits"].min() > 0


def test_columns_show_a_table() -> None:
    names = np.array(["a", "<b>\n"], dtype=object)
    few = monet.Columns({"name": names, "cycles": np.array([7, 1234]), "part": np.array([0.5, 1 / 3])})
    assert str(few) == "name  cycles      part\na          7       0.5\n<b>\ufffd    1234  0.333333"
    assert few._repr_html_() == (
        '<div><table><thead><tr><th style="text-align:left">name</th><th style="text-align:right">cycles</th>'
        '<th style="text-align:right">part</th></tr></thead><tbody>'
        '<tr><td style="text-align:left">a</td><td style="text-align:right">7</td><td style="text-align:right">0.5</td></tr>'
        '<tr><td style="text-align:left">&lt;b&gt;\ufffd</td><td style="text-align:right">1234</td>'
        '<td style="text-align:right">0.333333</td></tr></tbody></table></div>'
    )
    many = monet.Columns({"cycle": np.arange(1_000_000)})
    assert str(many).splitlines()[-2:] == ["   39", "999,960 more rows"]
    assert many._repr_html_().count("<tr>") == 41
    assert "999,960 more rows" in many._repr_html_()
    assert str(monet.Columns({})) == ""


def test_report_is_the_command_lines(result: monet.Result, tmp_path: Path) -> None:
    page = result.report(tmp_path / "out")
    assert Path(page).stat().st_size > 10_000
    assert json.loads((tmp_path / "out" / "result.json").read_text())["latency_cycles"] == result.latency_cycles
    assert (tmp_path / "out" / "training.onnx").exists()
    assert "training step" in str(result)


def test_fused_results_tell_slices(chip: monet.Chip, result: monet.Result) -> None:
    network = monet.read_network(DATA / "workload" / "jia_resnet50.onnx")
    fused = network.inference().schedule(chip, mode="fused")
    assert fused.peak_memory_by_slices_bytes is not None
    assert fused.peak_memory_by_slices_bytes < fused.peak_memory_bytes
    assert result.peak_memory_by_slices_bytes is None


# --- What is wrong is said with its place ----------------------------------------------------


def test_a_missing_file_is_named() -> None:
    with pytest.raises(monet.InputError, match="nowhere.onnx"):
        monet.read_network("nowhere.onnx")
    with pytest.raises(monet.InputError, match=r"nowhere\.yaml"):
        monet.read_chip("nowhere.yaml")


def test_a_wrong_key_is_named_by_its_path(net: monet.Network) -> None:
    with pytest.raises(monet.InputError) as raised:
        net.training_step(optimizer={"type": "adam", "learning_rat": 0.1})
    assert raised.value.problems[0][0] == "training['optimizer']['learning_rat']"
    assert "unknown key" in raised.value.problems[0][1]


def test_a_wrong_key_of_a_core_is_named(tmp_path: Path) -> None:
    chip = chip_dict()
    chip["cores"][0]["memories"]["sram"]["sise"] = 3
    with pytest.raises(monet.InputError) as raised:
        monet.read_chip(chip)
    assert raised.value.problems[0][0] == "core 0['memories']['sram']['sise']"
    chip = chip_dict()
    chip["core_connectivity"][0]["bandwidth"] = -4
    with pytest.raises(monet.InputError) as raised:
        monet.read_chip(chip)
    assert raised.value.problems[0][0] == "dict['core_connectivity'][0]['bandwidth']"


def test_all_problems_come_at_once(net: monet.Network) -> None:
    with pytest.raises(monet.InputError) as raised:
        net.training_step(optimizer={"type": "adamm"}, los="x", precision={"weights": "fp17"})
    assert len(raised.value.problems) == 3


def test_what_does_not_fit_says_by_how_much(net: monet.Network) -> None:
    chip = chip_dict()
    chip["cores"][0]["memories"]["sram"]["size"] = 16
    with pytest.raises(monet.InfeasibleError, match="bits"):
        net.inference().schedule(monet.read_chip(chip), mode="layer-by-layer")


@pytest.mark.parametrize(
    "arguments",
    [{"mode": "fast"}, {"halo": ""}, {"priority": "x"}, {"objective": "area"}, {"stream_like": ["lins"]}, {"jobs": -1},
     {"lpf_limit": 65}],
)  # fmt: skip
def test_wrong_arguments_are_named(net: monet.Network, chip: monet.Chip, arguments: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        net.inference().schedule(chip, **arguments)


def test_wrong_types_are_refused(net: monet.Network, chip: monet.Chip) -> None:
    with pytest.raises(TypeError):
        net.inference().schedule(chip, jobs="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"training\['loss'\]"):
        net.training_step(loss=object())
    with pytest.raises(ValueError, match="batch"):
        monet.read_network(NETWORK, batch=0)
    with pytest.raises(monet.InputError, match="batch of 3"):
        monet.read_network(SMALL, batch=3)


# --- Threads, signals, memory -----------------------------------------------------------------


def test_an_exception_of_progress_ends_the_call(net: monet.Network, chip: monet.Chip) -> None:
    def stop(stage: str) -> None:
        if "schedule" in stage:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        net.inference().schedule(chip, mode="layer-by-layer", progress=stop)
    stages: list[str] = []
    net.inference().schedule(chip, mode="layer-by-layer", progress=stages.append)
    assert "read files" in stages


def test_ctrl_c_ends_a_long_call(chip: monet.Chip) -> None:
    long = monet.read_network(DATA / "workload" / "gpt2.onnx", batch=1).training_step(DATA / "training" / "adam.yaml")
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        long.schedule(chip, mode="fused")
    assert time.monotonic() - begin < 20


def test_schedules_leave_nothing_behind(net: monet.Network, chip: monet.Chip) -> None:
    step = net.inference()

    def run(times: int) -> int:
        for _ in range(times):
            step.schedule(chip, mode="layer-by-layer")
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(20)
    assert run(60) - before < 2048  # KiB


# --- Copies elsewhere -------------------------------------------------------------------------


def test_everything_is_pickled(net: monet.Network, chip: monet.Chip, result: monet.Result, tmp_path: Path) -> None:
    kept = pickle.loads(pickle.dumps(result))
    assert kept.to_json() == result.to_json()
    assert kept.latency_cycles == result.latency_cycles
    assert np.array_equal(kept.tiles["start_cycle"], result.tiles["start_cycle"])
    assert str(kept) == str(result)
    page = kept.report(tmp_path)
    assert Path(page).stat().st_size > 10_000
    assert pickle.loads(pickle.dumps(kept)).to_json() == result.to_json()
    step = net.training_step(loss="cross_entropy", optimizer={"type": "sgd", "learning_rate": 0.1})
    ours = pickle.loads(pickle.dumps(step)).schedule(pickle.loads(pickle.dumps(chip)), mode="layer-by-layer")
    assert ours.latency_cycles == step.schedule(chip, mode="layer-by-layer").latency_cycles
    assert pickle.loads(pickle.dumps(monet.read_chip(chip_dict()))).cores == monet.read_chip(chip_dict()).cores
    assert pickle.loads(pickle.dumps(net.inference({"weights": "int8"}))).network.inputs == net.inputs


def test_a_chip_changes(net: monet.Network, chip: monet.Chip) -> None:
    assert monet.read_chip(chip.to_dict()).cores == chip.cores
    step = net.inference()
    slow = chip.with_(dram_bandwidth_bits=8)
    assert slow.cores == chip.cores
    cycles = [step.schedule(one, mode="layer-by-layer").latency_cycles for one in (chip, slow)]
    assert cycles[1] > cycles[0]
    name = next(iter(chip.to_dict()["cores"]["0"]["memories"]))
    large = chip.with_({f"cores.0.memories.{name}.size": 2**26})
    assert 2**26 in [bits for _, bits, _ in large.cores[0]["memories"]]
    assert chip.with_(frequency_hz=1e9).frequency_hz == 1e9
    with pytest.raises(KeyError, match="cores.9"):
        chip.with_({"cores.9.memories": 1})
    with pytest.raises(monet.InputError, match="frequency"):
        chip.with_(frequency_hz=-1)


def chip_files(folder: Path) -> Path:
    """A chip whose cores and off-chip core are files in its folder and in `cores`; no path is absolute."""
    array, dram = core_dict(), chip_dict()["cores"][1]
    del dram["kind"]
    (folder / "cores").mkdir(parents=True)
    (folder / "cores" / "array.yaml").write_text(json.dumps(array))
    (folder / "dram.yaml").write_text(json.dumps(dram))
    system = folder / "chip.yaml"
    system.write_text("name: small\ncores: {0: array.yaml, 1: array.yaml}\noffchip_core: dram.yaml\nbandwidth: 64\n"
                      'core_connectivity: ["0, 1", "0, 2", {cores: [1, 2], bandwidth: 64}]\n')  # fmt: skip
    return system


def test_an_offchip_core_of_a_file_is_in_the_chips_dict(
    net: monet.Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = monet.read_chip(chip_files(tmp_path / "chips"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    step = net.inference("int8")
    expected = step.schedule(chip, mode="layer-by-layer")
    assert chip.to_dict()["offchip_core"]["memories"]["dram"]["size"] == 10**12
    for again in (monet.read_chip(chip.to_dict()), chip.with_(), pickle.loads(pickle.dumps(chip.with_()))):
        assert again.cores == chip.cores
        assert step.schedule(again, mode="layer-by-layer").latency_cycles == expected.latency_cycles
    command = monet.optimise.allocation(step, chip.with_(), mode="layer-by-layer", evaluations=5, population=2)
    assert command["compared"][0]["latency_cycles"] == expected.latency_cycles
    slow = chip.with_(dram_bandwidth_bits=8)
    assert slow.to_dict()["core_connectivity"][1:] == [{"cores": "0, 2", "bandwidth": 8}, {"cores": [1, 2], "bandwidth": 8}]
    assert slow.to_dict()["core_connectivity"][0] == "0, 1"
    assert step.schedule(slow, mode="layer-by-layer").latency_cycles > expected.latency_cycles
    small = chip.with_({"offchip_core.memories.dram.size": 2**33})
    assert small.cores[-1]["memories"] == [("dram", 2**33, 1)]
    places = {"offchip_core.memories.dram.r_cost": [900, 1800]}
    rows = monet.sweep(step, chip, mode="layer-by-layer", dram_bandwidth_bits=[8, 64], **places).rows
    assert [row["latency_cycles"] for row in rows[2:]] == [expected.latency_cycles] * 2
    assert rows[2]["energy_pj"] == expected.energy_pj < rows[3]["energy_pj"]
    with pytest.raises(monet.InputError, match=r"off-chip core\['memories'\]\['dram'\]\['size'\]"):
        chip.with_({"offchip_core.memories.dram.size": "large"})
    costs = monet.read_chip(chip.to_dict(), memory_costs=lambda core, memory, says: {"r_cost": 1} if core == "dram" else None)
    assert step.schedule(costs, mode="layer-by-layer").energy_pj < expected.energy_pj


def test_a_published_chip_with_an_offchip_file_changes() -> None:
    chip = monet.read_chip(DATA / "hardware" / "diana.yaml")
    assert monet.read_chip(chip.to_dict()).cores == chip.cores
    assert chip.with_(dram_bandwidth_bits=64).cores == chip.cores


def test_costs_are_functions(net: monet.Network, chip: monet.Chip) -> None:
    asked: list[tuple[str, str]] = []

    def memory(core: str, name: str, says: Mapping[str, Any]) -> dict[str, float] | None:
        asked.append((core, name))
        return {"r_cost": 2 * says["r_cost"], "w_cost": 2 * says["w_cost"]} if "r_cost" in says else None

    dear = monet.read_chip(CHIP, memory_costs=memory, array_costs=lambda core, array: {"unit_energy": 0})
    assert len(asked) == sum(len(core["memories"]) for core in chip.cores)
    before, after = (net.inference().schedule(one, mode="layer-by-layer") for one in (chip, dear))
    assert after.energy["compute_pj"] == 0 < before.energy["compute_pj"]
    assert after.energy["offchip_pj"] == pytest.approx(2 * before.energy["offchip_pj"])
    assert after.latency_cycles == before.latency_cycles
    with pytest.raises(ValueError, match="array_costs.*unit_energy.*finite"):
        monet.read_chip(CHIP, array_costs=lambda core, array: {"unit_energy": float("inf")})
    with pytest.raises(monet.InputError, match="r_kost"):
        monet.read_chip(CHIP, memory_costs=lambda core, name, says: {"r_kost": 1.0})


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))),
    ("private_data", ctypes.c_void_p),
]  # fmt: skip


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))), ("private_data", ctypes.c_void_p),
]  # fmt: skip


def structure(capsule: object, name: bytes, kind: type) -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return kind.from_address(pointer(capsule, name))


def test_columns_are_arrows() -> None:
    values = {"whole": np.arange(6, dtype=np.int64)[::2], "part": np.array([0.5, np.nan, -1.0]),
              "small": np.array([1, 2, 255], dtype=np.uint8), "flag": np.array([True, False, True]),
              "text": np.array(["a", None, "Grün"], dtype=object)}  # fmt: skip
    schemas, arrays = monet.Columns(values).__arrow_c_array__()
    schema, array = structure(schemas, b"arrow_schema", ArrowSchema), structure(arrays, b"arrow_array", ArrowArray)
    assert schema.format == b"+s"
    children = [schema.children[i].contents for i in range(schema.n_children)]
    assert [(child.name, child.format) for child in children] == [
        (b"whole", b"l"), (b"part", b"g"), (b"small", b"C"), (b"flag", b"b"), (b"text", b"u"),
    ]  # fmt: skip
    columns = [array.children[i].contents for i in range(array.n_children)]
    assert all(column.length == array.length == 3 for column in columns)

    def buffer(column: int, number: int, kind: Any, count: int) -> list[Any]:
        return list(ctypes.cast(columns[column].buffers[number], ctypes.POINTER(kind))[:count])

    assert buffer(0, 1, ctypes.c_int64, 3) == [0, 2, 4]
    assert buffer(1, 1, ctypes.c_double, 3)[::2] == [0.5, -1.0]
    assert buffer(2, 1, ctypes.c_uint8, 3) == [1, 2, 255]
    assert buffer(3, 1, ctypes.c_uint8, 1) == [0b101]
    assert columns[4].null_count == 1
    assert buffer(4, 0, ctypes.c_uint8, 1) == [0b101]
    assert buffer(4, 1, ctypes.c_int32, 4) == [0, 1, 1, 6]
    assert ctypes.string_at(columns[4].buffers[2], 6).decode() == "aGrün"
    schema.release(schema)
    assert not schema.release  # as the interface wants it
    del schemas, arrays
    gc.collect()
    with pytest.raises(TypeError, match="complex"):
        monet.Columns({"z": np.array([1j])}).__arrow_c_array__()


@pytest.mark.parametrize("seed", range(20))
def test_fronts_of_columns_are_what_nothing_beats(seed: int) -> None:
    random = np.random.default_rng(seed)
    count, most = int(random.integers(0, 60)), int(random.integers(2, 12))
    whole = random.integers(0, most, (3, count))
    part = np.where(random.random(count) < 0.1, np.nan, whole[2].astype(float))
    columns = monet.Columns({"a": whole[0], "b": whole[1], "c": part, "row": np.arange(count)})
    costs = [(-int(b), int(a), float(c)) for a, b, c in zip(whole[0], whole[1], part, strict=True)]

    def beaten(one: tuple[float, ...]) -> bool:
        return any(other != one and all(x <= y for x, y in zip(other, one, strict=True)) for other in costs)

    best = [row for row, cost in enumerate(costs) if cost[2] == cost[2] and not beaten(cost)]
    front = columns.front(minimise=["a", "c"], maximise=["b"])
    assert sorted(front["row"].tolist()) == best
    assert front["a"].tolist() == sorted(front["a"].tolist())
    assert set(front) == set(columns)


def test_tiles_are_arrows(result: monet.Result) -> None:
    _, arrays = result.tiles.__arrow_c_array__()
    array = structure(arrays, b"arrow_array", ArrowArray)
    assert array.length == result.tiles.rows
    starts = array.children[list(result.tiles).index("start_cycle")].contents
    found = ctypes.cast(starts.buffers[1], ctypes.POINTER(ctypes.c_int64))[: array.length]
    assert found == result.tiles["start_cycle"].tolist()
    assert result.tiles.__arrow_c_stream__() is not None
