"""Arrays that compute in memory: ZigZag's own figures, and seven published chips."""

from typing import Any

from validation.section import CHIP, Block, Pair, Row, Section, Tool, error, number, percent

FIXTURES = "tests/fixtures/zigzag/imc"
PARTS = ("ideal_temporal_cycles", "stall_cycles", "onload_cycles", "offload_cycles")
# Totals of a list of layers with pooling and additions, from ZigZag's tests: pJ, cycles.
TOTALS = {"aimc.yaml": (4264976904.6396008, 4371385.0), "dimc.yaml": (4268285089.3547516, 5114707.0)}

# Results of the validation scripts of KULeuven-MICAS/zigzag-imc (commit df34a6f0): mm2, ns, TOPS/W. Each script is a
# separate model, with adder widths, sparsity and, in 22 nm, a scale of 22/28 for its chip.
SCRIPTS = {"AIMC1": (1.2443, 44.008, 1179.9), "AIMC2": (0.45669, 7.5404, 2.1354), "AIMC3": (1.9638, 2.8128, 18.430),
           "DIMC1": (0.88348, 4.2733, 36.294), "DIMC2": (0.023797, 3.1739, 8.6296), "DIMC3": (0.14615, 5.4014, 19.988),
           "DIMC4": (0.33075, 2.3804, 17.217)}  # fmt: skip
UNKNOWN_SPARSITY = ("AIMC2", "DIMC2", "DIMC4")  # chips whose efficiency is published without its sparsity

# Columns: name, publication, IEEE document, type, columns, rows, macros, bits of activations, bits of weights, bits applied
# at once, bits of the ADC, mm2 of a macro's cells (CACTI, from the validation scripts of KULeuven-MICAS/zigzag-imc, commit
# df34a6f0), node; published mm2, ns, TOPS/W.
Chip = tuple[str, str, str, str, int, int, int, int, int, int, int, float, int, float, float, float]
CHIPS: tuple[Chip, ...] = (
    ("AIMC1", "CICC 2021", "9431575", "analog", 512, 1024, 1, 8, 2, 8, 6, 0.24496704, 22, 1.9425, 1000 / 22.5, 1050),
    ("AIMC2", "JSSC 2023", "9896828", "analog", 12, 16, 4, 8, 8, 2, 5, 0.0360450648, 28, 0.468, 7.2, 15.02),
    ("AIMC3", "ISSCC 2023, 7.8", "10067289", "analog", 32, 64, 8, 8, 8, 1, 3, 0.004505472, 22, 1.88, 1000 / 364, 18.7),
    ("DIMC1", "ISSCC 2022, 15.5", "9731762", "digital", 6, 32, 64, 8, 8, 2, 0, 0.00065545, 28, 0.9408, 1000 / 195, 36.63),
    ("DIMC2", "ISSCC 2022, 11.7", "9731545", "digital", 1, 32, 2, 8, 8, 1, 0, 0.00396, 28, 0.03, 3, 22),
    ("DIMC3", "ISSCC 2023, 7.2", "10067260", "digital", 8, 128, 8, 8, 8, 2, 0, 0.00193147, 28, 0.1462, 1000 / 182, 19.5),
    ("DIMC4", "ISSCC 2023, 16.3", "10067779", "digital", 8, 128, 4, 8, 8, 1, 0, 0.00416728, 28, 0.269, 2.5, 275))


