"""Measured cycles of two chips, DIANA and Jia's 4x4."""

from collections import Counter
from typing import Any

from validation.section import CHIP, Block, Row, Section, Tool, number, percent

PRECISION = "--precision '{weights: int8, activations: int8, accumulate: int16}'"
CONVOLUTIONS = ("conv2_1", "conv2_2", "conv2_3", "conv2_4")
ADDITIONS = ("add_1", "add_2")

# Stream's validation, branch `validation`, commit 1458a26c with ZigZag 2.3.9: measured_latency of
# main_validation_diana_test.py and main_validation_verma_ocn.py, the results of running these scripts, and the
# cycles of a piece in these runs, by layer and core.
CHIPS: dict[str, dict[str, Any]] = {
    "DIANA": {
        "chip": "diana", "network": "diana_resnet18", "measured": 812_000, "stream": 791_852,
        "pieces": {"conv1": (0, 152), "maxpool": (1, 64), "conv2_1": (2, 2690), "shortcut_1x1": (2, 898),
                   "conv2_2": (2, 2690), "add_1": (3, 1794), "conv2_3": (2, 2690), "conv2_4": (2, 2690),
                   "add_2": (3, 1794)},
    },
    "Jia's 4x4": {
        "chip": "jia_4x4", "network": "jia_resnet50", "measured": 66_302, "stream": 63_820,
        "pieces": {"b1_conv1": (0, 34), "b1_conv2": (1, 38), "b1_conv3": (2, 34), "b2_conv1": (3, 34),
                   "b2_conv2": (4, 38)},
    },
}  # fmt: skip
STREAM_LAST_START, STREAM_LAST_PIECE, STREAM_WAITS, STREAM_WRITES = 3_588, 38, 640, 8  # cycles of Jia's last core
STREAM_ANALOG = 652_848  # busy cycles of DIANA's analog core
STREAM_FETCH = 10_060  # cycles that fetch all of DIANA's weights before the first piece

# A row of a 3x3 convolution on DIANA's analog core.
PIECE = [{
    "id": 0, "name": "conv2_1", "operator_type": "Conv",
    "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
    "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"], "loop_sizes": [1, 64, 64, 1, 56, 3, 3],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "pr_loop_dims": ["IX", "IY"], "padding": [[1, 1], [1, 1]],
}]  # fmt: skip


def schedule(chip: dict[str, Any], more: str, mapping: str = "") -> str:
    own = mapping or f"examples/stream/{chip['chip'].removesuffix('_4x4')}_mapping.yaml"
    return (
        f"monet schedule --hardware data/hardware/{chip['chip']}.yaml --workload data/workload/{chip['network']}.onnx"
        f" --mapping {own} {more} --json -"
    )


def fused(chip: dict[str, Any]) -> str:
    return schedule(chip, f"{PRECISION} --mode fused")


def coala(chip: dict[str, Any]) -> str:
    return schedule(chip, "--model stream-coala --mode fused")


def recorded(tool: Tool, chip: dict[str, Any], name: str, replaced: dict[str, int]) -> str:
    """Returns the command of stream-coala with the source's costs, some of them replaced."""
    rows = [
        {"node": node, "core": core, "runtime_cycles": replaced.get(node, cycles), "onchip_energy_pj": 0,
         "offchip_energy_pj": 0}
        for node, (core, cycles) in chip["pieces"].items()
    ]  # fmt: skip
    file = tool.file(f"chips/{name}.json", {"costs": rows})
    return schedule(chip, f"--model stream-coala --mode fused --core-costs {file}")


def pieces_of(result: dict[str, Any]) -> dict[str, int]:
    """Returns the most common number of cycles of each layer's pieces in a result of ours."""
    runs: dict[str, Counter[int]] = {}
    for run in result["timeline"]["runs"]:
        runs.setdefault(result["layers"][run[1]]["name"], Counter())[run[3] - run[2]] += 1
    return {layer: found.most_common(1)[0][0] for layer, found in runs.items()}


def busy(result: dict[str, Any], core: str) -> int:
    return next(one["busy_cycles"] for one in result["cores"] if one["name"] == core)


