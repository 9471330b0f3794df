"""Figures of results. Written by scripts/generate.sh from docs/*.schema.json: do not edit by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Energy(dict[str, float]):
    """Energy in pJ by part, with the JSON's names as keys, and as attributes."""

    @property
    def compute(self) -> float:
        """Operations of the cores."""
        return self["compute_pj"]

    @property
    def on_chip(self) -> float:
        """Accesses of the cores' memories."""
        return self["onchip_memory_pj"]

    @property
    def links(self) -> float:
        """Transfers over links."""
        return self["links_pj"]

    @property
    def off_chip(self) -> float:
        """Accesses of the off-chip memory."""
        return self["offchip_pj"]

    @property
    def leakage(self) -> float:
        """Leakage over the step."""
        return self["leakage_pj"]


class Memory(dict[str, int]):
    """Bytes by owner at the peak, with the JSON's names as keys, and as attributes."""

    @property
    def parameters(self) -> int:
        """Parameters."""
        return self["parameters_bytes"]

    @property
    def gradients(self) -> int:
        """Gradients."""
        return self["gradients_bytes"]

    @property
    def optimizer_state(self) -> int:
        """State of the optimizer."""
        return self["optimizer_state_bytes"]

    @property
    def stored_activations(self) -> int:
        """Activations that the backward phase reads."""
        return self["stored_activations_bytes"]

    @property
    def temporaries(self) -> int:
        """Other tensors; the five owners add up to the peak."""
        return self["temporaries_bytes"]

    @property
    def peak(self) -> int:
        """Total of all owners."""
        return self.parameters + self.gradients + self.optimizer_state + self.stored_activations + self.temporaries


class StepFigures:
    """Figures of a step, read from its JSON."""

    _figures: dict[str, Any]

    @property
    def latency_cycles(self) -> int:
        """Length of the whole step."""
        return int(self._figures["latency_cycles"])

    @property
    def latency_seconds(self) -> float | None:
        """Latency in seconds, if the chip has a frequency."""
        return self._figures.get("latency_seconds")

    @property
    def energy_pj(self) -> float:
        """Energy of all components, with leakage."""
        return float(self._figures["energy_pj"])

    @property
    def energy(self) -> Energy:
        """Energy in pJ by component; adds up to `energy_pj`."""
        return Energy(self._figures["energy"])

    @property
    def peak_memory_bytes(self) -> int:
        """Maximum of live bytes, with every tensor counted whole."""
        return int(self._figures["peak_memory_bytes"])

    @property
    def peak_memory_by_slices_bytes(self) -> int | None:
        """Maximum of live bytes, with fused tensors counted slice by slice, if tensors are
        fused."""
        return self._figures.get("peak_memory_by_slices_bytes")

    @property
    def memory(self) -> Memory:
        """Bytes by owner at the peak, and `peak_cycle`."""
        return Memory(self._figures["memory"])

    @property
    def macs(self) -> dict[str, int]:
        """Multiply-accumulates of the forward phase and of each gradient."""
        return dict(self._figures["macs"])


LAYER_COLUMNS: dict[str, Any] = {
    "name": object,
    "op_type": object,
    "phase": object,
    "macs": np.int64,
    "critical_path_cycles": np.int64,
    "span_cycles": np.int64,
    "busy_cycles": np.int64,
    "utilisation": np.float64,
    "energy_pj": np.float64,
    "start_cycle": np.int64,
    "end_cycle": np.int64,
    "offchip_bytes": np.int64,
}
"""Columns of the layers, and the types of their values."""


class Figures(NamedTuple):
    """Figures of one run (inference or training) of a design."""

    latency_cycles: int
    energy_pj: float
    peak_memory_bytes: int