def core_of(chip: Chip) -> dict[str, Any]:
    """Returns a core with the nearest array of the model and a buffer without costs."""
    name, _, _, kind, columns, rows, macros, activation, weight, serial, adc, cells, *_ = chip
    array: dict[str, Any] = {
        "is_imc": True, "imc_type": kind, "input_precision": [activation, weight], "bit_serial_precision": serial,
        "dimensions": ["D1", "D2", "D3"], "sizes": [columns, rows, macros],
    }  # fmt: skip
    if kind == "analog":
        array["adc_resolution"] = adc

    def memory(size: int, area: float, operands: list[str], served: list[str], bits: int) -> dict[str, Any]:
        uses = [f"{one}, {way}" for one in operands for way in (("fh", "tl", "fl", "th") if one == "O" else ("fh", "tl"))]
        return {
            "size": size, "r_cost": 0, "w_cost": 0, "area": area, "operands": operands, "served_dimensions": served,
            "ports": [{"name": "rw_port_1", "type": "read_write", "bandwidth_min": bits, "bandwidth_max": bits, "allocation": uses}],
        }  # fmt: skip

    return {
        "name": name, "operational_array": array,
        "memories": {"cells": memory(weight, cells / (columns * rows), ["I2"], [], weight),
                     "buffer": memory(1 << 33, 0, ["I1", "I2", "O"], ["D1", "D2", "D3"], 64)},
    }  # fmt: skip


def chip_rows(tool: Tool) -> list[Row]:
    commands = [
        f"monet core --hardware {tool.file(f'imc/{chip[0].lower()}.yaml', core_of(chip))} --memories --json -" for chip in CHIPS]
    rows = []
    for chip, command, found in zip(CHIPS, commands, tool.run_all(commands)):
        imc = found["cores"][0]["array"]["imc"]
        ours = (imc["area_mm2"]["total"], imc["clock_ns"]["total"], imc["peak_tops_per_w"])
        for what, unit, key, published, mine in zip(
            ("area", "clock period", "efficiency"), ("mm2", "ns", "TOPS/W"),
            ("area_mm2", "clock_ns", "peak_tops_per_w"), chip[13:], ours,
        ):  # fmt: skip
            counted = key != "peak_tops_per_w" or chip[0] not in UNKNOWN_SPARSITY
            rows.append(Row(f"{chip[0]} ({chip[1]}, {chip[12]} nm): {what}", [(published, mine)], [command],
                            f"`{key}` of `imc`", unit, CHIP, counted))  # fmt: skip
    return rows


def script_block() -> Block:
    """Compares the validation scripts, separate models, with the chips."""
    table = [
        [chip[0], *(f"{number(own)} ({percent(error((published, own)))})" for published, own in zip(chip[13:], SCRIPTS[chip[0]]))]
        for chip in CHIPS
    ]
    return Block(
        "The validation scripts of zigzag-imc, for comparison. Each script is a separate model, with adder widths, sparsity and\n"
        "a scale for 22 nm that fit its chip:",
        header=["chip", "area, mm2", "clock period, ns", "efficiency, TOPS/W"], table=table)


def command_of(run: dict[str, Any]) -> str:
    network = run["workload"].endswith(".onnx")
    workload = f"data/workload/{run['workload']} --batch 1" if network else f"{FIXTURES}/{run['workload']}"
    mode = " --mixed --data-locality" if run["mode"] == "imc" else ""
    return (
        f"monet core --model zigzag-3.8 --hardware {FIXTURES}/{run['hardware']} --mapping {FIXTURES}/{run['mapping']}"
        f" --workload {workload} --lpf-limit {run['lpf']} --generated 3{mode} --json -"
    )


def layer_pairs(layer: dict[str, Any], reference: dict[str, Any]) -> tuple[list[Pair], list[Pair]]:
    """Returns the pairs of energies, by part and by memory, and the pairs of cycles."""
    energies: list[Pair] = [(reference["energy_pj"], layer["energy_pj"])]
    energies += [(want, layer["imc"]["energy_pj"][part]) for part, want in reference["mac"].items()]
    for operand, levels in reference["memory"].items():
        own = [one["energy_pj"] for one in layer["memory_levels"] if one["operand"] == operand]
        energies += list(zip(levels, own, strict=True))
    return energies, [(want, layer["latency"][part]) for want, part in zip(reference["latency"], PARTS)]


