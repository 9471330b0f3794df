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
    """Returns the chip with processors that issue products only."""
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
PULP-TrainLib on a cluster of eight RISC-V processors with two fp16 lanes (Nadalini et al., FGCS 149, 2023, arXiv
2305.19167: averages of a training step of one sample, 17.1 and 6.4 ms), on `data/hardware/pulp_cluster.yaml`.
Instructions were counted in the library's sources and not fitted; `cores/pulp_processors.yaml` has every count.

The networks are our versions of MLPerf Tiny's, with batch normalisation folded. The article's networks are not
published and cannot be the same. At its rates and times, and the chip's maximum of 450 MHz, a step of its ResNet-8
has at most 23.9 million products and one of its DS-CNN 2.3 million. Ours have 37.1 and 7.7 million.""",
        [Block("", rows)],
        "Lanes that only multiply are 5 and 18 times as fast as measured; with their instructions, 1.7\n"
        "and 3.7 times. In the DS-CNN's step, 60 % are depthwise convolutions. Their windows are copied element by element for\n"
        "a single product each (0.5 to 0.7 a cycle), while pointwise convolutions run at 7.\n\n"
        "Not modelled: conflicts of processors at a bank of the memory, misses of the instruction cache, sums that wait for the\n"
        "previous sum in the floating-point unit, and changes of layout between kernels. Idle processors are not modelled\n"
        "either: three of eight unfold a window of three channels.",
        "The library's cycles of one convolution in memory, by step. Ours has at most 8 x 2 / 2.08 =\n"
        "7.7 products a cycle, 11 processor cycles for each copied element, and 5.2 for each sum.",
    )
