"""Parameters, products, stored bytes, losses and gradients of networks in PyTorch."""

import json
import math
import struct
import tarfile
from pathlib import Path
from typing import Any

from draw_shapes import MASK, fnv1a, random_bits
from validation.section import Block, Pair, Row, Section, Tool

TRAINING = "tests/fixtures/training"
NETWORKS = "tests/fixtures/networks.json"
GOLDEN = 0x9E3779B97F4A7C15
KEPT = 1e-8  # relative tolerance of losses and gradients, which the fixtures keep with 12 digits
PHASES = ("forward", "backward_input", "backward_weight")


def raw(name: str, seed: int, count: int) -> list[int]:
    """Returns `count` numbers of the generator of docs/explanation/execution.md."""
    key = fnv1a(name.encode()) ^ (seed * GOLDEN & MASK)
    return [random_bits(key, place) for place in range(count)]


def array_file(record: dict[str, Any], seed: int) -> bytes:
    """Returns the content of a .npy file with the numbers of an input."""
    shape = tuple(record["shape"])
    numbers = raw(record["name"], seed, math.prod(shape))
    if record.get("range"):
        kind, code, values = "<i8", "q", [number % record["range"] + int(record.get("offset", 0)) for number in numbers]
    else:
        offset, scale = record.get("offset", 0.0), record.get("scale", 1.0)
        kind, code = "<f8", "d"
        values = [offset + scale * ((number >> 11) * 2.0**-52 - 1.0) for number in numbers]
    header = str({"descr": kind, "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def norm_of(expected: dict[str, Any]) -> float:
    return float(expected["norm"]) if "norm" in expected else math.hypot(*expected["values"])


class Case:
    """A network of tests/fixtures/training and the command that runs a step of it."""

    def __init__(self, tool: Tool, facts: dict[str, Any], network: bytes, known: dict[str, Any]) -> None:
        self.facts = facts
        self.known = known.get(self.facts["name"], {})
        name, target = self.facts["name"], self.facts["target"]
        records = self.facts["inputs"] + (target if isinstance(target, list) else [target] if target else [])
        loss = "network" if self.facts["loss_kind"] == "in_graph" else self.facts["loss_kind"]
        training = {**self.facts["options"], "loss": loss, "optimizer": "sgd", "store": "pytorch-eager"}
        step = tool.file(f"pytorch/{name}/step.yaml", training)
        file = tool.file(f"pytorch/{name}/network.onnx", network)
        self.command = f"monet graph {file} --training {step}"
        if self.facts["compare"]:
            self.command += " --execute --seed 1"
            for record in records:
                numbers = tool.file(f"pytorch/{name}/{record['name']}.npy", array_file(record, self.facts["seed"]))
                self.command += f" --numbers '{record['name']}={numbers}'"
        self.command += " --json -"

    def counts(self, found: dict[str, Any]) -> dict[str, list[Pair]]:
        """Returns the pairs of everything that PyTorch counts, without the known differences."""
        pairs: dict[str, list[Pair]] = {"parameters": [(self.facts["parameters"], found["trained_parameters"])],
                                        "macs": [(self.facts["macs"][phase], found["macs"][phase]) for phase in PHASES],
                                        "eager": [(self.facts["eager_bytes"], found["stored_activations_bytes"])]}
        return {kind: some for kind, some in pairs.items() if kind not in self.known}

    def numbers(self, found: dict[str, Any]) -> tuple[list[Pair], list[Pair]]:
        """Returns the pairs of losses and of gradient norms, without gradients that are zero except for rounding."""
        if not self.facts["compare"]:
            return [], []
        execution = found["execution"]
        own = {one["name"]: one["gradient_norm"] for one in execution["parameters"]}
        gradients = [(norm_of(one), own[one["name"]]) for one in self.facts["gradients"] if not one.get("rounding")]
        return [(self.facts["loss"], execution["steps"][0]["loss"])], gradients


def within(pairs: list[Pair]) -> list[Pair]:
    """Replaces our figure by the expected one if they differ by less than the digits kept."""
    return [(want, want if abs(own - want) <= KEPT * max(1e-3, abs(want)) else own) for want, own in pairs]


def training_block(tool: Tool) -> Block:
    folder = tool.root / TRAINING
    known = json.loads((folder / "known_differences.json").read_text(encoding="utf-8"))
    families = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    facts = {one["name"]: one for family in families for one in family.get("cases", [])}
    with tarfile.open(folder / "networks.tar") as networks:
        cases = [Case(tool, one, networks.extractfile(f"{name}.onnx").read(), known) for name, one in sorted(facts.items())]
    commands = [case.command for case in cases]
    counts: dict[str, list[Pair]] = {"parameters": [], "macs": [], "eager": []}
    losses: list[Pair] = []
    gradients: list[Pair] = []
    for case, found in zip(cases, tool.run_all(commands)):
        for kind, pairs in case.counts(found).items():
            counts[kind] += pairs
        loss, norms = case.numbers(found)
        losses += loss
        gradients += norms
    reasons = [[name, kind, why] for name, kinds in known.items() for kind, why in kinds.items()]
    words = {"parameters": "trained parameters", "macs": "products", "eager": "bytes that autograd stores"}
    return Block(
        f"**A step of {len(cases)} small networks** of kinds that users bring. Compared are the trained parameters, the products of the\n"
        "forward pass and of both gradients, and the bytes that autograd stores. In double precision the loss and the norm of\n"
        f"each gradient are compared too. They are kept with twelve digits and count as equal within {KEPT:.0e}.",
        [
            Row("parameters that are trained", counts["parameters"], commands, "`trained_parameters`"),
            Row("products: forward, for inputs, for weights", counts["macs"], commands, "`macs`"),
            Row("bytes that autograd stores", counts["eager"], commands, "`stored_activations_bytes`"),
            Row("losses", within(losses), commands, "`loss` of `execution.steps`"),
            Row("norms of gradients", within(gradients), commands, "`gradient_norm` of `execution.parameters`"),
        ],
        after="Left out above because of known differences:\n\n"
        + "\n".join(f"- `{name}`, {words.get(kind, kind)}: {why}" for name, kind, why in reasons if kind in words),
    )


def networks_block(tool: Tool) -> Block:
    facts = json.loads((tool.root / NETWORKS).read_text(encoding="utf-8"))
    commands = [f"monet graph data/workload/{name}.onnx --batch 1 --inference --json -" for name in facts]
    parameters: list[Pair] = []
    macs: list[Pair] = []
    for one, found in zip(facts.values(), tool.run_all(commands)):
        parameters.append((one["parameters"], found["parameters"]))
        macs.append((one["macs"], found["macs"]["forward"]))
    return Block(
        f"**{len(facts)} networks of `data/workload/`**, from the LSTM to BERT large and GPT-2, as counted while PyTorch runs them:",
        [Row("parameters", parameters, commands, "`parameters`"), Row("products of a sample", macs, commands, "`macs.forward`")])


def cases_in(folder: Path) -> int:
    return sum(len(json.loads(path.read_text(encoding="utf-8"))["cases"]) for path in folder.glob("*.json"))


def section(tool: Tool) -> Section:
    operators = cases_in(tool.root / "tests/fixtures/gradients")
    losses, optimisers = (len(json.loads((tool.root / f"tests/fixtures/{name}.json").read_text(encoding="utf-8"))["cases"])
                          for name in ("losses", "optimizers"))  # fmt: skip
    networks = len(list((tool.root / "tests/fixtures/networks").glob("*.json")))
    return Section(
        "PyTorch",
        """\
PyTorch 1.13, observed while it runs in double precision, without reading the exported file: the products that it
computes (below autograd), the bytes that its autograd stores, and its results. Fixtures hold the figures
(`tests/fixtures/training/`, `networks.json`); tests/fixtures/README.md describes how they are counted.""",
        [networks_block(tool), training_block(tool)],
        "Nothing is left to explain except the cases listed above. Tests compare more with the same\n"
        "code, without a command:\n\n"
        f"- {operators:,} cases of single operators with every output and gradient\n"
        "  (`execute_test --gtest_filter='*GradientCases*'`);\n"
        f"- three steps of {networks} whole networks with each of their optimisers (`execute_test --gtest_filter='*Networks*'`);\n"
        f"- {losses} losses and {optimisers} optimisers (`execute_test --gtest_filter='Losses*:OptimizerSteps*'`);\n"
        "- a projection and single values of the gradients above (`execute_test --gtest_filter='*TrainingCases*'`).",
        "A network that PyTorch exports and trains, and for which MONET trains other parameters,\n"
        "multiplies or stores something else, or computes another gradient.",
    )
