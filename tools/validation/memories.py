"""SRAM compared with CACTI and Horowitz, and arithmetic outside the model's tables."""

import re
from typing import Any

from validation.section import CHIP, FITTED, Block, Pair, Row, Section, Tool

TABLE = "src/hardware/sram_table.inc"  # 1,239 runs of CACTI 7.0
NODES = (90, 65, 45, 32, 22)
MEMORIES = 31  # maximum in a core, in addition to one memory for all operands
EVERYTHING = ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]
# M. Horowitz, ISSCC 2014, figure 1.1.9, 45 nm and 0.9 V: pJ to read 64 bits from a cache, by KiB.
CACHES = {8: 10.0, 32: 20.0, 1024: 100.0}
# N. P. Jouppi et al., ISCA 2021, table 2, 7 nm: pJ of a product and of a sum in bfloat16.
BFLOAT16 = {"multiply": 0.21, "add": 0.11}

Point = tuple[int, int, list[float]]  # log2 of bytes, log2 of bits a word; read pJ, write pJ, mm2, ns


def points(tool: Tool) -> dict[tuple[int, int], list[Point]]:
    """Returns the points of the table by node and number of ports."""
    found: dict[tuple[int, int], list[Point]] = {}
    for line in (tool.root / TABLE).read_text(encoding="utf-8").splitlines():
        row = re.match(r"\{(\d), (\d+),\s+(\d+), \{(.*)\}\},$", line)
        if not row:
            continue
        ports, size, word = (int(one) for one in row.group(1, 2, 3))
        for node, cell in zip(NODES, re.findall(r"\{([^}]*)\}", row.group(4)), strict=True):
            if cell:
                found.setdefault((node, ports), []).append((size, word, [float(one) for one in cell.split(",")]))
    return found


def memory(bits: int, word: int, ports: int) -> dict[str, Any]:
    ways = [("rw", "read_write", ["I1, tl", "I1, fh"])] if ports == 1 else [("r", "read", ["I1, tl"]), ("w", "write", ["I1, fh"])]
    return {
        "size": bits, "auto_cost_extraction": True, "operands": ["I1"], "served_dimensions": ["D1"],
        "ports": [{"name": name, "type": kind, "bandwidth_max": word, "allocation": uses} for name, kind, uses in ways],
    }  # fmt: skip


def core(node: int, memories: dict[str, Any]) -> dict[str, Any]:
    behind = {
        "size": 1 << 40, "r_cost": 0, "w_cost": 0, "area": 0, "operands": ["I1", "I2", "O"], "served_dimensions": ["D1"],
        "ports": [{"name": "rw", "type": "read_write", "bandwidth_max": 64, "allocation": EVERYTHING}],
    }  # fmt: skip
    return {"name": "memories", "technology_nm": node, "memories": {**memories, "behind": behind},
            "operational_array": {"unit_energy": 0, "unit_area": 0, "dimensions": ["D1"], "sizes": [1]}}  # fmt: skip


def priced(tool: Tool, name: str, content: dict[str, Any]) -> str:
    return f"monet core --hardware {tool.file(f'memories/{name}.yaml', content)} --memories --json -"


