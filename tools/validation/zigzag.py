"""ZigZag 3.8.5, which `monet core --model zigzag-3.8` follows."""

from typing import Any

from validation.section import Block, Pair, Row, Section, Tool

FIXTURES = "tests/fixtures/zigzag"
PARTS = ("ideal_temporal_cycles", "stall_cycles", "onload_cycles", "offload_cycles")
NETWORK = (
    "monet core --model zigzag-3.8 --hardware tests/fixtures/zigzag/tpu_like.yaml --mapping"
    " tests/fixtures/zigzag/tpu_like_mapping.yaml --workload data/workload/resnet18.onnx --batch 1 --json -"
)
OBJECTIVES = ("latency", "energy", "edp")


def network_rows(tool: Tool) -> list[Row]:
    found = tool.run(NETWORK)
    expected = tool.read_json(f"{FIXTURES}/tpu_like_resnet18_latency_lpf6.json")
    layers = {layer["name"]: layer for layer in found["layers"]}
    energies, cycles, orders = [], [], []
    for reference in expected["layers"]:
        layer = layers[reference["name"]]
        energies.append((reference["energy_pj"], layer["energy_pj"]))
        cycles += [(want, layer["latency"][part]) for want, part in zip(reference["latency"], PARTS)]
        orders.append((1.0, float(layer["temporal_mapping"] == reference["order"])))
    return [
        Row("ResNet-18, energy", [(expected["energy_pj"], found["energy_pj"])], [NETWORK], "`energy_pj`", "pJ"),
        Row("ResNet-18, latency", [(expected["latency_cycles"], found["latency_cycles"])], [NETWORK], "`latency_cycles`",
            "cycles"),
        Row("energy of its layers", energies, [NETWORK], "`energy_pj` of `layers`"),
        Row("their ideal, stall, onload and offload cycles", cycles, [NETWORK], "`latency` of `layers`"),
        Row("their order of loops: the same", orders, [NETWORK], "`temporal_mapping` of `layers`"),
    ]  # fmt: skip


def command_of(tool: Tool, place: int, case: dict[str, Any], objective: str) -> str:
    files = {name: tool.file(f"zigzag/{place}/{name}.yaml", case[name]) for name in ("hardware", "workload", "mapping")}
    options = case["options"]
    return (
        f"monet core --model zigzag-3.8 --hardware {files['hardware']} --workload {files['workload']} --mapping"
        f" {files['mapping']} --lpf-limit {options['lpf']} --generated {options['nsm']} --allocation"
        f" {'even' if options['even'] else 'uneven'}{' --mixed' if options['mix'] else ''} --objective {objective} --json -"
    )


def random_rows(tool: Tool) -> list[Row]:
    cases = tool.read_json(f"{FIXTURES}/random_cores.json")
    asked = [(command_of(tool, place, case, objective),
              case["expected"][objective]) for place, case in enumerate(cases) for objective in OBJECTIVES if objective in case[
                 "expected"]]
    commands = [command for command, _ in asked]
    energies: list[Pair] = []
    latencies: list[Pair] = []
    layers: list[Pair] = []
    for found, (_, expected) in zip(tool.run_all(commands), asked):
        energies.append((expected["energy_pj"], found["energy_pj"]))
        latencies.append((expected["latency_cycles"], found["latency_cycles"]))
        for layer, reference in zip(found["layers"], expected["layers"], strict=True):
            layers.append((reference["energy_pj"], layer["energy_pj"]))
            layers += [(want, layer["latency"][part]) for want, part in zip(reference["latency"], PARTS)]
    what = f"{len(cases)} random cores, best for latency, energy and their product:"
    return [Row(f"{what} energy", energies, commands, "`energy_pj`"), Row("latency", latencies, commands, "`latency_cycles`"),
            Row("energy and parts of the latency of each layer", layers, commands, "`energy_pj` and `latency` of `layers`")]


def section(tool: Tool) -> Section:
    return Section(
        "ZigZag 3.8.5",
        """\
ZigZag (KU Leuven) maps a layer on one core. Its figures were recorded from the program, release 3.8.5: ResNet-18 on
its `tpu_like`, and random cores, layers and mappings with 1 to 4 array dimensions, memories and ports shared in many
ways, odd sizes, strides, groups and precisions (`tests/fixtures/zigzag/`). `--model zigzag-3.8` must give ZigZag's
figures. The default model departs from it in named points (docs/explanation/core-cost-zigzag.md).""",
        [Block("", network_rows(tool)), Block("", random_rows(tool))],
        "Nothing is left to explain under `--model zigzag-3.8`. `cli_test --gtest_filter='ZigZagCores*'`\n"
        "compares the loop orders and cuts of the random cases. How far the default model is from ZigZag depends on the points\n"
        "in docs/explanation/core-cost-zigzag.md; `--choice` sets each of them.",
        "A core or layer that ZigZag 3.8.5 accepts with another energy or another number of cycles.\n"
        "Agreement of the two proves nothing about silicon.",
    )
