"""The evaluation of interleaved gradients on NPUs (MICRO 2023), which `monet backward --study` repeats."""

from typing import Any

from validation.section import FITTED, Block, Pair, Row, Section, Tool

STUDY = "examples/interleaved_gradients/paper.yaml"
SHARES = ("dY", "guesses")  # words in the texts of figures that are not reductions of time


def is_share(figure: dict[str, Any]) -> bool:
    return figure["unit"] != "percent" or any(word in figure["text"] for word in SHARES)


def section(tool: Tool) -> Section:
    study = (tool.root / STUDY).read_text(encoding="utf-8").split("\nambiguities:")[0] + "\n"
    own = tool.file("interleaving/one_answer.yaml", study.replace("../../data", str(tool.root / "data")))
    command = f"monet backward --study {own} -o out/validation/interleaving/result --json -"
    figures = [figure for figure in tool.run(command)["figures"] if figure["paper"] is not None]
    left: list[Pair] = [(1 - one["paper"] / 100, 1 - one["ours"] / 100) for one in figures if not is_share(one)]
    shares: list[Pair] = [(one["paper"], one["ours"]) for one in figures if is_share(one)]
    table = [
        [one["text"], f"{one['paper']:g}", f"{one['ours']:.2f}" if one["unit"] != "percent" else f"{one['ours']:.1f}",
         "" if one["unit"] != "percent" else f"{one['ours'] - one['paper']:+.1f}"]
        for one in figures
    ]  # fmt: skip
    near = sum(abs(one["ours"] - one["paper"]) <= 5 for one in figures if one["unit"] == "percent")
    return Section(
        "Interleaved gradients",
        f"""\
"Improving Data Reuse in NPU On-chip Memory with Interleaved Gradient Order for DNN Training" (Kim, Na, Lee, Lee, Huh,
MICRO 2023) simulates a small and a large NPU: how much shorter is a step if the two gradients of a layer are computed
together? `{STUDY}` repeats it with nine networks.

The paper leaves eleven points open. One set of answers holds for all figures: of the sets that were tried, the one
with the most figures within 5 points. Therefore the figures count as fitted. The command leaves out the other
answers. `monet backward --study {STUDY} -o out/interleaved` tries them in minutes
and gives the range of each figure.""",
        [
            Block(
                "",
                [
                    Row("reductions of time, as the share of the time that remains", left, [command], "1 - `ours` / 100 of `figures`", kind=FITTED),
                    Row("shares of traffic and of guesses, factors", shares, [command], "`ours` of `figures`", kind=FITTED),
                ],
            ),
            Block(
                "One by one, in percent and points; *dY read once* is a factor:",
                header=["figure", "paper", "ours", "points"],
                table=table,
                after=f"{near} of {sum(one['unit'] == 'percent' for one in figures)} figures in percent are within 5 points.",
            ),
        ],
        "docs/explanation/backward-dataflow-study.md discusses the figures that are more than 5 points\n"
        "off and lists the paper's open points. DLRM's share would need other layers than its published perceptrons. Algorithm\n"
        "1 only interleaves layers of BERT and T5, which saves nothing there. Depthwise convolutions of MobileNet are bound by\n"
        "computing.",
        "The paper's networks or simulator, layer by layer: with the open points closed, a reduction\n"
        "that is off by more than 5 points. Tiles matter more than the order of gradients here. A chip with searched tiles that\n"
        "gains a fifth from the order alone would therefore contradict the model.",
    )
