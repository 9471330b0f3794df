"""Spaces of hardware: their designs evaluated by a strategy, of the library or one's own."""

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
from monet.progress import Progress
from monet.warning import warned

Value = int | float | str


class Figures(NamedTuple):
    """Of one run (inference or training) of a design."""

    latency_cycles: int
    energy_pj: float
    peak_memory_bytes: int


class Design(NamedTuple):
    """What the evaluation of a design came to."""

    id: int
    values: dict[str, Value]
    """Of the space's parameters."""
    feasible: bool
    reason: str
    """Why it is not."""
    area_mm2: float
    peak_power_w: float
    frequency_hz: float
    runs: dict[str, Figures]
    """By name; empty where it is infeasible."""
    metrics: dict[str, float]
    """Of short trainings and clusters, and own figures."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Design:
        runs = {name: Figures(**figures) for name, figures in told["runs"].items()}
        return cls(*(runs if field == "runs" else told[field] for field in cls._fields))


class Strategy(Protocol):
    """Which designs are evaluated. What it asks for may depend on what it was told and on its own seed, on
    nothing else, so that a run that was cut short can be repeated from a store."""

    def ask(self) -> Iterable[int]:
        """Designs to evaluate next, by number; each once in a run, and none that the space's constraints
        exclude. None left: the exploration ends."""

    def tell(self, designs: Sequence[Design]) -> None:
        """What those that were asked for last came to, in that order."""


Constraint = Callable[[Design], bool | str | None]
Figure = Callable[[Design], float]


class Space:
    """A space of hardware (docs/reference/space-file.md). Made by `read_space()`. Designs are numbers, 0 to
    `size` - 1, those that constraints exclude among them."""

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
        """Of "inference" and "training"."""
        return self._handle.runs

    @property
    def parameters(self) -> dict[str, list[Value]]:
        """Their values, by name."""
        return dict(self._handle.parameters)

    def values(self, design: int) -> dict[str, Value]:
        """Of the parameters. IndexError beyond the space."""
        return self._handle.values(design)

    def choices(self, design: int) -> list[int]:
        """Index of the value of each parameter."""
        return self._handle.choices(design)

    def id_of(self, choices: Sequence[int]) -> int:
        """The design of these indices. IndexError where there are none such."""
        return self._handle.id_of([arguments.whole(f"choices[{i}]", choice, 0, 2**63 - 1)
                                   for i, choice in enumerate(arguments.several("choices", choices))])  # fmt: skip

    def broken_constraint(self, design: int) -> str:
        """Which constraint of the file excludes the design; "" where none does."""
        return self._handle.broken_constraint(design)

    def first_design(self) -> int:
        """The first that constraints keep."""
        return self._handle.first_design()

    def neighbours(self, design: int) -> list[int]:
        """Designs that constraints keep with one parameter a value further or back, the first parameter
        first, back before further."""
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
        """system.yaml and the core files it names: text by name."""
        return self._handle.hardware_files(design)

    def chip(self, design: int) -> Chip:
        """InputError where the file's expressions make none."""
        with warned():
            return Chip(self._handle.chip(design), None)

    def __reduce__(self) -> tuple[Any, ...]:
        return read_space, (self._source,)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name} x {len(values)}" for name, values in self.parameters.items())
        return f"Space({self.name!r}: {self.size:,} designs, {parameters})"


def read_space(space: FileOrDict) -> Space:
    """A space's file, or a dict of its keys. InputError with every problem, at its line or key."""
    inputs = Inputs()
    name = inputs.name(space, "space")
    return Space(inputs.reading(lambda: _monet.read_space(name, inputs.texts)), space)


class Exploration(Answer):
    """What an exploration came to: `for design in exploration` goes through its designs. Of very many the
    JSON has those on fronts and a sample; a store has all (`read_store()`)."""

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
        """A design a row: id, parameters, reason ("" where it is feasible, else its kind: # for each
        number), area_mm2, peak_power_w, frequency_hz, and of each run latency_cycles, energy_pj and
        peak_memory_bytes."""
        return Columns.of_rows(self._rows, self["columns"])

    def front(self, name: str | None = None) -> Columns:
        """The designs on a front, those of the first without a name; names: `fronts`."""
        fronts = self["fronts"]
        rows = fronts[name or next(iter(fronts))]["designs"]
        return Columns.of_rows([{**row["parameters"], **row} for row in rows])

    @property
    def fronts(self) -> list[str]:
        return list(self["fronts"])

    def __repr__(self) -> str:
        return f"Exploration({self['name']!r}: {self['evaluated']} of {self['designs']} designs)"


class OwnParts:
    """What the library asks of Python. Its calls come one at a time."""

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
        """Of what is judged by: a store is of one."""
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
    """Evaluates the designs of a space. `strategy`: exhaustive, random, lhs, climb, nsga2, racing, or an
    object with `ask` and `tell` (see Strategy). `constraint` is told every design that can run, and says
    False, or why not; `figures` are numbers beside those of the library, by name. Both are called by one
    thread at a time, and results do not depend on `jobs` (0: all cores). `store`: an SQLite file that has
    every design as soon as it is evaluated; `resume` goes on with it. Ctrl-C ends it with the designs so
    far."""
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
    """Two explorations (explore.json files or stores) side by side. `of`: the run of each."""
    values = {"--compare": [arguments.path("a", a), arguments.path("b", b)], "--of": of, "--out": output, "--json": "-"}
    return Answer(run_command(("explore",), values))


class Store:
    """The designs that an SQLite file of an exploration has. Made by `read_store()`."""

    def __init__(self, name: str, content_hash: str, designs: Sequence[Design]) -> None:
        self.name = name
        """Of the space."""
        self.content_hash = content_hash
        """Of the space's text and files, and of what else designs were judged by."""
        self.designs = list(designs)
        """In order of id."""

    def columns(self) -> Columns:
        """A design a row, as `Exploration.designs` has them."""
        rows = []
        for design in self.designs:
            row: dict[str, Any] = {"id": design.id, **design.values, "feasible": design.feasible}
            row |= {"reason": design.reason, "area_mm2": design.area_mm2, "peak_power_w": design.peak_power_w}
            for run, figures in design.runs.items():
                row |= {f"{run} {name}": value for name, value in figures._asdict().items()}
            rows.append(row | design.metrics)
        return Columns.of_rows(rows)

    def __str__(self) -> str:
        """The table of its first designs."""
        return str(self.columns())

    def _repr_html_(self) -> str:
        return self.columns()._repr_html_()

    def __repr__(self) -> str:
        return f"Store({self.name!r}: {len(self.designs)} designs)"


def read_store(path: File) -> Store:
    """InputError where it is no store."""
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
    """What tells a function from another: its text, or its name where it has none."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(type(function)))}"


__all__ = ["Design", "Exploration", "Figures", "Space", "Store", "Strategy", "compare_explorations", "explore",
           "read_space", "read_store"]  # fmt: skip
