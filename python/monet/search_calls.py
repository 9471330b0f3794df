"""Calls searches of the command line, and holds their results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ParamSpec

from monet import arguments
from monet.calls import Answer, Inputs, options_of, python_name, run_command
from monet.chips import Chip
from monet.columns import Columns
from monet.commands import _limit
from monet.model import Step

P = ParamSpec("P")

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


def add_step(step: Step | None, chip: Chip | None, values: dict[str, object], inputs: Inputs) -> None:
    """Adds a step and a chip to the options of a command; None adds nothing."""
    if step is not None:
        arguments.instance("step", step, Step, "Network.training_step()")
        values["--workload"] = step.network.path
        values.update(step._values(inputs))
    if chip is not None:
        arguments.instance("chip", chip, Chip, "read_chip()")
        values["--hardware"] = chip._add_to(inputs)


def search_of_step(described: Callable[P, SearchResult]) -> Callable[P, SearchResult]:
    """A function that runs the search of `monet optimise` with the name of `described`, which has
    its arguments and no body. Arguments that are left out are left out of the command, too."""
    command = ("optimise", described.__name__)
    signature = inspect.signature(described)

    @functools.wraps(described)
    def search(*args: P.args, **kwargs: P.kwargs) -> SearchResult:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{described.__name__}() {error}") from None
        step, chip = given.get("step"), given.get("chip")
        if "log" not in signature.parameters:  # which replaces both
            arguments.instance("step", step, Step, "Network.training_step()")
            arguments.instance("chip", chip, Chip, "read_chip()")
        inputs = Inputs()
        values: dict[str, object] = {"--json": "-"}
        add_step(step, chip, values, inputs)
        for option in options_of(command):
            name = python_name(option)
            if name not in given:
                continue
            value = _limit(given[name]) if name == "lpf_limit" else given[name]
            is_file = name in ("mapping", "stacks") and value is not None
            values[option] = inputs.name(value, name) if is_file else value
        return SearchResult(run_command(command, values, inputs=inputs, progress=given.get("progress")))

    return search