def rows_of(tool: Tool, name: str) -> list[Row]:
    chip = CHIPS[name]
    measured = chip["measured"]
    ways = [("`stream-coala` with the source's cost of each piece", recorded(tool, chip, f"{chip['chip']}_source", {}), False),
            ("`stream-coala`", coala(chip), False),
            ("`stream-coala`, channels of pooling counted once",
             schedule(chip, "--model stream-coala --pooling once --mode fused"), False), ("ours, fused", fused(chip), True),
            ("ours, auto", schedule(chip, f"{PRECISION} --mode auto"), False),
            ("ours, layer by layer", schedule(chip, f"{PRECISION} --mode layer-by-layer"), False)]
    return [
        Row(f"{name}: {what}", [(measured, tool.run(command)["latency_cycles"])], [command], "`latency_cycles`",
            "cycles", CHIP, counted)
        for what, command, counted in ways
    ]  # fmt: skip


def jia_sized(tool: Tool) -> Block:
    chip = CHIPS["Jia's 4x4"]
    result = tool.run(fused(chip))
    last = max(run[1] for run in result["timeline"]["runs"])
    own = [run for run in result["timeline"]["runs"] if run[1] == last]
    piece, start, end = pieces_of(result)["b2_conv2"], own[0][2], own[-1][3]
    waits = end - start - sum(run[3] - run[2] for run in own)
    written = result["latency_cycles"] - end
    steps = [
        (f"Stream: the last core starts at {STREAM_LAST_START:,}, runs {len(own):,} pieces of {STREAM_LAST_PIECE}, waits"
         f" {STREAM_WAITS} and writes {STREAM_WRITES}", chip["stream"]),
        (f"pieces of {piece} cycles, by ZigZag 3.8's registers", (piece - STREAM_LAST_PIECE) * len(own)),
        (f"ours starts the last core at {start:,}: the weights of five cores come through one port of 128 bits a cycle,"
         " between pieces of the image. In the source each core's link has a separate port, and all weights have arrived"
         " after 2,304 cycles", start - STREAM_LAST_START),
        ("fewer waits", waits - STREAM_WAITS),
        ("writes at the end", written - STREAM_WRITES),
        ("ours", result["latency_cycles"]),
    ]  # fmt: skip
    if sum(cycles for _, cycles in steps[:-1]) != steps[-1][1]:
        raise ValueError("Jia's differences do not add up")
    table = [[what, f"{cycles:,}" if place in (0, len(steps) - 1) else f"{cycles:+,}"]
             for place, (what, cycles) in enumerate(steps) if cycles]  # fmt: skip
    ahead = result["latency_cycles"] / chip["measured"] - 1
    wide = max(one["busy_cycles"] for one in result["cores"] if one["kind"] == "array")
    return Block(
        "**Jia.** Every core reloads its weights for each piece, which takes all but one of the piece's 33 or 37 cycles\n(34 and"
        f" 38 in Stream's older ZigZag). Two cores therefore work {wide:,} cycles under any schedule. The differences from\nStream"
        " are:",
        header=["difference", "cycles"],
        table=table,
        commands=[fused(chip)],
        after=f"The {percent(ahead, '')} above the chip therefore arise at the start, where the description is thin: it does not\ndescribe"
        " what lies behind the five links.",
    )


