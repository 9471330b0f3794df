"""Exploration of hardware spaces: a strategy, of the library or of the caller, selects the designs
to evaluate."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from monet import _monet, arguments
from monet.calls import Answer, File, FileOrDict, Inputs, run_command
from monet.chips import Chip
from monet.columns import Columns
from monet.figures import Figures
from monet.progress import Progress
from monet.warning import warned

Value = int | float | str


class Design(NamedTuple):
    """The result of evaluating a design."""

    id: int
    values: dict[str, Value]
    """Values of the space's parameters, by name."""
    feasible: bool
    reason: str
    """The reason why the design is infeasible, or empty."""
    area_mm2: float
    peak_power_w: float
    frequency_hz: float
    runs: dict[str, Figures]
    """Figures by name of the run; empty if the design is infeasible."""
    metrics: dict[str, float]
    """Metrics of short trainings and clusters, and the caller's figures."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Design:
        runs = {name: Figures(**figures) for name, figures in told["runs"].items()}
        return cls(*(runs if field == "runs" else told[field] for field in cls._fields))


class Strategy(Protocol):
    """Selects the designs to evaluate. The selection may depend only on the received results and on
    a seed of the strategy, so that an interrupted run can be repeated from a store."""

    def ask(self) -> Iterable[int]:
        """The numbers of the designs to evaluate next. Each may occur only once in a run, and the
        space's constraints must allow it. An empty answer ends the exploration."""

    def tell(self, designs: Sequence[Design]) -> None:
        """Receives the results of the designs of the last `ask()`, in that order."""


Constraint = Callable[[Design], bool | str | None]
Figure = Callable[[Design], float]


class Space:
    """A space of hardware (docs/reference/space-file.md). Created by `read_space()`. Designs are
    numbers from 0 to `size` - 1, including those that constraints exclude."""

    def __init__(self, handle: _monet.Space, source: FileOrDict) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Space, "read_space()")
        self._source = source

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def size(self) -> int:
        return self._handle.size

    @property
    def runs(self) -> list[str]:
        """Runs of each design: "inference", "training" or both."""
        return self._handle.runs

    @property
    def parameters(self) -> dict[str, list[Value]]:
        """The values of each parameter, by name."""
        return dict(self._handle.parameters)

    def values(self, design: int) -> dict[str, Value]:
        """The parameter values of a design. Raises IndexError outside of the space."""
        return self._handle.values(design)

    def choices(self, design: int) -> list[int]:
        """The index of a design's value of each parameter."""
        return self._handle.choices(design)

    def id_of(self, choices: Sequence[int]) -> int:
        """The design with the given index for each parameter. Raises IndexError for an invalid
        index."""
        return self._handle.id_of([arguments.whole(f"choices[{i}]", choice, 0, 2**63 - 1)
                                   for i, choice in enumerate(arguments.several("choices", choices))])  # fmt: skip

    def broken_constraint(self, design: int) -> str:
        """The constraint of the file that excludes the design, or "" if it is allowed."""
        return self._handle.broken_constraint(design)

    def first_design(self) -> int:
        """The first design that the constraints allow."""
        return self._handle.first_design()

    def neighbours(self, design: int) -> list[int]:
        """Allowed designs that differ by one step in the value of one parameter, in the order of
        parameters, with the earlier value first."""
        near = []
        choices = self.choices(design)
        sizes = [len(values) for values in self.parameters.values()]
        for place, choice in enumerate(choices):
            for other in (choice - 1, choice + 1):
                if 0 <= other < sizes[place]:
                    one = self.id_of([*choices[:place], other, *choices[place + 1 :]])
                    if not self.broken_constraint(one):
                        near.append(one)
        return near

    def hardware_files(self, design: int) -> dict[str, str]:
        """The texts of system.yaml and of the core files that it names, by name."""
        return self._handle.hardware_files(design)

    def chip(self, design: int) -> Chip:
        """The chip of a design. Raises InputError if the file's expressions result in no valid
        chip."""
        with warned():
            return Chip(self._handle.chip(design), None)

    def __reduce__(self) -> tuple[Any, ...]:
        return read_space, (self._source,)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name} x {len(values)}" for name, values in self.parameters.items())
        return f"Space({self.name!r}: {self.size:,} designs, {parameters})"


