"""Functions for the searches of `monet optimise` on a step. Written by `monet_help_pages --sources` from the
options of the command line: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monet.calls import File, FileOrDict
from monet.chips import Chip
from monet.model import Step
from monet.progress import Progress
from monet.search_calls import SearchResult, search_of_step


@search_of_step
def allocation(
    step: Step, chip: Chip, *,
    mapping: FileOrDict | Sequence[Any] | None = None,
    mode: str = "auto",
    stacks: FileOrDict | Sequence[Any] | None = None,
    halo: str = "cached",
    priority: str = "latency",
    stream_like: Sequence[str] = (),
    core_objective: str = "auto",
    lpf_limit: int | str = 6,
    seed: int = 1,
    time_limit: float = 0,
    jobs: int = 1,
    report: File | None = None,
    verify: bool = False,
    objective: str = "latency",
    evaluations: int = 2000,
    population: int = 40,
    generations: int = 0,
    random: int | None = None,
    mapping_out: File | None = None,
    stacks_out: File | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Search the cores that run each operator, and its number of parts.

    mapping: Mapping file, or auto.
    mode: Mode: layer-by-layer, fused (groups of operators slice by slice), or auto (the better
        one).
    stacks: Fused: file of the operators of each stack, or auto.
    halo: Fused: data that two slices share are kept (cached) or recomputed.
    priority: Next tile of a core: the first ready one, the deepest in the network, or the next in
        order.
    stream_like: Use Stream's rule for this kind of data movement; may be repeated.
    core_objective: Objective of each layer's mapping on a core; auto: as objective.
    lpf_limit: Maximum number of factors of temporal loops; more are merged. none: no limit.
    seed: Seed of the search's random numbers.
    time_limit: Time limit of the search in seconds; 0: no limit.
    jobs: Number of threads (0: all cores); results do not depend on it.
    report: Folder for result.json, report.html, trace.json and training.onnx of the best plan.
    verify: Check the invariants of every stage's result.
    objective: Objective to minimise.
    evaluations: Maximum number of scheduled allocations, unless the space is searched exhaustively.
    population: Population size of NSGA-II.
    generations: Number of generations of NSGA-II; 0: as its share of the evaluations allows.
    random: Compare the result with the best of N random allocations.
    mapping_out: Write the best allocation as a mapping file for monet schedule.
    stacks_out: Write the stacks of the allocation, for monet schedule stacks.
    progress: True for a display, or a callable that receives the state of the search.
    """
    raise NotImplementedError