def cacti_rows(tool: Tool) -> list[Row]:
    asked: list[tuple[str, Point]] = []
    for (node, ports), known in sorted(points(tool).items(), reverse=True):
        for begin in range(0, len(known), MEMORIES):
            some = known[begin : begin + MEMORIES]
            content = core(node, {f"m{size}_{word}": memory(8 << size, 1 << word, ports) for size, word, _ in some})
            command = priced(tool, f"{node}nm_{ports}_{begin // MEMORIES}", content)
            asked += [(command, point) for point in some]
    commands = list(dict.fromkeys(command for command, _ in asked))
    tool.run_all(commands)
    pairs: dict[str, dict[str, list[Pair]]] = {level: {"read": [], "write": [], "area": []} for level in ("one", "chosen")}
    for command, (size, word, figures) in asked:
        own = next(one for one in tool.run(command)["cores"][0]["memories"] if one["name"] == f"m{size}_{word}")
        for level, found in (("one", own["model"]["one_array"]), ("chosen", own)):
            for what, key, cacti in zip(("read", "write", "area"), ("read_energy_pj", "write_energy_pj", "area_mm2"), figures):
                pairs[level][what].append((cacti, found[key]))
    names = {"one": "one array, repaired to be monotone", "chosen": "as priced, in the number of macros that costs least"}
    keys = {"read": "read_energy_pj", "write": "write_energy_pj", "area": "area_mm2"}
    return [
        Row(f"{names[level]}: {what}", found, commands, f"`{keys[what]}` of {'`one_array`' if level == 'one' else '`memories`'}",
            kind=FITTED, counted=level == "one")
        for level, kinds in pairs.items()
        for what, found in kinds.items()
    ]  # fmt: skip


def cache_rows(tool: Tool) -> list[Row]:
    command = priced(tool, "caches", core(45, {f"cache_{kib}": memory(8192 * kib, 64, 1) for kib in CACHES}))
    own = {one["name"]: one for one in tool.run(command)["cores"][0]["memories"]}
    return [
        Row(f"{kib:,} KiB at 45 nm, 64 bits read", [(published, own[f"cache_{kib}"]["read_energy_pj"])], [command],
            "`read_energy_pj`", "pJ", CHIP)
        for kib, published in CACHES.items()
    ]  # fmt: skip


def bfloat_rows(tool: Tool) -> list[Row]:
    content = core(7, {})
    content["operational_array"] = {"auto_cost_extraction": True, "mac": {"multiply": "bf16", "variant": "rounded", "accumulate": "bf16"},
                                    "dimensions": ["D1"], "sizes": [1]}  # fmt: skip
    command = priced(tool, "bfloat16", content)
    own = tool.run(command)["cores"][0]["array"]["mac"]["energy_pj"]
    return [
        Row(f"bfloat16 at 7 nm: {what}", [(BFLOAT16[key], own[key])], [command], f"`energy_pj.{key}` of `mac`", "pJ", CHIP)
        for what, key in (("a product", "multiply"), ("a sum", "add"))
    ]


def section(tool: Tool) -> Section:
    known = sum(len(some) for some in points(tool).values())
    return Section(
        "Memories and arithmetic",
        f"""\
The SRAM model interpolates {known:,} runs of CACTI 7.0 (`{TABLE}`): 90 to 22 nm, 1 KiB to 32 MiB, 8
to 4,096 bits a word, one port for both directions or one for each. The points of the table do not test the model, but
show the effects of repair (energies and areas grow with size and word) and of macros. The caches of M. Horowitz
(ISSCC 2014) are another source.

Arithmetic is read from tables of Horowitz at 45 nm and of Jouppi et al. (ISCA 2021) at 7 nm. bfloat16 is not among
the points of the model.""",
        [
            Block("**Compared with CACTI**, every run:", cacti_rows(tool),
                  after="Macros should be cheaper than one array if words are wide. Their rows are shown but not counted."),
            Block("**Compared with other sources:**", cache_rows(tool) + bfloat_rows(tool)),
        ],
        "Repair moves cells that are out of order with others, by up to 21 % of energy and 69 % of area\n"
        "at nodes whose table has holes, and by less at 45 and 22 nm (docs/explanation/hardware-costs.md). Omitting a point and\n"
        "interpolating it from the rest errs by 7 % on average; no command shows that\n"
        "(`readers_test --gtest_filter='MemoryModel*'`).\n\n"
        "Horowitz's figures are rounded and of caches. Ours are of plain RAM, 15 to 40 % below. Products follow a power law in\n"
        "bits of the significand between fp16 and fp32.",
        "A compiled memory of a public process whose energy at 64 bits a word does not grow roughly\n"
        "as the square root of its size, or a wide memory whose macros do not pay.",
    )  # fmt: skip
