"""AccelForge's fused mappings, the model of `monet optimise fusion --model einsum`."""

import csv

from validation.section import Block, Pair, Row, Section, Tool

FIXTURES = "tests/fixtures/fused_mapping"
CHAIN = "monet optimise fusion --model einsum --matmuls {sizes}{more} --json -"
# Recorded from the mapper: least bits across DRAM of chains of products of 64 x 64, by products and buffer bits.
UNFUSED = {2: 196_608}
LEAST = {(2, None): 131_072, (4, None): 196_608, (8, None): 327_680, (16, None): 589_824, (4, 16_384): 589_824,
         (4, 65_536): 262_144, (4, 131_072): 196_608}  # fmt: skip


def chain(products: int, more: str = "") -> str:
    return CHAIN.format(sizes=",".join(["64"] * (products + 2)), more=more)


def front_rows(tool: Tool, products: int) -> list[Row]:
    command = chain(products)
    own = [(point["buffer_bits"], point["dram_bits"]) for point in tool.run(command)["front"]]
    with open(tool.root / FIXTURES / f"matmuls_{products}_64.csv", newline="", encoding="utf-8") as file:
        theirs = [(int(row["glb_bits"]), int(row["dram_bits"])) for row in csv.DictReader(file)]
    name = "one product" if products == 1 else "two products"
    pairs: list[list[Pair]] = [[], []]
    for other, mine in zip(theirs, own, strict=True):
        pairs[0].append((other[0], mine[0]))
        pairs[1].append((other[1], mine[1]))
    return [Row(f"{name} of 64 x 64, whole front: bits in the buffer", pairs[0], [command], "`buffer_bits` of `front`"),
            Row("the same: bits across DRAM", pairs[1], [command], "`dram_bits` of `front`")]


def least_rows(tool: Tool) -> list[Row]:
    asked = [(f"{products} products, nothing fused", chain(products, " --unfused"), bits) for products, bits in UNFUSED.items()]
    for (products, buffer), bits in LEAST.items():
        within = f", buffer of {buffer:,} bits" if buffer else ""
        asked.append((f"{products} products{within}", chain(products, f" --buffer {buffer}" if buffer else ""), bits))
    results = tool.run_all(command for _, command, _ in asked)
    return [Row(f"least bits across DRAM: {what}", [(bits, found["best"])], [command], "`best`",
                "bits") for (what, command, bits), found in zip(asked, results)]


def section(tool: Tool) -> Section:
    return Section(
        "AccelForge",
        f"""\
AccelForge (LoopTree) finds fused mappings of Einsums on one core with one buffer in front of DRAM. Recorded from its
mapper with Timeloop's `snowcat` settings: two fronts of 18 points each (`{FIXTURES}/`), and the
least traffic of chains of products of 64 x 64 with 8-bit elements.""",
        [Block("", front_rows(tool, 1) + front_rows(tool, 2)), Block("", least_rows(tool))],
        "Nothing is left to explain on chains of products. Elsewhere ours goes beyond the reference's\n"
        "rules in two named points, which `--reference-rules` undoes (docs/explanation/einsum-fusion.md). A recorded point of\n"
        "GPT-3 6.7B (3,254,779,904 bits) has no description in this repository and is not repeated here.",
        "A cascade and a buffer for which the reference finds a mapping with less traffic than the\n"
        "one called exact here. Brute force over all mappings of small cascades searches for one\n"
        "(`reference_test --gtest_filter='EinsumMapper*'`).",
    )
