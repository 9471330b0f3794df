"""Training steps on many devices, and on one H100."""

import csv
import re
import statistics
from typing import Any

from validation import cluster_runs
from validation.cluster_runs import MEASURED, best_scale, mean_error, regret, row_of, spearman
from validation.section import CHIP, FITTED, Block, Pair, Row, Section, Tool, error, number, percent

STEPS = "data/cluster/h100_steps.csv"
HOST_NS = 23_800  # a kernel of eager PyTorch on the measured machine
CONTEXT_BYTES = 718e6  # part of the workspace outside PyTorch's allocator
Run = dict[str, Any]

# Columns: name, file, software, prefix of the names of the runs.
SETS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("Korthikanti et al. 2022, 22B to 1T on 8 to 2,240 A100", "korthikanti", cluster_runs.MEGATRON, "kort"),
    ("Megatron-LM, SC'21, weak scaling, 1.7B to 1T on 32 to 3,072 A100", "megatron", cluster_runs.MEGATRON, "sc21"),
    ("Megatron-LM, weak scaling, January 2021", "megatron", cluster_runs.MEGATRON, "jan21"),
    ("Megatron-LM, September 2020, A100 of 40 GB", "megatron", cluster_runs.MEGATRON, "sep20"),
    ("Megatron-LM's README, GPT-3 175B on 1,024 A100", "megatron", cluster_runs.MEGATRON, "readme"),
    ("Megatron-Core 0.8, 2B to 462B on 48 to 6,144 H100", "megatron", cluster_runs.MEGATRON, "mcore"),
    ("MPT with FSDP, A100", "mpt", cluster_runs.MPT, "llmf"),
    ("BLOOM's search, 384 A100 on Omni-Path", "bloom", cluster_runs.BLOOM, "bloom"))


VTRAIN_HOST_NS = 50_000  # a kernel, fitted to a fifth of vTrain's runs, none of which is compared here
MIB = 2.0**20


def command_of(tool: Tool, run: Run, host_ns: int | None = None) -> str:
    name = re.sub(r"[^\w.-]+", "_", run["id"]) + ("_host" if host_ns else "")
    file = tool.file(f"clusters/{name}.yaml", cluster_runs.experiment(run, host_ns))
    return f"monet cluster {file} --allow-overflow --json -"


class Set:
    def __init__(self, tool: Tool, name: str, file: str, settings: dict[str, Any], prefix: str) -> None:
        self.name = name
        runs = cluster_runs.read_runs(MEASURED / f"{file}.csv", settings)
        self.runs = [run for run in runs if run["id"].startswith(prefix)]
        self.commands = [command_of(tool, run) for run in self.runs]
        self.results = tool.run_all(self.commands)
        self.rows = [(run, row) for run, result in zip(self.runs, self.results)
                     if (row := row_of(run, result)) is not None]  # fmt: skip

    def row(self) -> Row:
        pairs: list[Pair] = [(measured, predicted) for _, (predicted, measured, *_) in self.rows]
        return Row(self.name, pairs, self.commands, "`time_ns`", "s", CHIP)

    def compared(self) -> list[str]:
        """Returns the errors of the set with one scale and with one constant TFLOP/s, and the order of its runs."""
        predicted, measured, flops, _ = zip(*(row for _, row in self.rows))
        factor, rival = best_scale(predicted, measured), best_scale(flops, measured)
        order = spearman([row for _, row in self.rows])
        return [self.name, percent(mean_error([factor * one for one in predicted], measured), ""),
                percent(mean_error([rival * one for one in flops], measured), ""),
                "" if order is None else f"{order:.3f}"]


def bloom_table(bloom: Set) -> Block:
    sections: dict[str, list[tuple[float, ...]]] = {}
    for run, row in bloom.rows:
        sections.setdefault(run["note"].split(";")[0], []).append(row)
    orders = {name: spearman(rows) for name, rows in sections.items()}
    regrets = {name: regret(rows) for name, rows in sections.items()}
    table = [[name, str(len(rows)), "" if (order := orders[name]) is None else f"{order:.3f}",
              f"{100 * regrets[name]:.1f} %"] for name, rows in sections.items()]
    known = [order for order in orders.values() if order is not None]
    table.append(["mean", "", f"{statistics.mean(known):.3f}", f"{100 * statistics.mean(regrets.values()):.1f} %"])
    wrong = [run["id"] for run, result in zip(bloom.runs, bloom.results)
             if ("out_of_memory" in run["metrics"]) == result["memory"]["fits"]]  # fmt: skip
    return Block(
        "**BLOOM by sections of its log.** The order of the runs, and the regret: how much longer the model's choice took than\n"
        "the fastest run.",
        header=["section", "runs", "Spearman", "regret"],
        table=table,
        after=f"Wrongly predicted among the {sum('out_of_memory' in run['metrics'] for run in bloom.runs)} runs that did not fit into memory and the others, which did:"
        f" {', '.join(wrong) or 'none'}.",
    )


