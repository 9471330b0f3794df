"""Units of the Archimedes project on an FPGA, and the SNAX cluster for microscaling formats."""

from typing import Any

from validation.memories import core
from validation.section import FITTED, Block, Row, Section, Tool

# Archimedes project (Inria), Vitis HLS 2020.2 for a ZCU104: LUTs and DSPs.
MULTIPLIERS = {"fp32": (374, 2), "fp16": (195, 1), "bf16": (180, 1), "e6m3": (115, 0), "e5m3": (86, 0), "e4m3": (78, 0),
               "q16.16": (279, 4), "q8.8": (106, 1), "q7.7": (93, 1), "q6.6": (81, 1)}  # fmt: skip
WITHOUT_DSPS = {"fp32": 987}
ACCUMULATORS = {"e7m7": 255, "e7m5": 185, "e7m3": 187, "e6m7": 242, "e6m5": 187, "e6m3": 165, "q16.16": 89, "q8.13": 55,
                "q8.8": 43, "q7.7": 35, "q6.6": 32}  # fmt: skip
ACCUMULATOR_FP32 = (189, 2)
CONVERTERS = {"e6m3": 116, "e6m2": 103, "e6m1": 72, "e5m3": 97, "e5m2": 81, "e5m1": 67}  # to Q8.13, by operands
SYSTEMS = {"fpga_fp32": (58_420, 320), "fpga_e5m2_e6m5": (42_640, 0), "fpga_e5m2_q8.13": (43_471, 0),
           "fpga_e5m2_q11.13": (44_876, 0)}  # fmt: skip

# SNAX cluster (KU Leuven, arXiv 2511.06313): our format, bits of an element with its share of a scale, published GOPS
# and GOPS/W. The lower efficiency belongs to MXFP8 rather than MXFP6 in our reading of the article.
SNAX = {"mxint8": (9, 64, 657), "mxfp8_e4m3": (9, 256, 1438), "mxfp6_e3m2": (7, 256, 1675), "mxfp4_e2m1": (5, 512, 4065)}
PRODUCTS = 64 * 64 * 512


def unit(tool: Tool, multiply: str, variant: str, accumulate: str, dsps: bool = True) -> str:
    content = core(22, {})
    mac: dict[str, Any] = {"multiply": multiply, "variant": variant, "accumulate": accumulate}
    if not dsps:
        mac["dsps"] = False
    content["operational_array"] = {"auto_cost_extraction": True, "mac": mac, "dimensions": ["D1"], "sizes": [1]}
    name = f"fpga/{multiply}_{variant}_{accumulate}{'' if dsps else '_luts'}.yaml"
    return f"monet core --hardware {tool.file(name, content)} --memories --json -"


def fpga_of(tool: Tool, command: str) -> dict[str, Any]:
    found: dict[str, Any] = tool.run(command)["cores"][0]["array"]["mac"]["fpga"]
    return found


def unit_rows(tool: Tool) -> list[Row]:
    rows = []
    asked: list[tuple[str, str, str, list[tuple[str, int, str]]]] = []
    for name, (luts, dsps) in MULTIPLIERS.items():
        asked.append(("multiplier", name, unit(tool, name, "rounded", name), [("luts", luts, ""), ("dsps", dsps, "")]))
    for name, luts in WITHOUT_DSPS.items():
        asked.append(("multiplier", name, unit(tool, name, "rounded", name, False), [("luts", luts, "")]))
    for name, luts in ACCUMULATORS.items():
        asked.append(("accumulator", name, unit(tool, "e2m1", "exact", name), [("luts", luts, "")]))
    asked.append(("accumulator", "fp32", unit(tool, "fp32", "rounded", "fp32"),
                  [("luts", ACCUMULATOR_FP32[0], ""), ("dsps", ACCUMULATOR_FP32[1], "")]))  # fmt: skip
    for name, luts in CONVERTERS.items():
        asked.append(("converter", name, unit(tool, name, "cfg5", "q8.13"), [("luts", luts, "")]))
    tool.run_all(command for _, _, command, _ in asked)
    for part in ("multiplier", "accumulator", "converter"):
        here = [one for one in asked if one[0] == part]
        for key, what in (("luts", "LUTs"), ("dsps", "DSPs")):
            pairs = [(published, fpga_of(tool, command)[part][key]) for _, _, command, figures in here
                     for known, published, _ in figures if known == key and published]  # fmt: skip
            if pairs:
                rows.append(Row(f"{what} of {part}s", pairs, [command for _, _, command, _ in here],
                                f"`{part}.{key}` of `fpga`", what, FITTED))  # fmt: skip
    return rows