def reference_rows(tool: Tool) -> list[Row]:
    runs = tool.read_json(f"{FIXTURES}/expected.json")
    commands = [command_of(run) for run in runs]
    totals: dict[str, list[Pair]] = {"energy": [], "cycles": [], "parts": [], "energies": [], "latencies": []}
    layers = 0
    for run, found in zip(runs, tool.run_all(commands)):
        totals["energy"].append((run["energy_pj"], found["energy_pj"]))
        totals["cycles"].append((run["latency_cycles"], found["latency_cycles"]))
        imc = found["hardware"]["cores"][0]["array"]["imc"]
        for key in ("area_mm2", "clock_ns", "peak_energy_per_cycle_pj"):
            totals["parts"] += [(want, imc[key][part]) for part, want in run[key].items()]
        for key, theirs in (("peak_tops", "TOPS"), ("peak_tops_per_w", "TOPS_per_W"), ("peak_tops_per_mm2", "TOPS_per_mm2")):
            totals["parts"].append((run["peak"][theirs], imc[key]))
        own = {layer["name"]: layer for layer in found["layers"]}
        for reference in run["layers"]:
            layers += 1
            energies, latencies = layer_pairs(own[reference["name"]], reference)
            totals["energies"] += energies
            totals["latencies"] += latencies
    listed = [
        command_of({"hardware": hardware, "mapping": "default_imc.yaml", "workload": "resnet18_layers.yaml", "mode": "imc", "lpf": 6})
        for hardware in TOTALS
    ]  # fmt: skip
    results = tool.run_all(listed)
    return [
        Row("energy of a workload on five arrays", totals["energy"], commands, "`energy_pj`"),
        Row("its cycles", totals["cycles"], commands, "`latency_cycles`"),
        Row("area, clock and energy of a cycle by part, peaks", totals["parts"], commands, "`imc` of `hardware`"),
        Row(f"energy of {layers} layers, by part and memory", totals["energies"], commands, "`imc` and `memory_levels` of `layers`"),
        Row("their ideal, stall, onload and offload cycles", totals["latencies"], commands, "`latency` of `layers`"),
        Row("ResNet-18 with pooling and additions, analog and digital: energy",
            [(want[0], found["energy_pj"]) for want, found in zip(TOTALS.values(), results)], listed, "`energy_pj`"),
        Row("its cycles", [(want[1], found["latency_cycles"]) for want, found in zip(TOTALS.values(), results)], listed,
            "`latency_cycles`"),
    ]  # fmt: skip


def section(tool: Tool) -> Section:
    return Section(
        "Arrays that compute in memory",
        f"""\
First the comparison with ZigZag 3.8.5, whose model of such arrays is ours: nine runs of layers and of ResNet-18 on
analog and digital arrays, with given and generated mappings, and two totals from ZigZag's tests
(`{FIXTURES}/`). Then seven published chips, named as in the validation of zigzag-imc (KU Leuven), with
area, clock and efficiency from their papers.""",
        [
            Block("**The program.**", reference_rows(tool)),
            Block(
                "**The chips**, on the nearest array of the model: 28 nm and 0.9 V for every chip, no sparsity, and zigzag-imc's cell\n"
                "areas. AIMC1 has activations of 7 bits, which MONET rejects, as ZigZag does: 8 bits stand for them.",
                chip_rows(tool),
                after=f"The sparsity of the operands behind the efficiencies of {', '.join(UNKNOWN_SPARSITY)} is unknown. These rows are shown\n"
                "but not counted.",
            ),
            script_block(),
        ],
        "Under `--model zigzag-3.8` nothing is left to explain. The chips differ: one technology stands\n"
        "for all, with dense operands and everything in use, and only the parts of the array are counted.\n\n"
        "The scripts, each with the sparsity, the adder widths and the node of its chip, are within 3 % of the published\n"
        "efficiencies of AIMC3, DIMC1 and DIMC3, so the plain model's errors there come from these three. Where the published\n"
        "efficiency is of unknown sparsity, the scripts are as far off as the model (AIMC2, DIMC4).\n\n"
        "Compare shapes of one kind of array with these figures. Do not quote one as a chip, nor compare a digital array with\n"
        "an analog one.",
        "Two dense chips of one kind, node and precision, with different rows or bits of the ADC,\n"
        "whose efficiencies rank otherwise than in the model.",
    )