def vtrain_rows(tool: Tool) -> list[Row]:
    runs = cluster_runs.single_node_runs(MEASURED / "vtrain.csv")
    rows = []
    for what, kind, host_ns in (("as they are", CHIP, None), ("with 50 us of host a kernel", FITTED, VTRAIN_HOST_NS)):
        commands = [command_of(tool, run, host_ns) for run in runs]
        pairs: list[Pair] = [(run["metrics"]["iteration_s"], found["time_ns"] * 1e-9) for run,
                             found in zip(runs, tool.run_all(commands))]
        rows.append(Row(f"vTrain, 2 to 8 A100 of one node, {what}", pairs, commands, "`time_ns`", "s", kind))
    return rows


def memory_block(tool: Tool) -> Block:
    """Compares peaks of the last rank, with the constant workspace that fits a kind of device best."""
    runs = cluster_runs.memory_runs(MEASURED / "memory.csv")
    commands = [command_of(tool, run) for run in runs]
    groups: dict[str, list[tuple[Run, str, float]]] = {}
    for run, command, found in zip(runs, commands, tool.run_all(commands)):
        memory = found["stages"][-1]["memory"]
        kind = f"{'with experts' if 'experts' in run else 'dense'}, {run['device'].upper()}"
        groups.setdefault(kind, []).append((run, command, memory["total_bytes"] - memory["workspace_bytes"]))
    rows, table = [], []
    for kind, some in sorted(groups.items()):
        constants = [max(run["metrics"]["peak"] - peak, 0.0) for run, _, peak in some]
        workspace = min(constants, key=lambda one: statistics.fmean(
            abs(peak + one - run["metrics"]["peak"]) / run["metrics"]["peak"] for run, _, peak in some))  # fmt: skip
        pairs: list[Pair] = [(run["metrics"]["peak"], peak + workspace) for run, _, peak in some]
        errors = [abs(error(pair)) for pair in pairs]
        rows.append(Row(f"{kind}: peak", pairs, [command for _, command, _ in some],
                        "`memory.total_bytes` of the last of `stages`, with another workspace", "bytes", FITTED))  # fmt: skip
        table.append([kind, str(len(some)), f"{workspace / MIB:.0f} MiB", f"{100 * statistics.fmean(one <= 0.15 for one in errors):.1f} %",
                      f"{100 * statistics.median(errors):.1f} %"])  # fmt: skip
    printed = [abs(error(pair)) for row, some in zip(rows, (groups[kind] for kind in sorted(groups)))
               for pair, (run, *_) in zip(row.pairs, some) if run["attention_printed"] and "experts" not in run]  # fmt: skip
    return Block(
        "**Peak memory** of Megatron-LM's tests, mostly of tiny networks. One constant, the workspace of library and driver, is\n"
        "fitted for each kind of device:",
        rows, header=["cases", "number", "workspace", "within 15 %", "median error"], table=table,
        after=f"Nearly all cases that are far off leave the form of attention to the library. Of the {len(printed)} dense cases that print it,\n{100 * statistics.fmean(one <= 0.15 for one in printed):.1f} % are within 15 %.")


def h100_experiment(row: dict[str, str]) -> dict[str, Any]:
    """Returns the experiment of a measured step of data/cluster/h100_steps.csv."""
    training: dict[str, Any] = {
        "loss": "cross_entropy", "store": "pytorch-eager",
        "optimizer": {"type": "momentum", "momentum": 0.9} if row["optimizer"] == "sgd" else {"type": "adam"}}
    if row["type"] == "bf16":
        precision = dict.fromkeys(("weights", "activations", "gradients", "reductions", "optimizer_state"), "bf16")
        if row["states"] == "fp32":
            precision.update(optimizer_state="fp32", master_weights="fp32")
    else:  # products in TF32
        precision = {"activations": "tf32", "gradients": "tf32"}
    training["precision"] = precision
    if row["attention"] == "sdpa":
        training["attention"] = "fused"
    if row["clip"] == "yes":
        training["clip_global_norm"] = 1.0
    micro = int(row["micro_batch"])
    shape = {key: int(row[key]) for key in ("layers", "hidden", "heads", "sequence", "vocabulary")}
    return {
        "name": "measured step",
        "cluster": {"file": str(cluster_runs.DATA / "dgx_h100.yaml"), "devices": 1, "host_ns_per_kernel": HOST_NS},
        "workload": {"transformer": shape, "in_place_loss": False},
        "training": training,
        "parallel": {"micro_batch": micro, "global_batch": micro * int(row["micro_batches"]), "recompute": row["recompute"]},
    }  # fmt: skip


