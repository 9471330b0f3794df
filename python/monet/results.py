"""The result of modelling a step on a chip."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monet import _monet, arguments, pictures
from monet.calls import File, run_command
from monet.columns import Columns
from monet.figures import LAYER_COLUMNS, StepFigures
from monet.plots import Plots
from monet.warning import MonetWarning

Arrays = Mapping[str, np.ndarray[Any, Any]]


class _Kept(NamedTuple):
    """An unpickled result: its texts and columns, without the library's objects."""

    name: str
    text: str
    summary: str
    names: list[str]
    tile_columns: Arrays
    transfer_columns: Arrays
    memory_columns: Arrays

    def json(self) -> str:
        return self.text

    def table(self) -> str:
        return self.summary

    def operators(self) -> list[str]:
        return self.names

    def tiles(self) -> Arrays:
        return self.tile_columns

    def transfers(self) -> Arrays:
        return self.transfer_columns

    def memory_over_time(self) -> Arrays:
        return self.memory_columns

    def write_report(self, folder: str) -> str:
        os.makedirs(folder, exist_ok=True)
        result, page = Path(folder, "result.json"), os.path.join(folder, "report.html")
        result.write_text(self.text + "\n", encoding="utf-8")
        run_command(("report",), {"--output": page}, [str(result)])
        return page


class Result(StepFigures):
    """A step modelled on a chip: figures, columns, and all output of the command line.

    For a training step, `to_dict()["inference"]` has the figures of inference alone."""

    def __init__(self, handle: _monet.Result | _Kept) -> None:
        if not isinstance(handle, _Kept):
            arguments.instance("handle", handle, _monet.Result, "Step.schedule()")
        self._handle = handle

    @property
    def name(self) -> str:
        return self._handle.name

    @cached_property
    def _json(self) -> str:
        return self._handle.json()

    @cached_property
    def _figures(self) -> dict[str, Any]:  # type: ignore[override]
        return dict(json.loads(self._json))

    def to_json(self) -> str:
        """The output of `monet schedule --json -`, byte for byte."""
        return self._json + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The result's JSON as a dict; docs/reference/result.md lists every key."""
        return dict(json.loads(self._json))

    @property
    def warnings(self) -> list[MonetWarning]:
        """Warnings about the network, chip and options: input that was ignored, guessed, clipped or
        assumed."""
        return [MonetWarning(one["where"], one["message"], one["hint"]) for one in self._figures.get("warnings", [])]

    @cached_property
    def layers(self) -> Columns:
        """One row per operator: the keys of LAYER_COLUMNS, described in docs/reference/result.md, and
        `operator`, its index in `operators`. Sorted by critical_path_cycles, the most first; they
        add up to latency_cycles."""
        rows = list(enumerate(self._figures["layers"]))
        rows.sort(key=lambda row: -int(row[1]["critical_path_cycles"]))
        columns: dict[str, np.ndarray[Any, Any]] = {}
        for key, kind in LAYER_COLUMNS.items():
            if kind is not object and "operator" not in columns:  # after the texts
                columns["operator"] = np.array([i for i, _ in rows], dtype=np.int64)
            columns[key] = np.array([row[key] for _, row in rows], dtype=kind)
        return Columns(columns)

    @cached_property
    def tiles(self) -> Columns:
        """One row per run of a tile, by start: tile, operator (an index into `operators`), core,
        start_cycle, end_cycle. Views without a copy."""
        return Columns(self._handle.tiles())

    @cached_property
    def transfers(self) -> Columns:
        """One row per transfer, by start: tensor, operator, kind (0 fetch, 1 stream, 2 write back,
        3 spill), start_cycle, end_cycle, bits per receiver."""
        return Columns(self._handle.transfers())

    @cached_property
    def memory_over_time(self) -> Columns:
        """One row per change of live memory: cycle, and the bytes of each owner from then on."""
        return Columns(self._handle.memory_over_time())

    @cached_property
    def operators(self) -> list[str]:
        """Names of the operators, in the numbering of tiles and transfers."""
        return self._handle.operators()

    @property
    def plot(self) -> Plots:
        """Plots of the result: `.timeline()`, `.memory()`, `.energy()`, `.roofline()`. Raises
        ImportError without matplotlib."""
        return Plots(self)

    def report(self, folder: File) -> str:
        """Writes result.json, report.html, trace.json and, for a training step, training.onnx. An
        unpickled result writes only the first two. Returns the path of the report. Raises OSError
        if writing fails."""
        return self._handle.write_report(arguments.path("folder", folder))

    def __reduce__(self) -> tuple[Any, ...]:
        columns = [
            {name: np.ascontiguousarray(column) for name, column in table.items()}
            for table in (self.tiles, self.transfers, self.memory_over_time)
        ]
        return _restored, (self.name, self._json, str(self), self.operators, *columns)

    def __str__(self) -> str:
        return self._handle.table()

    def __repr__(self) -> str:
        return f"Result({self.name!r}: {self.latency_cycles:,} cycles, {self.energy_pj:.4g} pJ)"

    def _repr_html_(self) -> str:
        return pictures.result_html(self)


def _restored(*kept: Any) -> Result:
    return Result(_Kept(*kept))