def read_space(space: FileOrDict) -> Space:
    """Reads a space file, or a dict of its keys. Raises InputError with every problem, at its line
    or key."""
    inputs = Inputs()
    name = inputs.name(space, "space")
    return Space(inputs.reading(lambda: _monet.read_space(name, inputs.texts)), space)


class Exploration(Answer):
    """The result of an exploration. `for design in exploration` iterates over its designs. If there
    are very many, the JSON has only those on fronts and a sample; a store has all
    (`read_store()`)."""

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        kinds = [kind["reason"] for kind in self["reasons"]]
        rows = [dict(zip(self["columns"], cells, strict=True)) for cells in self["rows"]]
        for row in rows:
            row["reason"] = "" if row["reason"] is None else kinds[row["reason"]]
        return rows

    def __iter__(self) -> Iterator[Design]:
        runs = self["runs"]
        parameters = [parameter["name"] for parameter in self["space"]["parameters"]]
        known = {"id", "reason", "area_mm2", "peak_power_w", "frequency_hz", *parameters}
        known |= {f"{run} {name}" for run in runs for name in Figures._fields}
        for row in self._rows:
            figures = {} if row["reason"] else {run: Figures(*(row[f"{run} {name}"] for name in Figures._fields)) for run in runs}
            yield Design(
                row["id"], {name: row[name] for name in parameters}, not row["reason"], row["reason"],
                row["area_mm2"] or 0, row["peak_power_w"] or 0, row["frequency_hz"] or 0, figures,
                {name: value for name, value in row.items() if value is not None and name not in known},
            )  # fmt: skip

    @cached_property
    def designs(self) -> Columns:
        """One row per design: id, parameters, reason ("" if feasible, else its kind, with # for
        each number), area_mm2, peak_power_w, frequency_hz, and latency_cycles, energy_pj and
        peak_memory_bytes of each run."""
        return Columns.of_rows(self._rows, self["columns"])

    def front(self, name: str | None = None) -> Columns:
        """The designs on a front, by default the first one. `fronts` lists the names."""
        fronts = self["fronts"]
        rows = fronts[name or next(iter(fronts))]["designs"]
        return Columns.of_rows([{**row["parameters"], **row} for row in rows])

    @property
    def fronts(self) -> list[str]:
        return list(self["fronts"])

    def __repr__(self) -> str:
        return f"Exploration({self['name']!r}: {self['evaluated']} of {self['designs']} designs)"


