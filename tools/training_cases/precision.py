"""Casts inside of networks, and modules in other element types.

PyTorch's numbers are those of the same modules without any rounding (framework.cast), as MONET
computes them; stored bytes are those with the casts.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, cast, lowered, real

HALF, BFLOAT, DOUBLE = torch.float16, torch.bfloat16, torch.float64


def cases() -> Iterator[Case]:
    yield from casts()
    yield from modules()


# --- Casts -----------------------------------------------------------------------------------


class CastBetween(nn.Module):
    """Down and up again between two layers."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(x))
        return self.second(cast(cast(y, self.dtype), x.dtype))


class CastKept(nn.Module):
    """The gradient reads what the cast made, at two places."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = cast(self.first(x), self.dtype)
        y = y * y + y * 0.5
        return self.second(cast(y, x.dtype))


class CastInput(nn.Module):
    """A fed-in tensor is cast and multiplied with a trained one."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.scale = nn.Parameter(torch.zeros(6))
        self.layer = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        made = cast(x, self.dtype) * cast(self.scale, self.dtype)
        return self.layer(cast(made, x.dtype))


class ExactSoftmax(nn.Module):
    """Scores are cast up for their softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = cast(q @ k.transpose(1, 2) * 0.5, DOUBLE)
        return cast(torch.softmax(scores, -1), x.dtype) @ v


class RmsNorm(nn.Module):
    """Llama's: computed in a wide type, whatever comes in."""

    def __init__(self, wide: torch.dtype) -> None:
        super().__init__()
        self.wide = wide
        self.first = nn.Linear(6, 6)
        self.weight = nn.Parameter(torch.zeros(6))
        self.second = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        wide = cast(x, self.wide)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 0.001)
        return self.second(self.weight * cast(wide, x.dtype))


class CastMask(nn.Module):
    """A comparison becomes numbers that are multiplied with."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.second(y * (y > 0.25).to(y.dtype))


def casts() -> Iterator[Case]:
    x = [real("x", 3, 6)]
    tags = ["cast"]
    for name, dtype in (("half", HALF), ("bfloat", BFLOAT), ("double", DOUBLE)):
        yield Case(f"cast_{name}_and_back", lambda dtype=dtype: CastBetween(dtype), x, tags=tags)
        yield Case(f"cast_{name}_kept", lambda dtype=dtype: CastKept(dtype), x, tags=tags)
        yield Case(f"cast_{name}_of_input", lambda dtype=dtype: CastInput(dtype), x, tags=tags)
    yield Case("softmax_in_double", ExactSoftmax, [real("x", 2, 4, 6)], tags=tags, steps="adam")
    yield Case("rms_norm_in_float", lambda: RmsNorm(torch.float32), x, tags=tags)
    yield Case("rms_norm_in_double", lambda: RmsNorm(DOUBLE), x, tags=tags)
    yield Case("cast_of_comparison", CastMask, x, tags=tags)


# --- Modules ---------------------------------------------------------------------------------


class LowMiddle(nn.Module):
    """One layer has its weights in bfloat16, as autocast would compute it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.middle = lowered(nn.Linear(5, 5), BFLOAT)
        self.last = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.middle(cast(torch.relu(self.first(x)), BFLOAT))
        return self.last(cast(torch.relu(y), x.dtype))


class CastWeight(nn.Module):
    """Weights are kept in single precision and cast before their product."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5, bias=False)
        self.second = nn.Linear(5, 4, bias=False)

    def product(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.linear(cast(x, BFLOAT), cast(weight, BFLOAT))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.product(x, self.first.weight))
        return cast(self.product(y, self.second.weight), x.dtype)


class LowNetwork(nn.Module):
    """All in bfloat16; fed and compared in single precision."""

    def __init__(self) -> None:
        super().__init__()
        self.net = lowered(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), BFLOAT)

    def forward(self, x: Tensor) -> Tensor:
        return cast(self.net(cast(x, BFLOAT)), x.dtype)


class HalfGates(nn.Module):
    """A module of half precision without products, which processors do not have."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)
        self.scale = lowered(nn.ParameterList([nn.Parameter(torch.zeros(5))]), HALF)
        self.shift = lowered(nn.ParameterList([nn.Parameter(torch.zeros(5))]), HALF)

    def forward(self, x: Tensor) -> Tensor:
        y = cast(self.layer(x), HALF) * self.scale[0] + self.shift[0]
        return cast(y, x.dtype)


def modules() -> Iterator[Case]:
    x = [real("x", 3, 6)]
    tags = ["cast", "low"]
    yield Case("bfloat_layer", LowMiddle, x, tags=tags)
    yield Case("bfloat_casts_of_weights", CastWeight, x, tags=tags)
    yield Case("bfloat_network", LowNetwork, x, tags=tags)
    yield Case("half_module", HalfGates, x, tags=tags)
