"""Searches for better ways to run a step, with bounds on any improvement.

Each search takes a step and a chip, and options of the command line by name. `progress` is called
with the state of the search, and an exception that it raises ends the search. Ctrl-C ends a search
with the best result so far, whose `interrupted` is then True."""

from __future__ import annotations

from collections.abc import Sequence

from monet.calls import File, FileOrDict, Inputs, Options, run_command
from monet.chips import Chip
from monet.commands import _settings
from monet.model import Step
from monet.progress import Progress
from monet.search_calls import SearchResult, add_step
from monet.searches import allocation, checkpointing, fusion, joint

__all__ = ["SearchResult", "allocation", "checkpointing", "einsum", "fusion", "joint", "parallelism"]


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
    own: dict[str, object] = {
        "--model": "einsum", "--matmuls": matmuls, "--buffer": buffer, "--bits": bits, "--front": front,
        "--unfused": unfused, "--resident": resident, "--reference-rules": reference_rules,
        "--max-fused-loops": max_fused_loops, "--objective": None if objective == "latency" else objective,
    }  # fmt: skip
    inputs = Inputs()
    add_step(step, chip, own, inputs)
    own |= {"--time-limit": time_limit, "--jobs": jobs, "--json": "-"}
    return SearchResult(run_command(("optimise", "fusion"), own, inputs=inputs, progress=progress))


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
