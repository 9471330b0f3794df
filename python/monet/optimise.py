"""Searches for better ways to run a step, with bounds on any improvement.

Each search takes a step and a chip, and options of the command line by name. `progress` is called
with the state of the search, and an exception that it raises ends the search. Ctrl-C ends a search
with the best result so far, whose `interrupted` is then True."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from monet import arguments
from monet.calls import Answer, File, FileOrDict, Inputs, Options, run_command
from monet.chips import Chip
from monet.columns import Columns
from monet.commands import _limit, _settings
from monet.model import Step
from monet.progress import Progress


class SearchResult(Answer):
    """The best value that a search found, and a lower bound of all values."""

    @property
    def best(self) -> float | None:
        """The best value of the objective; None if nothing was found."""
        return _number(self.get("best"))

    @property
    def bound(self) -> float | None:
        return _number(self.get("bound"))

    @property
    def gap(self) -> float | None:
        """(best - bound) / bound; None if the gap is unknown."""
        return _number(self.get("gap"))

    @cached_property
    def front(self) -> Columns:
        """The front, one row per point, for searches that return one."""
        rows = self.get("front") or self.get("rows") or self.get("points") or []
        return Columns.of_rows([row for row in rows if isinstance(row, Mapping)])

    def __repr__(self) -> str:
        gap = "unknown" if self.gap is None else f"{100 * self.gap:.2f} %"
        return f"SearchResult({self.get('kind', self.get('name'))!r}: best {self.best}, gap {gap})"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def allocation(
    step: Step,
    chip: Chip,
    *,
    objective: str = "latency",
    evaluations: int = 2000,
    population: int = 40,
    generations: int = 0,
    random: int | None = None,
    mapping_out: File | None = None,
    stacks_out: File | None = None,
    **common: Any,
) -> SearchResult:
    """Searches for the core that runs each operator. Further keywords: see `fusion()`."""
    own = {
        "--objective": objective, "--evaluations": evaluations, "--population": population,
        "--generations": generations, "--random": random, "--mapping-out": mapping_out, "--stacks-out": stacks_out,
    }  # fmt: skip
    _both(step, chip)
    return _search(("optimise", "allocation"), step, chip, own, common)


def fusion(
    step: Step,
    chip: Chip,
    *,
    objective: str = "latency",
    method: str = "cost",
    with_original: bool = False,
    evaluations: int | None = None,
    stacks_out: File | None = None,
    **common: Any,
) -> SearchResult:
    """Searches for the operators that run together, slice by slice. Further keywords, of every
    search: mapping, mode, stacks, halo, priority, stream_like (as in `Step.schedule()`),
    core_objective, lpf_limit, seed, time_limit (seconds), jobs, report (a folder), verify,
    progress."""
    own = {"--objective": objective, "--method": method, "--with-original": with_original, "--evaluations": evaluations,
           "--stacks-out": stacks_out}
    _both(step, chip)
    return _search(("optimise", "fusion"), step, chip, own, common)


def einsum(
    chip: Chip | None = None,
    step: Step | None = None,
    *,
    matmuls: Sequence[int] | None = None,
    objective: str = "latency",
    buffer: int | None = None,
    bits: int | None = None,
    front: bool = False,
    unfused: bool = False,
    resident: bool = False,
    reference_rules: bool = False,
    max_fused_loops: int | None = None,
    time_limit: float = 0,
    jobs: int = 1,
    progress: Progress = None,
) -> SearchResult:
    """Searches for the optimal fusion on one core, Einsum by Einsum (`monet optimise fusion --model
    einsum`), for a step or for a chain of products `matmuls` = (M, N0, N1, ...)."""
    own = {
        "--model": "einsum", "--matmuls": matmuls, "--buffer": buffer, "--bits": bits, "--front": front,
        "--unfused": unfused, "--resident": resident, "--reference-rules": reference_rules,
        "--max-fused-loops": max_fused_loops, "--objective": None if objective == "latency" else objective,
    }  # fmt: skip
    return _search(("optimise", "fusion"), step, chip, own,
                   {"time_limit": time_limit, "jobs": jobs, "progress": progress})  # fmt: skip


def checkpointing(
    step: Step | None = None,
    chip: Chip | None = None,
    *,
    log: File | None = None,
    budget: str | int | None = None,
    sweep: bool = False,
    steps: int = 10,
    least: str | int | None = None,
    memory: str = "peak",
    objective: str = "latency",
    method: str = "automatic",
    population: int = 100,
    generations: int = 50,
    keep: Sequence[str] = (),
    recompute: Sequence[str] = (),
    output: File | None = None,
    **common: Any,
) -> SearchResult:
    """Searches for the activations to keep for the backward pass; the others are recomputed.
    `budget`: bytes, "64 MiB" or "50%". `sweep`: a front of budgets. `log`: a recorded step in place
    of step and chip. Further keywords: see `fusion()`."""
    own = {
        "--log": log, "--budget": budget, "--sweep": sweep, "--steps": steps, "--least": least, "--memory": memory,
        "--objective": objective, "--method": method, "--population": population, "--generations": generations,
        "--keep": keep, "--recompute": recompute, "--output": output,
    }  # fmt: skip
    return _search(("optimise", "checkpointing"), step, chip, own, common)


def joint(
    step: Step,
    chip: Chip,
    *,
    objective: str = "latency",
    budget: str | int | None = None,
    levels: int = 6,
    rounds: int = 2,
    evaluations: int | None = None,
    group_evaluations: int | None = None,
    core_evaluations: int | None = None,
    plan_out: File | None = None,
    **common: Any,
) -> SearchResult:
    """Searches for fusion, checkpointing and allocation together. Further keywords: see
    `fusion()`."""
    own = {
        "--objective": objective, "--budget": budget, "--levels": levels, "--rounds": rounds,
        "--evaluations": evaluations, "--group-evaluations": group_evaluations,
        "--core-evaluations": core_evaluations, "--plan-out": plan_out,
    }  # fmt: skip
    _both(step, chip)
    return _search(("optimise", "joint"), step, chip, own, common)


def parallelism(
    experiment: FileOrDict,
    *,
    objective: str = "latency",
    settings: Options | None = None,
    time_limit: float = 0,
    jobs: int = 1,
    output: File | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Searches for the division of a training step over the devices of a cluster. `experiment`: one
    for `cluster()` whose `parallel` may have lists or omit keys. `settings`: replacements for keys
    of `parallel`, as values or lists."""
    inputs = Inputs()
    name = inputs.name(experiment, "experiment")
    values = {"--objective": objective, "--set": _settings(settings), "--time-limit": time_limit, "--jobs": jobs,
              "--output": output, "--json": "-"}  # fmt: skip
    ran = run_command(("optimise", "parallelism"), values, [name], inputs=inputs, progress=progress)
    return SearchResult(ran)


