"""Training steps on a cluster of small processors."""

import re
from typing import Any

from validation.section import CHIP, Block, Row, Section, Tool

MEASURED = {"resnet8": 3.11, "ds_cnn": 0.81}  # multiply-accumulates in a cycle
NAMES = {"resnet8": "ResNet-8", "ds_cnn": "DS-CNN"}
HARDWARE = "data/hardware/"


def command(network: str, chip: str) -> str:
    return (f"monet schedule --hardware {chip} --workload data/workload/{network}.onnx"
            " --training data/training/sgd_fp16.yaml --mode layer-by-layer --json -")  # fmt: skip


def without_instructions(tool: Tool) -> str:
    """The chip with processors that issue nothing but products."""
    for name in ("pulp_cluster.yaml", "cores/pulp_l2.yaml"):
        tool.file(f"pulp/{name}", (tool.root / HARDWARE / name).read_text(encoding="utf-8"))
    core = (tool.root / HARDWARE / "cores/pulp_processors.yaml").read_text(encoding="utf-8")
    tool.file("pulp/cores/pulp_processors.yaml", re.sub(r"\nissue:\n.*?\n\n", "\n\n", core, flags=re.DOTALL))
    return "out/validation/pulp/pulp_cluster.yaml"


def rate(result: dict[str, Any]) -> float:
    return sum(layer["macs"] for layer in result["layers"]) / result["latency_cycles"]


def section(tool: Tool) -> Section:
    chips = {"with `issue`": HARDWARE + "pulp_cluster.yaml", "without": without_instructions(tool)}
    rows = []
    for how, chip in chips.items():
        for network, measured in MEASURED.items():
            one = command(network, chip)
            rows.append(Row(f"{NAMES[network]}, {how}", [(measured, rate(tool.run(one)))], [one],
                            "`macs` of `layers` over `latency_cycles`", "MAC/cycle", CHIP, how != "without"))  # fmt: skip
    return Section(
        "Training steps on eight RISC-V processors",
        """\
PULP-TrainLib on a cluster of eight RISC-V processors with two fp16 lanes (Nadalini et al., FGCS 149, 2023, arXiv 2305.19167: averages of a training step of one sample, 17.1 and 6.4 ms), on
`data/hardware/pulp_cluster.yaml`. What instructions take was counted in the library's sources and fitted to nothing; every count stands in `cores/pulp_processors.yaml`. The networks are ours after MLPerf
Tiny, with batch normalisation folded. The article's own are not published with it and cannot be the same: at its rates and times, and the chip's 450 MHz at most, a step of its ResNet-8 has no more than 23.9 million
products and one of its DS-CNN 2.3, where these have 37.1 and 7.7.""",
        [Block("", rows)],
        "Lanes that do nothing but products are 5 and 18 times as fast as was measured; with their instructions 1.7 and 3.7 times. Of the DS-CNN's"
        " step 60 % are depthwise convolutions, whose windows are copied element by element for a single product each (0.5 to 0.7 a cycle), while pointwise ones run at 7. Not modelled: processors that want"
        " one bank of the memory at once, misses of the instruction cache, sums that wait for the one before them in the floating-point unit, processors without work (a window of three channels is unfolded by three of eight), and changes of layout"
        " between kernels.",
        "The same library's cycles of one convolution in memory, by step: ours has 8 x 2 / 2.08 = 7.7 products a cycle at most, 11 processor cycles for each copied element, and 5.2 for each sum.",
    )
