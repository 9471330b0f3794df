"""A step modelled on a chip."""

from __future__ import annotations

import html
import json
from functools import cached_property
from typing import Any

import numpy as np

from monet import _monet, arguments
from monet.calls import File, path_of
from monet.columns import Columns


class Result:
    """A step modelled on a chip: figures, columns, and everything the command line writes.

    Of a training step the figures of inference alone stand in `to_dict()["inference"]`."""

    def __init__(self, handle: _monet.Result) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Result, "Step.schedule()")

    @property
    def name(self) -> str:
        return self._handle.name

    @cached_property
    def _json(self) -> str:
        return self._handle.json()

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return dict(json.loads(self._json))

    def to_json(self) -> str:
        """What `monet schedule --json -` prints, byte for byte."""
        return self._json + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The same as Python has it; docs/result.md names every key."""
        return dict(json.loads(self._json))

    @property
    def latency_cycles(self) -> int:
        return int(self._figures["latency_cycles"])

    @property
    def latency_seconds(self) -> float | None:
        """None where the chip has no frequency."""
        return self._figures.get("latency_seconds")

    @property
    def energy_pj(self) -> float:
        return float(self._figures["energy_pj"])

    @property
    def energy(self) -> dict[str, float]:
        """pJ by part: compute, on-chip memory, links, off-chip, leakage."""
        return dict(self._figures["energy"])

    @property
    def peak_memory_bytes(self) -> int:
        """Most bytes live at a time, every tensor whole."""
        return int(self._figures["peak_memory_bytes"])

    @property
    def peak_memory_by_slices_bytes(self) -> int | None:
        """The same with fused tensors slice by slice; None where nothing is fused."""
        return self._figures.get("peak_memory_by_slices_bytes")

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by owner at the moment of the peak."""
        return dict(self._figures["memory"])

    @property
    def macs(self) -> dict[str, int]:
        return dict(self._figures["macs"])

    @cached_property
    def layers(self) -> Columns:
        """An operator a row: name, op_type, phase, macs, latency_cycles, energy_pj, start_cycle,
        end_cycle, offchip_bytes."""
        rows = self._figures["layers"]
        texts = ("name", "op_type", "phase")
        numbers = {"macs": np.int64, "latency_cycles": np.int64, "energy_pj": np.float64, "start_cycle": np.int64,
                   "end_cycle": np.int64, "offchip_bytes": np.int64}  # fmt: skip
        columns: dict[str, np.ndarray[Any, Any]] = {
            key: np.array([row[key] for row in rows], dtype=object) for key in texts
        }
        columns |= {key: np.array([row[key] for row in rows], dtype=kind) for key, kind in numbers.items()}
        return Columns(columns)

    @cached_property
    def tiles(self) -> Columns:
        """A run of a tile a row, by start: tile, operator (an index into `operators`), core,
        start_cycle, end_cycle. Views without a copy."""
        return Columns(self._handle.tiles())

    @cached_property
    def transfers(self) -> Columns:
        """A transfer a row, by start: tensor, operator, kind (0 fetch, 1 stream, 2 write back, 3
        spill), start_cycle, end_cycle, bits that each receiver gets."""
        return Columns(self._handle.transfers())

    @cached_property
    def memory_over_time(self) -> Columns:
        """A change of live memory a row: cycle, and bytes of each owner from then on."""
        return Columns(self._handle.memory_over_time())

    @cached_property
    def operators(self) -> list[str]:
        """Names, as tiles and transfers number them."""
        return self._handle.operators()

    def report(self, folder: File) -> str:
        """Writes result.json, report.html, trace.json and, of a training step, training.onnx.
        Returns the report's path. OSError where it cannot."""
        return self._handle.write_report(path_of(folder, "folder"))

    def __str__(self) -> str:
        return self._handle.table()

    def __repr__(self) -> str:
        return f"Result({self.name!r}: {self.latency_cycles:,} cycles, {self.energy_pj:.4g} pJ)"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
