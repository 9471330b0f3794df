"""Numeric execution of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from monet import _monet, arguments

Array = np.ndarray[Any, Any]
Numbers = Mapping[str, Any]


class Arrays(Mapping[str, Array]):
    """Arrays by name, each created on access."""

    def __init__(self, names: Mapping[str, str], read: Callable[[str], Array]) -> None:
        self._names = dict(names)
        self._read = read

    def __getitem__(self, name: str) -> Array:
        return self._read(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Arrays({', '.join(self._names)})"


class Execution:
    """An executed step. Arrays are float64 for every arithmetic.

    `execution["tensor"]` returns any tensor that was kept: results or, with keep_all, all of
    them."""

    def __init__(self, handle: _monet.Execution) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Execution, "Step.execute()")

    @property
    def losses(self) -> list[float]:
        """The loss of each step; empty for inference."""
        return self._handle.losses

    @property
    def loss(self) -> float:
        """The loss of the last step."""
        if not self.losses:
            raise AttributeError("inference has no loss")
        return self.losses[-1]

    @property
    def gradients(self) -> Arrays:
        """Gradients of the last step by parameter, after clipping if the step clips."""
        return Arrays(dict(self._handle.gradients()), self._handle.array)

    @property
    def updated(self) -> Arrays:
        """Parameters after the last step, by name."""
        return Arrays(dict(self._handle.updated()), self._handle.array)

    @property
    def outputs(self) -> Arrays:
        """Outputs of the network, by name."""
        return Arrays({name: name for name in self._handle.outputs()}, self._handle.array)

    @property
    def tensors(self) -> Arrays:
        """All tensors that were kept, by name."""
        return Arrays({name: name for name in self._handle.tensors()}, self._handle.array)

    def __getitem__(self, name: str) -> Array:
        return self._handle.array(name)

    def __repr__(self) -> str:
        loss = f"loss {self.losses[-1]:.6g}, " if self.losses else ""
        return (
            f"Execution({loss}{self._handle.given} tensors given, {self._handle.stored} of the file, "
            f"{self._handle.generated} drawn)"
        )