@search_of_step
def fusion(
    step: Step, chip: Chip, *,
    mapping: FileOrDict | Sequence[Any] | None = None,
    mode: str = "auto",
    stacks: FileOrDict | Sequence[Any] | None = None,
    halo: str = "cached",
    priority: str = "latency",
    stream_like: Sequence[str] = (),
    core_objective: str = "auto",
    lpf_limit: int | str = 6,
    seed: int = 1,
    time_limit: float = 0,
    jobs: int = 1,
    report: File | None = None,
    verify: bool = False,
    objective: str = "latency",
    method: str = "cost",
    with_original: bool = False,
    evaluations: int | None = None,
    stacks_out: File | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Search which operators run together, slice by slice.

    mapping: Mapping file, or auto.
    mode: Mode: layer-by-layer, fused (groups of operators slice by slice), or auto (the better
        one).
    stacks: Fused: file of the operators of each stack, or auto.
    halo: Fused: data that two slices share are kept (cached) or recomputed.
    priority: Next tile of a core: the first ready one, the deepest in the network, or the next in
        order.
    stream_like: Use Stream's rule for this kind of data movement; may be repeated.
    core_objective: Objective of each layer's mapping on a core; auto: as objective.
    lpf_limit: Maximum number of factors of temporal loops; more are merged. none: no limit.
    seed: Seed of the search's random numbers.
    time_limit: Time limit of the search in seconds; 0: no limit.
    jobs: Number of threads (0: all cores); results do not depend on it.
    report: Folder for result.json, report.html, trace.json and training.onnx of the best plan.
    verify: Check the invariants of every stage's result.
    objective: Objective to minimise; dram: bytes to and from the off-chip memory.
    method: cost: search; fewest-groups, least-traffic: the original study's objectives.
    with_original: Also evaluate and list the plans of the original study's objectives.
    evaluations: Maximum number of schedules of the whole step after the initial ones; for single
        groups 20 times this number.
    stacks_out: Write the plan as stacks file, for monet schedule mode fused stacks.
    progress: True for a display, or a callable that receives the state of the search.
    """
    raise NotImplementedError


@search_of_step
def checkpointing(
    step: Step | None = None, chip: Chip | None = None, *,
    mapping: FileOrDict | Sequence[Any] | None = None,
    mode: str = "auto",
    stacks: FileOrDict | Sequence[Any] | None = None,
    halo: str = "cached",
    priority: str = "latency",
    stream_like: Sequence[str] = (),
    core_objective: str = "auto",
    lpf_limit: int | str = 6,
    seed: int = 1,
    time_limit: float = 0,
    jobs: int = 1,
    report: File | None = None,
    verify: bool = False,
    log: File | int | None = None,
    budget: File | int | None = None,
    sweep: bool = False,
    steps: int = 10,
    least: File | int | None = None,
    memory: str = "peak",
    objective: str = "latency",
    method: str = "automatic",
    population: int = 100,
    generations: int = 50,
    keep: Sequence[str] = (),
    recompute: Sequence[str] = (),
    output: File | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Search the activations to keep and those to recompute in the backward pass.

    mapping: Mapping file, or auto.
    mode: Mode: layer-by-layer, fused (groups of operators slice by slice), or auto (the better
        one).
    stacks: Fused: file of the operators of each stack, or auto.
    halo: Fused: data that two slices share are kept (cached) or recomputed.
    priority: Next tile of a core: the first ready one, the deepest in the network, or the next in
        order.
    stream_like: Use Stream's rule for this kind of data movement; may be repeated.
    core_objective: Objective of each layer's mapping on a core; auto: as objective.
    lpf_limit: Maximum number of factors of temporal loops; more are merged. none: no limit.
    seed: Seed of the search's random numbers.
    time_limit: Time limit of the search in seconds; 0: no limit.
    jobs: Number of threads (0: all cores); results do not depend on it.
    report: Folder for result.json, report.html, trace.json and training.onnx of the best plan.
    verify: Check the invariants of every stage's result.
    log: Operator log; replaces a step.
    budget: Memory budget: bytes, MiB, or a percentage of the memory when everything is kept.
    sweep: Compute a front over several budgets; replaces budget.
    steps: Number of budgets of a sweep in addition to 100 %.
    least: Last budget of a sweep; default: the proven minimum.
    memory: Memory that the budget limits: peak of live bytes, or activations stored for the
        backward pass.
    objective: Cost of recomputation to minimise.
    method: automatic: best search, with a bound; chain: dynamic programming over blocks; genetic:
        NSGA-II; heuristics: published ones; all others require log.
    population: Population size of NSGA-II.
    generations: Number of generations of NSGA-II.
    keep: Tensors (pattern) that stay stored; may be repeated.
    recompute: Tensors (pattern) that are always recomputed; may be repeated.
    output: Write the step with the plan as ONNX.
    progress: True for a display, or a callable that receives the state of the search.
    """
    raise NotImplementedError


@search_of_step
def joint(
    step: Step, chip: Chip, *,
    mapping: FileOrDict | Sequence[Any] | None = None,
    mode: str = "auto",
    stacks: FileOrDict | Sequence[Any] | None = None,
    halo: str = "cached",
    priority: str = "latency",
    stream_like: Sequence[str] = (),
    core_objective: str = "auto",
    lpf_limit: int | str = 6,
    seed: int = 1,
    time_limit: float = 0,
    jobs: int = 1,
    report: File | None = None,
    verify: bool = False,
    objective: str = "latency",
    budget: File | int | None = None,
    levels: int = 6,
    rounds: int = 2,
    evaluations: int | None = None,
    group_evaluations: int | None = None,
    core_evaluations: int | None = None,
    plan_out: File | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Search fusion, checkpointing and allocation together.

    mapping: Mapping file, or auto.
    mode: Mode: layer-by-layer, fused (groups of operators slice by slice), or auto (the better
        one).
    stacks: Fused: file of the operators of each stack, or auto.
    halo: Fused: data that two slices share are kept (cached) or recomputed.
    priority: Next tile of a core: the first ready one, the deepest in the network, or the next in
        order.
    stream_like: Use Stream's rule for this kind of data movement; may be repeated.
    core_objective: Objective of each layer's mapping on a core; auto: as objective.
    lpf_limit: Maximum number of factors of temporal loops; more are merged. none: no limit.
    seed: Seed of the search's random numbers.
    time_limit: Time limit of the search in seconds; 0: no limit.
    jobs: Number of threads (0: all cores); results do not depend on it.
    report: Folder for result.json, report.html, trace.json and training.onnx of the best plan.
    verify: Check the invariants of every stage's result.
    objective: Objective to minimise.
    budget: Maximum live memory: bytes, MiB, or a percentage of the layer-by-layer peak; default: no
        limit.
    levels: Number of memory amounts for which recomputation is planned; 0: no recomputation.
    rounds: Number of planning rounds, each with the costs of the best schedule so far.
    evaluations: Schedules of the group search and of the core search; default: as optimise fusion
        and optimise allocation.
    group_evaluations: Schedules of the group search; 0: default groups only.
    core_evaluations: Schedules of the core search; 0: default cores only.
    plan_out: Folder for the best plan as files for monet schedule: step.onnx, stacks.yaml,
        mapping.yaml.
    progress: True for a display, or a callable that receives the state of the search.
    """
    raise NotImplementedError
