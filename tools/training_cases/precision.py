"""Casts inside of networks, and modules in other element types.

PyTorch's numbers are those of the same modules without any rounding (framework.cast), as MONET
computes them; stored bytes are those with the casts.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, cast, lowered, net, real, zeros

HALF, BFLOAT, DOUBLE = torch.float16, torch.bfloat16, torch.float64


@net(lambda dtype: dict(dtype=dtype, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_between(m: Net, x: Tensor) -> Tensor:
    """Down and up again between two layers."""
    y = torch.relu(m.first(x))
    return m.second(cast(cast(y, m.dtype), x.dtype))


@net(lambda dtype: dict(dtype=dtype, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_kept(m: Net, x: Tensor) -> Tensor:
    """The gradient reads what the cast made, at two places."""
    y = cast(m.first(x), m.dtype)
    y = y * y + y * 0.5
    return m.second(cast(y, x.dtype))


@net(lambda dtype: dict(dtype=dtype, scale=zeros(6), layer=nn.Linear(6, 4)))
def cast_input(m: Net, x: Tensor) -> Tensor:
    """A fed-in tensor is cast and multiplied with a trained one."""
    made = cast(x, m.dtype) * cast(m.scale, m.dtype)
    return m.layer(cast(made, x.dtype))


@net(lambda: dict(qkv=nn.Linear(6, 12)))
def exact_softmax(m: Net, x: Tensor) -> Tensor:
    """Scores are cast up for their softmax."""
    q, k, v = m.qkv(x).chunk(3, -1)
    scores = cast(q @ k.transpose(1, 2) * 0.5, DOUBLE)
    return cast(torch.softmax(scores, -1), x.dtype) @ v


@net(lambda wide: dict(wide=wide, first=nn.Linear(6, 6), weight=zeros(6), second=nn.Linear(6, 4)))
def rms_norm(m: Net, x: Tensor) -> Tensor:
    """Llama's: computed in a wide type, whatever comes in."""
    x = m.first(x)
    wide = cast(x, m.wide)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 0.001)
    return m.second(m.weight * cast(wide, x.dtype))


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_mask(m: Net, x: Tensor) -> Tensor:
    """A comparison becomes numbers that are multiplied with."""
    y = m.first(x)
    return m.second(y * (y > 0.25).to(y.dtype))


@net(lambda: dict(first=nn.Linear(6, 5), middle=lowered(nn.Linear(5, 5), BFLOAT), last=nn.Linear(5, 4)))
def low_middle(m: Net, x: Tensor) -> Tensor:
    """One layer has its weights in bfloat16, as autocast would compute it."""
    y = m.middle(cast(torch.relu(m.first(x)), BFLOAT))
    return m.last(cast(torch.relu(y), x.dtype))


@net(lambda: dict(first=nn.Linear(6, 5, bias=False), second=nn.Linear(5, 4, bias=False)))
def cast_weight(m: Net, x: Tensor) -> Tensor:
    """Weights are kept in single precision and cast before their product."""
    y = torch.relu(F.linear(cast(x, BFLOAT), cast(m.first.weight, BFLOAT)))
    return cast(F.linear(cast(y, BFLOAT), cast(m.second.weight, BFLOAT)), x.dtype)


@net(lambda: dict(net=lowered(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), BFLOAT)))
def low_network(m: Net, x: Tensor) -> Tensor:
    """All in bfloat16; fed and compared in single precision."""
    return cast(m.net(cast(x, BFLOAT)), x.dtype)


@net(lambda: dict(
    layer=nn.Linear(6, 5), scale=lowered(nn.ParameterList([zeros(5)]), HALF), shift=lowered(nn.ParameterList([zeros(5)]), HALF),
))  # fmt: skip
def half_gates(m: Net, x: Tensor) -> Tensor:
    """A module of half precision without products, which processors do not have."""
    y = cast(m.layer(x), HALF) * m.scale[0] + m.shift[0]
    return cast(y, x.dtype)


def cases() -> Iterator[Case]:
    x = [real("x", 3, 6)]
    for name, dtype in (("half", HALF), ("bfloat", BFLOAT), ("double", DOUBLE)):
        yield Case(f"cast_{name}_and_back", lambda dtype=dtype: cast_between(dtype), x)
        yield Case(f"cast_{name}_kept", lambda dtype=dtype: cast_kept(dtype), x)
        yield Case(f"cast_{name}_of_input", lambda dtype=dtype: cast_input(dtype), x)
    yield Case("softmax_in_double", exact_softmax, [real("x", 2, 4, 6)])
    yield Case("rms_norm_in_float", lambda: rms_norm(torch.float32), x)
    yield Case("rms_norm_in_double", lambda: rms_norm(DOUBLE), x)
    yield Case("cast_of_comparison", cast_mask, x)
    x = [real("x", 3, 6)]
    yield Case("bfloat_layer", low_middle, x)
    yield Case("bfloat_casts_of_weights", cast_weight, x)
    yield Case("bfloat_network", low_network, x)
    yield Case("half_module", half_gates, x)