def _both(step: Step, chip: Chip) -> None:
    arguments.instance("step", step, Step, "Network.training_step()")
    arguments.instance("chip", chip, Chip, "read_chip()")


_COMMON = ("mapping", "mode", "stacks", "halo", "priority", "stream_like", "core_objective", "lpf_limit", "seed",
           "time_limit", "jobs", "report", "verify", "progress")  # fmt: skip


def _search(
    command: tuple[str, ...], step: Step | None, chip: Chip | None, own: Mapping[str, object], common: dict[str, Any]
) -> SearchResult:
    for name in common:
        if name not in _COMMON:
            raise TypeError(f"{command[-1]}() has no argument {name!r}; its arguments are {', '.join(_COMMON)}")
    inputs = Inputs()
    values: dict[str, object] = dict(own)
    if step is not None:
        arguments.instance("step", step, Step, "Network.training_step()")
        values["--workload"] = step.network.path
        values.update(step._values(inputs))
    if chip is not None:
        arguments.instance("chip", chip, Chip, "read_chip()")
        values["--hardware"] = chip._add_to(inputs)
    progress = common.pop("progress", None)
    for name, value in common.items():
        if name in ("mapping", "stacks") and value is not None:
            value = inputs.name(value, name)
        values["--" + name.replace("_", "-")] = _limit(value) if name == "lpf_limit" else value
    values["--json"] = "-"
    return SearchResult(run_command(command, values, inputs=inputs, progress=progress))