class OwnParts:
    """The parts of an exploration that the caller defines. The library calls them one at a time."""

    def __init__(
        self, strategy: Strategy | None, constraint: Constraint | None, figures: Mapping[str, Figure]
    ) -> None:
        self.has_strategy = strategy is not None
        self.strategy_name = f"python: {type(strategy).__qualname__}"
        self.constraint = constraint
        for name, figure in figures.items():
            arguments.function(f"figures[{name!r}]", figure)
        arguments.function("constraint", constraint)
        self.figures = dict(figures)
        self._strategy = strategy

    def ask(self) -> list[int]:
        assert self._strategy is not None
        return list(self._strategy.ask())

    def tell(self, designs: Sequence[Mapping[str, Any]]) -> None:
        assert self._strategy is not None
        self._strategy.tell([Design.of(design) for design in designs])

    def judge(self, design: Mapping[str, Any]) -> str:
        assert self.constraint is not None
        kept = self.constraint(Design.of(design))
        if kept is None or kept is True:
            return ""
        return kept if isinstance(kept, str) and kept else f"{_name(self.constraint)} excludes it"

    def measure(self, design: Mapping[str, Any]) -> dict[str, float]:
        told = Design.of(design)
        values = {}
        for name, figure in self.figures.items():
            values[name] = float(figure(told))
            if values[name] != values[name]:
                raise ValueError(f"figures[{name!r}]: NaN for design {told.id}")
        return values

    @property
    def identity(self) -> str:
        """A hash of the constraint and the figures. A store holds designs of one identity only."""
        texts = [_source(self.constraint)] if self.constraint else []
        texts += [f"{name}: {_source(figure)}" for name, figure in self.figures.items()]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def explore(
    space: Space | FileOrDict,
    *,
    strategy: str | Strategy = "exhaustive",
    constraint: Constraint | None = None,
    figures: Mapping[str, Figure] | None = None,
    budget: int = 0,
    seed: int = 1,
    jobs: int = 0,
    store: File | None = None,
    resume: bool = False,
    output: File | None = None,
    design: Sequence[int] = (),
    export_csv: File | None = None,
    progress: Progress = None,
) -> Exploration:
    """Evaluates the designs of a space. `strategy`: exhaustive, random, lhs, climb, nsga2, racing,
    or an object with `ask` and `tell` (see Strategy). `constraint` receives every design that can
    run, and returns False or a reason to exclude it. `figures`: functions by name that compute
    further figures of a design. Both are called by one thread at a time, and results do not depend
    on `jobs` (0: all cores). `store`: an SQLite file that receives every design as soon as it is
    evaluated; `resume` continues it. Ctrl-C ends the exploration with the designs so far."""
    source = space._source if isinstance(space, Space) else space
    inputs = Inputs()
    name = inputs.name(source, "space")
    own = None
    measured = arguments.mapping("figures", figures)
    if not isinstance(strategy, str) or constraint is not None or measured:
        own = OwnParts(None if isinstance(strategy, str) else _checked(strategy), constraint, measured)
    values = {
        "--strategy": strategy if isinstance(strategy, str) else None, "--budget": budget, "--seed": seed,
        "--jobs": jobs, "--store": store, "--resume": resume, "--out": output, "--design": design,
        "--export-csv": export_csv, "--json": "-",
    }  # fmt: skip
    return Exploration(run_command(("explore",), values, [name], inputs=inputs, progress=progress, own=own))


def compare_explorations(a: File, b: File, *, of: tuple[str, str] | None = None, output: File | None = None) -> Answer:
    """Compares two explorations (explore.json files or stores). `of`: the run of each."""
    values = {"--compare": [arguments.path("a", a), arguments.path("b", b)], "--of": of, "--out": output, "--json": "-"}
    return Answer(run_command(("explore",), values))


class Store:
    """The designs in the SQLite file of an exploration. Created by `read_store()`."""

    def __init__(self, name: str, content_hash: str, designs: Sequence[Design]) -> None:
        self.name = name
        """Name of the space."""
        self.content_hash = content_hash
        """Hash of the space's text and files, and of the caller's constraint and figures."""
        self.designs = list(designs)
        """Designs in order of id."""

    def columns(self) -> Columns:
        """One row per design, like `Exploration.designs`."""
        rows = []
        for design in self.designs:
            row: dict[str, Any] = {"id": design.id, **design.values, "feasible": design.feasible}
            row |= {"reason": design.reason, "area_mm2": design.area_mm2, "peak_power_w": design.peak_power_w}
            for run, figures in design.runs.items():
                row |= {f"{run} {name}": value for name, value in figures._asdict().items()}
            rows.append(row | design.metrics)
        return Columns.of_rows(rows)

    def __str__(self) -> str:
        """The table of the first designs."""
        return str(self.columns())

    def _repr_html_(self) -> str:
        return self.columns()._repr_html_()

    def __repr__(self) -> str:
        return f"Store({self.name!r}: {len(self.designs)} designs)"


def read_store(path: File) -> Store:
    """Reads the SQLite file of an exploration. Raises InputError if it is not a store."""
    file = arguments.path("path", path)
    with warned():
        name, content_hash, rows = _monet.read_store(file)
    return Store(name, content_hash, [Design.of(row) for row in rows])


def _checked(strategy: Strategy) -> Strategy:
    for method in ("ask", "tell"):
        if not callable(getattr(strategy, method, None)):
            raise TypeError(f"strategy: {type(strategy).__name__} has no method {method}()")
    return strategy


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _source(function: Callable[..., Any]) -> str:
    """The identity of a function: its source text, or its name if the text is unavailable."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(type(function)))}"


__all__ = ["Design", "Exploration", "Figures", "Space", "Store", "Strategy", "compare_explorations", "explore",
           "read_space", "read_store"]  # fmt: skip
