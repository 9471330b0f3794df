"""Stream's scheduler COALA, which `monet schedule --model stream-coala` follows."""

from collections import defaultdict
from typing import Any

from validation.section import Block, Pair, Row, Section, Tool

FIXTURES = "tests/fixtures/stream"
RUNS = {"layer by layer": ("seg1_lbl", "layer-by-layer"), "fused": ("seg1_fused", "fused")}
ENERGIES = ("onchip", "offchip_link", "offchip_memory", "eviction_link", "eviction_memory", "sink_link", "sink_memory",
            "core_to_core_link", "core_to_core_memory")  # fmt: skip


def command_of(file: str, mode: str, recorded: bool) -> str:
    costs = f" --core-costs {FIXTURES}/{file}.json" if recorded else ""
    return (
        f"monet schedule --model stream-coala --hardware {FIXTURES}/tpu_like_quad_core.yaml --workload"
        f" {FIXTURES}/resnet18_begin.onnx --mapping {FIXTURES}/quad_mapping.yaml --mode {mode}{costs} --json -"
    )


def tile_pairs(found: dict[str, Any], expected: dict[str, Any]) -> list[Pair]:
    """Returns the pairs of starts and ends of all tiles; a tile on another core counts as different."""
    own: dict[str, dict[int, list[float]]] = defaultdict(dict)
    for tile in found["tiles"]:
        own[str(tile["id"])][tile["sub_id"]] = [tile["core"], tile["start"], tile["end"]]
    pairs: list[Pair] = []
    for layer, tiles in expected["tiles"].items():
        for sub, (core, start, end) in enumerate(tiles):
            here = own[layer][sub]
            wrong = 0 if here[0] == core else 1e6  # a tile on another core counts as missing
            pairs += [(start, here[1] + wrong), (end, here[2] + wrong)]
    return pairs


def event_pairs(found: dict[str, Any], expected: dict[str, Any]) -> list[Pair]:
    """Returns the pairs of start, end and bits of all transfers, sorted by these three."""
    own = sorted((one["start"], one["end"], one["bits"]) for one in found["link_events"])
    theirs = sorted((one[2], one[3], one[7]) for one in expected["events"])
    if len(own) != len(theirs):
        return [(len(theirs), len(own))]
    return [pair for mine, other in zip(own, theirs) for pair in zip(other, mine)]


def rows_of(tool: Tool, name: str, recorded: bool) -> list[Row]:
    file, mode = RUNS[name]
    command = command_of(file, mode, recorded)
    found = tool.run(command)
    expected = tool.read_json(f"{FIXTURES}/{file}.json")
    energies = [(want, found["energy"][term + "_pj"]) for term, want in zip(ENERGIES, expected["energy"])]
    peaks = [(want[2], own["peak_bits"]) for want, own in zip(expected["peaks"], found["memory_peaks"], strict=True)]
    costs = "with Stream's recorded core costs" if recorded else "with our core costs"
    return [
        Row(f"{name}, {costs}: latency", [(expected["latency"], found["latency_cycles"])], [command], "`latency_cycles`", "cycles"),
        Row(f"{name}, {costs}: energy", [(sum(expected["energy"]), found["energy_pj"])], [command], "`energy_pj`", "pJ"),
        Row(f"{name}, {costs}: transfers", [(len(expected["events"]), len(found["link_events"]))], [command],
            "number of `link_events`"),
        Row(f"{name}, {costs}: parts of the energy", energies, [command], "`energy`"),
        Row("start and end of each tile", tile_pairs(found, expected), [command], "`tiles`"),
        Row("start, end and bits of each transfer", event_pairs(found, expected), [command], "`link_events`"),
        Row("peak of each memory", peaks, [command], "`memory_peaks`"),
    ]  # fmt: skip


def section(tool: Tool) -> Section:
    digests = len(tool.read_json(f"{FIXTURES}/digests.json"))
    blocks = [Block("", rows_of(tool, name, recorded)) for name in RUNS for recorded in (False, True)]
    return Section(
        "Stream",
        f"""\
Stream (KU Leuven) schedules tiles of layers on several cores. Two runs of the program were recorded (upstream 303f9dc
with core costs of ZigZag 3.8.1): the first eight operators of ResNet-18 on its `tpu_like_quad_core`, layer by layer
and fused, with every tile, transfer, energy and memory peak (`{FIXTURES}/`). That system links each core
to the off-chip memory, unlike `data/hardware/tpu_like_quad_core.yaml`, which has one bus.""",
        blocks,
        "Nothing is left to explain: the schedule and its core costs are the reference's, with its\n"
        "oddities, which docs/explanation/stream-coala.md lists by name.\n\n"
        f"{digests} further runs (other networks, systems and mappings) come from a rebuild of the program that equals it in both\n"
        "recorded runs. Their core costs are made up, so no command has them; `reference_test --gtest_filter='StreamDigest*'`\n"
        "compares them.",
        "A network, system and mapping that Stream at that commit completes with other cycles,\n"
        "without a note in our result. [DIANA and Jia's 4x4](#diana-and-jias-4x4) compares both with silicon.",
    )
