"""Area and power of Eyeriss and of the first TPU."""

from typing import Any

from validation.section import CHIP, Block, Row, Section, Tool

DIE = 331.0  # mm2, an upper bound (Jouppi et al., ISCA 2017, table 2); shares of it from its floor plan, figure 2
EYERISS = "monet core --hardware tests/fixtures/hardware/published/eyeriss_v1.yaml --memories --json -"
TPU = "monet core --hardware tests/fixtures/hardware/published/tpu_v1.yaml --memories --json -"


def area_of(core: dict[str, Any], name: str) -> float:
    return next(one["area_mm2"] * one["instances"] for one in core["memories"] if one["name"] == name)


def array_area(core: dict[str, Any]) -> float:
    return float(core["array"]["area_mm2"] * core["array"]["lanes"])


def section(tool: Tool) -> Section:
    eyeriss, tpu = tool.run_all([EYERISS, TPU])
    core = tpu["cores"][0]
    array = array_area(core) + area_of(core, "weights")
    rows = [
        Row("Eyeriss, area of the core", [(12.25, eyeriss["area_mm2"])], [EYERISS], "`area_mm2`", "mm2", CHIP),
        Row("Eyeriss, power: measured on AlexNet at 200 MHz; ours at peak", [(0.278, eyeriss["peak_power_w"])], [EYERISS],
            "`peak_power_w`", "W", CHIP),
        Row("TPU, die: at most", [(DIE, tpu["area_mm2"])], [TPU], "`area_mm2`", "mm2", CHIP),
        Row("TPU, unified buffer of 24 MiB: 29 % of the die", [(0.29 * DIE, area_of(core, "unified_buffer"))], [TPU],
            "`area_mm2` of `unified_buffer`", "mm2", CHIP),
        Row("TPU, accumulators of 4 MiB: 6 %", [(0.06 * DIE, area_of(core, "accumulators"))], [TPU],
            "`area_mm2` of `accumulators`", "mm2", CHIP),
        Row("TPU, multipliers and their weights: 24 %", [(0.24 * DIE, array)], [TPU],
            "`area_mm2` times `lanes` of `array`, and of `weights`", "mm2", CHIP),
        Row("TPU, power: busy at 700 MHz; ours at peak, without DRAM", [(40, tpu["peak_power_w"])], [TPU], "`peak_power_w`",
            "W", CHIP),
    ]  # fmt: skip
    return Section(
        "Areas and power of Eyeriss and the first TPU",
        """\
Eyeriss (Chen et al., JSSC 52(1), 2017): 65 nm, 168 elements of 16 bits, 108 KB. The first TPU (Jouppi et al., ISCA
2017): 28 nm, 65,536 multipliers of 8 bits, 28 MiB. The TPU's parts are shares of the die in its floor plan; the area
of the die is an upper bound. `tests/fixtures/hardware/published/` describes both chips, and the model prices
everything (`auto_cost_extraction`, docs/explanation/hardware-costs.md).""",
        [Block("", rows)],
        "The model's memories have 60 to 70 % of a chip's area, its logic a quarter: it prices cells\n"
        "without placement, clock tree, test and routing. Control, network and DRAM interfaces are not modelled. Power has the\n"
        "same gaps, but ours is at peak and the chips were measured on average. Compare designs with these areas; do not quote\n"
        "them as a die.",
        "A chip with a very different ratio of memories to multipliers whose area is not between a\n"
        "quarter of its logic and two thirds of its memories. Designs that trade one for the other would then be ranked\n"
        "wrongly.",
    )