def h100_rows(tool: Tool) -> list[Row]:
    text = (tool.root / STEPS).read_text(encoding="utf-8").splitlines()
    steps = list(csv.DictReader(line for line in text if not line.startswith("#")))
    commands = [
        f"monet cluster {tool.file(f'clusters/h100_{place}.yaml', h100_experiment(step))} --allow-overflow --json -"
        for place, step in enumerate(steps)
    ]
    groups: dict[str, tuple[list[Pair], list[Pair], list[str]]] = {
        name: ([], [], []) for name in ("fused attention, not waiting for the host",
                                        "fused attention, waiting for the host", "attention in parts")}
    for step, command, found in zip(steps, commands, tool.run_all(commands)):
        stage = found["stages"][0]
        waits = stage["share"]["host_ns"] >= 0.01 * found["time_ns"]
        place = 2 if step["attention"] == "eager" else int(waits)
        times, peaks, own = list(groups.values())[place]
        times.append((float(step["step_ns"]), found["time_ns"]))
        peaks.append((float(step["allocated_bytes"]), stage["memory"]["total_bytes"] - CONTEXT_BYTES))
        own.append(command)
    rows = [Row(f"{name}: time of a step", times, own, "`time_ns`", "ns", CHIP) for name,
            (times, _, own) in groups.items()]
    peaks = [pair for _, pairs, _ in groups.values() for pair in pairs]
    rows.append(Row("all: peak of the allocator", peaks, commands, f"`total_bytes` of `stages`, less {number(CONTEXT_BYTES / 1e6)} MB outside of it",
                    "bytes", CHIP))  # fmt: skip
    return rows


def section(tool: Tool) -> Section:
    sets = [Set(tool, *one) for one in SETS]
    bloom = sets[-1]
    return Section(
        "Training steps on clusters",
        f"""\
Step times and peaks of memory that others published for GPTs, MPT and BLOOM on A100 and H100 (`data/measured/`, each
file with its source), and 44 steps that we measured on one H100 (`{STEPS}`). The speed of devices
was measured kernel by kernel, on other machines than most of these runs. Nothing is fitted to a step.""",
        [
            Block("**Published runs**, modelled with the constants of `data/cluster/`:", [one.row() for one in sets] + vtrain_rows(tool),
                  after="Every tenth of vTrain's 1,440 runs is here. The 50 us were fitted to a fifth of the runs, none of which is here."),
            Block(
                "The effect of a fit: one scale for the set, or the best constant TFLOP/s of the set in place of the model. A model is\n"
                "useful if its errors without a fit are small and if it orders the runs correctly (Spearman).",
                header=["set", "one scale", "constant TFLOP/s", "Spearman"],
                table=[one.compared() for one in sets if len(one.rows) > 2],
            ),
            bloom_table(bloom),
            memory_block(tool),
            Block("**One H100**, GPTs of 4 layers of 128 to 6.7 billion parameters:", h100_rows(tool)),
        ],
        "docs/explanation/cluster-validation.md discusses the differences. In short:\n\n"
        "- BLOOM's machine is about 20 % slower than modelled throughout.\n"
        "- Tensor parallelism of Megatron-Core is hidden behind products; the model waits for it.\n"
        "- MPT's attention is the first version of FlashAttention.\n"
        "- Eager PyTorch launches more kernels than the model counts, so modelled short steps are too fast. Attention in parts\n"
        "  has more such kernels.\n"
        "- The host's time for a kernel on vTrain's machine is known only from its runs.",
        "A step of a dense transformer on Selene, or on an H100 like ours, off by more than a fifth\n"
        "although nothing waits for the host and no collective is hidden. Or a search in which the model's choice takes 5 %\n"
        "longer than the best.",
    )
