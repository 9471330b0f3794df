"""Steps executed numerically."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from monet import _monet, arguments

Array = np.ndarray[Any, Any]
Numbers = Mapping[str, Any]


class Arrays(Mapping[str, Array]):
    """Arrays by name, each made when it is asked for."""

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
    """A step that has been computed. Arrays are float64, whatever the arithmetic was.

    `execution["tensor"]` is any tensor that is kept: results, and with keep_all all of them."""

    def __init__(self, handle: _monet.Execution) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Execution, "Step.execute()")

    @property
    def losses(self) -> list[float]:
        """The loss of each step; empty for inference."""
        return self._handle.losses

    @property
    def loss(self) -> float:
        """That of the last step."""
        if not self.losses:
            raise AttributeError("inference has no loss")
        return self.losses[-1]

    @property
    def gradients(self) -> Arrays:
        """By parameter, as the last step had them, clipped where it clips."""
        return Arrays(dict(self._handle.gradients()), self._handle.array)

    @property
    def updated(self) -> Arrays:
        """Parameters after the last step, by name."""
        return Arrays(dict(self._handle.updated()), self._handle.array)

    @property
    def outputs(self) -> Arrays:
        """What the network gives, by name."""
        return Arrays({name: name for name in self._handle.outputs()}, self._handle.array)

    @property
    def tensors(self) -> Arrays:
        """Every tensor that is kept."""
        return Arrays({name: name for name in self._handle.tensors()}, self._handle.array)

    def __getitem__(self, name: str) -> Array:
        return self._handle.array(name)

    def __repr__(self) -> str:
        loss = f"loss {self.losses[-1]:.6g}, " if self.losses else ""
        return (
            f"Execution({loss}{self._handle.given} tensors given, {self._handle.stored} of the file, "
            f"{self._handle.generated} drawn)"
        )