def diana_sized(tool: Tool) -> Block:
    chip = CHIPS["DIANA"]
    source = {layer: cycles for layer, (_, cycles) in chip["pieces"].items()}
    ours = pieces_of(tool.run(fused(chip)))
    reference = {tile["name"]: tile["runtime"] for tile in tool.run(coala(chip))["tiles"]}
    better = int(tool.run(piece_of(tool))["latency_cycles"])

    def named(layers: tuple[str, ...], cycles: dict[str, int]) -> dict[str, int]:
        return {layer: round(cycles[layer]) for layer in layers}

    tried: list[tuple[str, str, dict[str, int]]] = [
        ("all", "all as in the source", {}),
        ("conv1", "`conv1`: registers as in ZigZag 3.8", named(("conv1",), reference)),
        ("orders", "3x3 convolutions: with K innermost, 18,432 bits of weights a cycle pass a port of 8,192. ZigZag 3.8"
         " finds a better order of loops", dict.fromkeys(CONVOLUTIONS, better)),
        ("array", "3x3 and 1x1 convolutions, ours: the array is 64 x 64 x 3 x 3, of which the source's dataflow unrolls"
         " 16 x 16 x 3 x 3; ours unrolls over the whole array if the dataflow leaves most of it idle",
         named((*CONVOLUTIONS, "shortcut_1x1"), ours)),
        ("additions", "additions, ours: the outermost memory feeds the lanes, 512 bits a cycle; the source feeds 64 lanes"
         " through buffers of 16 bits a cycle, which our model of lanes ignores", named(ADDITIONS, ours)),
        ("ours", "all ours", named(tuple(source), ours)),
        ("pooling", "pooling, `stream-coala`'s cost: channels are counted twice, as in Stream (docs/explanation/stream-coala.md)",
         named(("maxpool",), reference)),
        ("slow_additions", "additions, `stream-coala`'s cost", named(ADDITIONS, reference)),
    ]  # fmt: skip
    commands = [recorded(tool, chip, f"diana_{name}", replaced) for name, _, replaced in tried]
    results = [result["latency_cycles"] for result in tool.run_all(commands)]
    table = []
    for (name, what, replaced), cycles in zip(tried, results):
        few = 0 < len(replaced) < len(source)
        before = list(dict.fromkeys(source[layer] for layer in replaced)) if few else []
        now = list(dict.fromkeys(replaced.values())) if few else []
        table.append([what, "; ".join(map(number, before)), "; ".join(map(number, now)), number(cycles),
                      f"chips/diana_{name}.json"])  # fmt: skip
    own = tool.run(fused(chip))
    digital, analog, latency = busy(own, "diana_digital"), busy(own, "diana_analog"), own["latency_cycles"]
    all_source, orders, all_ours = results[0], results[2], results[5]
    return Block(
        f"**DIANA.** The digital core runs `conv1` in 3,584 pieces of {ours['conv1']} cycles, {digital:,} in all. Our schedule"
        f" ends {latency - digital:,}\ncycles after that bound. Stream's is bound by the analog core, {STREAM_ANALOG:,} cycles.\n\n"
        "The table shows the reasons. Each row runs `stream-coala --core-costs` with the source's costs of a piece, some of\n"
        "them replaced. Costs called *ours* are the most common ones of a layer in our fused run. The second command below\n"
        "gives the cost of a piece of a 3x3 convolution whose loops ZigZag 3.8 orders.",
        header=["cost of a piece", "source", "replaced", "`stream-coala` becomes", "`--core-costs`, below out/validation/"],
        table=table,
        commands=[commands[0], piece_of(tool)],
        after=f"""\
- The scheduler matters little: {all_ours:,} cycles by `stream-coala` with our costs, {latency:,} by ours. The source's run
  takes {chip["stream"] - all_source:,} cycles more than `stream-coala` with the same costs: it fetches all weights before the
  first piece ({STREAM_FETCH:,} cycles), COALA when they are needed.
- Stream's {100 * chip["stream"] / chip["measured"]:.1f} % therefore depend on the idle cycles in each 3x3 piece (1,794 of {source["conv2_1"]:,}), on an order of loops, and on
  an array of which a sixteenth is used. The description lacks the actual costs of an analog array: bit-serial inputs,
  converters, writing of cells. With 16 x 16 x 3 x 3 in use and the better order of loops, {orders:,} cycles remain,
  {100 * orders / chip["measured"]:.0f} % of the chip's.
- Ours layer by layer is nearer to the chip by chance.
- The analog core is busy for {analog:,} of {latency:,} cycles in ours, and for {STREAM_ANALOG:,} of {chip["stream"]:,} in Stream's run.""",
    )


def piece_of(tool: Tool) -> str:
    layer = tool.file("chips/piece.yaml", PIECE)
    return f"monet core --model zigzag-3.8 --hardware data/hardware/cores/diana_analog.yaml --workload {layer} --json -"