def system_rows(tool: Tool) -> list[Row]:
    rows = []
    for file, (luts, dsps) in SYSTEMS.items():
        command = f"monet core --hardware data/hardware/cores/{file}.yaml --memories --json -"
        system = fpga_of(tool, command)["system"]
        name = file.removeprefix("fpga_").replace("_", ", sums in ")
        rows.append(Row(f"16 x 4 units at 280 MHz, {name}", [(luts, system["luts"])], [command], "`system.luts` of `fpga`", "LUTs", FITTED))
        if dsps:
            rows.append(Row("the same", [(dsps, system["dsps"])], [command], "`system.dsps` of `fpga`", "DSPs", FITTED))
    return rows


def snax_rows(tool: Tool) -> list[Row]:
    chip = "monet core --hardware data/hardware/snax_mx.yaml --memories --json -"
    peaks = {mode["formats"][0]: mode["peak_gops"] for mode in tool.run(chip)["cores"][0]["array"]["modes"]}
    rows = []
    for format_, (bits, gops, efficiency) in SNAX.items():
        layer = [{"id": 0, "name": "product", "operator_type": "Gemm", "equation": "O[d][k]+=I[d][c]*W[c][k]",
                  "dimension_relations": [], "loop_dims": ["C", "D", "K"], "loop_sizes": [512, 64, 64],
                  "operand_precision": {"W": bits, "I": bits, "O": 32, "O_final": 32}}]  # fmt: skip
        file = tool.file(f"fpga/{format_}.yaml", layer)
        command = (f"monet core --hardware data/hardware/cores/snax_mx_array.yaml --workload {file} --format {format_}"
                   " --json -")  # fmt: skip
        energy = tool.run(command)["energy_pj"]
        rows.append(Row(f"{format_}: efficiency", [(efficiency, 2000 * PRODUCTS / energy)], [command],
                        "two operations a product over `energy_pj`", "GOPS/W", FITTED))  # fmt: skip
        rows.append(Row(f"{format_}: peak", [(gops, peaks[format_])], [chip], "`peak_gops` of `modes`", "GOPS", FITTED))
    return rows


def section(tool: Tool) -> Section:
    return Section(
        "Units on an FPGA and the SNAX cluster",
        """\
The Archimedes project (Inria, "Exploring low-precision formats in MAC units for DNN training") built
multiply-accumulate units and systems of 64 of them for a ZCU104 with Vitis HLS 2020.2. KU Leuven published throughput
and efficiency of a SNAX cluster for microscaling formats in 22 nm (arXiv 2511.06313). Both determine constants of our
model (docs/explanation/mac-unit-costs.md).""",
        [
            Block("**Units.** Known formats are looked up, so these figures are exact; laws give the formats between them:", unit_rows(tool)),
            Block("**Systems**, with three constants fitted to four systems:", system_rows(tool)),
            Block("**SNAX**, 64 x 64 outputs of 512 products each. Two constants are fitted to four efficiencies; peaks are exact by\n"
                  "construction:", snax_rows(tool)),
        ],
        "These are fits of few constants. With one figure left out of the fit, E5M2's systems are 9.6 %\n"
        "above (sums in E6M5), 2.4 % below and 3.0 % above the published figures. SNAX's efficiencies are 5.7 % above (MXFP8),\n"
        "6.5 % below (MXFP6) and 1.3 % above (MXFP4). No command repeats the fits (`readers_test --gtest_filter='MacDesign*'`,\n"
        "`core_cost_test --gtest_filter='ArrayModeCost*'`). Laws are off the published units by up to 24 LUTs, the noise of\n"
        "synthesis.",
        "A further system of 64 such units, of another format, off by more than 10 % in LUTs; or a\n"
        "fifth efficiency of the cluster off by more than 7 %. Energies of units on a chip are predictions: no published figure\n"
        "could falsify them yet.",
    )