def read_differently(tool: Tool) -> Block:
    """Compares two other readings of the mapping file."""
    chip = CHIPS["DIANA"]
    original = (tool.root / "examples/stream/diana_mapping.yaml").read_text(encoding="utf-8")
    turned = original.replace("['K, 4', 'OX, 8', 'OY, 112']", "['OY, 112', 'OX, 8', 'K, 4']")
    turned = turned.replace("['OX, 4', 'OY, 56']", "['OY, 56', 'OX, 4']")
    rows = original.replace("['D, 56']", "['OY, 56']")
    if original in (turned, rows):
        raise ValueError("diana_mapping.yaml has changed")
    outermost = schedule(chip, f"{PRECISION} --mode fused", tool.file("chips/diana_outermost.yaml", turned))
    named = schedule(chip, "--model stream-coala --mode fused", tool.file("chips/diana_rows.yaml", rows))
    first, second = (one["latency_cycles"] for one in tool.run_all([outermost, named]))
    own, jia = tool.run(fused(chip)), tool.run(fused(CHIPS["Jia's 4x4"]))
    pool = max(one["peak_memory_bytes"] for one in own["cores"] if one["kind"] != "offchip")
    capacity = max(one["capacity_bytes"] for one in own["cores"] if one["name"] == "diana_analog")
    peaks = [one["peak_memory_bytes"] / 2**20 for one in (own, jia)]
    return Block(
        "**Readings of the files.** DIANA's four cores share one memory, identified by name and size (`core_memory_sharing`) or\n"
        "by `memory_aliases`; weights of 64 and 256 KiB stay private (docs/reference/system-file.md). Windows of 3 on axes of 2\n"
        "in its pooling unit are clipped. The factors of a mapping's `intra_core_tiling` vary in order, the first fastest.\n"
        "`stream-coala` calls the rows of an addition D, as newer Stream does; a mapping that calls them OY, as the source's\n"
        "does, leaves additions in two pieces. Two other readings give:",
        header=["reading", "cycles"],
        table=[
            ["the last factor varies fastest, as in earlier versions of MONET: `K, 4` is outermost in `conv1`, and the analog core waits for the last quarter of its channels. Ours", number(first)],
            ["rows of additions are called OY: `stream-coala`", number(second)],
        ],
        commands=[outermost, named],
        after=f"""\
**Limits.** Ours models one pool for cores that share a memory. DIANA's four cores have {capacity / 1024:.0f} KiB together, so
activations may occupy room that only weights could. Its peak is {pool / 1024:.0f} KiB, mostly parts of the image fetched
early; the minimum is less.

The step's `peak_memory_bytes` ({peaks[0]:.2f} and {peaks[1]:.2f} MiB) counts every tensor whole, from its producer's start to its last
reader's end, wherever its slices lie. It is the off-chip room that no schedule saves. The `peak_memory_bytes` of each
core is the memory used there.

DIANA has two off-chip links, one in each direction, from the ports of its second level. Jia's hops carry data both
ways; only one direction is used.""",
    )


def section(tool: Tool) -> Section:
    stream = [[name, number(chip["measured"]), number(chip["stream"]),
               percent(chip["stream"] / chip["measured"] - 1)] for name, chip in CHIPS.items()]
    return Section(
        "DIANA and Jia's 4x4",
        """\
Two chips that compute in memory, as described in Stream's validation (branch `validation`, commit 1458a26c, with
ZigZag 2.3.9). The measured cycles are from there, with three digits for DIANA. The files are:

- `data/hardware/diana.yaml` and `jia_4x4.yaml` with their cores;
- `data/workload/diana_resnet18.onnx` and `jia_resnet50.onnx`, the measured segments: ResNet-18 up to the second
  block, with pooling of 2x2 and a 1x1 convolution on the first shortcut, and a bottleneck of ResNet-50 and half of
  the next, without additions;
- `examples/stream/diana_mapping.yaml` and `jia_mapping.yaml`: which core runs which layer, and in how many pieces.

The source models both analog arrays as plain multipliers of 0.04 pJ, without cells, converters or bit-serial inputs,
and so do these files. Their cycles can be compared; their energies and areas (1 mm2 a multiplier) cannot. Elements
have 8 bits, sums 16.""",
        [
            Block(
                "The source's run, compared with the measurement:",
                header=["chip", "measured cycles", "Stream", "error"],
                table=stream,
            ),
            Block("MONET, compared with the measurement:", rows_of(tool, "DIANA") + rows_of(tool, "Jia's 4x4"),
                  after="The chips run fused; the layer-by-layer rows are for comparison. The summary counts *ours, fused* only."),
            jia_sized(tool),
            diana_sized(tool),
            read_differently(tool),
        ],
        "Jia's difference comes from the start of the last core, which the description leaves open.\n"
        "DIANA's comes from the used share of the analog array and from the order of loops. Nothing is tuned to these figures.",
        "A measurement by layer. DIANA's analog core is busy for a fifth of the run in ours, and for\n"
        "four fifths in Stream's. For Jia, the cycle in which the last core starts.",
    )  # fmt: skip
