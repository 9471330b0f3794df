"""Quantisation-aware training: numbers are rounded to a grid going forward, gradients pass where none was cut off.

Exported as QuantizeLinear and DequantizeLinear. Scales are powers of two, so that nothing depends
on the precision of their inverse.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros

OPSET = 13


def rounded(x: Tensor, scale: float, zero: int = 0, signed: bool = True) -> Tensor:
    low, high = (-128, 127) if signed else (0, 255)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)


@net(lambda symmetric: dict(symmetric=symmetric, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def activations(m: Net, x: Tensor) -> Tensor:
    """Between two layers."""
    x = torch.relu(m.first(x))
    x = rounded(x, 2.0**-6) if m.symmetric else rounded(x, 2.0**-7, 10, signed=False)
    return m.second(x)


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def weights(m: Net, x: Tensor) -> Tensor:
    """Input and weights of both layers."""
    for layer in (m.first, m.second):
        x = F.linear(rounded(x, 2.0**-6), rounded(layer.weight, 2.0**-7), layer.bias)
    return x


class PerChannel(nn.Module):
    """A scale for every output channel."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, 3, 1)

    def channels(self, weight: Tensor) -> Tensor:
        count = weight.shape[0]
        scales = torch.tensor([2.0**-7, 2.0**-6] * count, dtype=torch.float32)[:count]
        return torch.fake_quantize_per_channel_affine(weight, scales, torch.zeros(count, dtype=torch.int32), 0, -128, 127)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(F.conv2d(x, self.channels(self.first.weight), self.first.bias))
        return F.conv2d(x, self.channels(self.second.weight), self.second.bias)


@net(lambda: dict(
    first=nn.Linear(6, 5), second=nn.Linear(5, 4), scale=torch.tensor(2.0**-6, dtype=torch.float32),
    zero=torch.tensor(3, dtype=torch.int32), scales=torch.tensor([2.0**-6, 2.0**-7, 2.0**-6, 2.0**-7], dtype=torch.float32),
    zeros=torch.zeros(4, dtype=torch.int32),
))  # fmt: skip
def scale_buffers(m: Net, x: Tensor) -> Tensor:
    """Scales and zero points are buffers, as observers leave them."""
    x = torch.fake_quantize_per_tensor_affine(torch.tanh(m.first(x)), m.scale.float(), m.zero, -128, 127)
    weight = torch.fake_quantize_per_channel_affine(m.second.weight, m.scales.float(), m.zeros, 0, -128, 127)
    return F.linear(x, weight, m.second.bias)


def along(scale: Tensor, x: Tensor, axis: int) -> Tensor:
    """Shaped so that it broadcasts; `axis` is -1 for one scale of everything."""
    return scale if axis < 0 else scale.reshape([-1] + [1] * (x.dim() - axis - 1))


class LearnedRounding(torch.autograd.Function):
    """Rounding with a learned scale (Esser et al. 2020): a rounding whose derivative is one."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: Tensor, axis: int) -> Tensor:
        ctx.save_for_backward(x, scale)
        ctx.axis = axis
        return LearnedRounding.chain(x, scale, axis)

    @staticmethod
    def chain(x: Tensor, scale: Tensor, axis: int) -> Tensor:
        scale = along(scale, x, axis)
        place = (x / scale).clamp(-128, 127)
        whole = (x * (1 / scale.float())).round().clamp(-128, 127)
        return (place + (whole - place).detach()) * scale

    @staticmethod
    def backward(ctx, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, scale = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
        with torch.enable_grad():
            return *torch.autograd.grad(LearnedRounding.chain(x, scale, ctx.axis), (x, scale), dy), None


def learned(x: Tensor, scale: Tensor, axis: int = -1) -> Tensor:
    """PyTorch's operators with a gradient for the scale work in single precision only, and have no export."""
    if torch.onnx.is_in_onnx_export():
        zeros = torch.zeros(scale.shape, dtype=torch.int32)
        if axis < 0:
            return torch.fake_quantize_per_tensor_affine(x, scale.detach(), zeros, -128, 127)
        return torch.fake_quantize_per_channel_affine(x, scale.detach(), zeros, axis, -128, 127)
    if x.dtype != torch.float32:
        return LearnedRounding.apply(x, scale, axis)
    zero = torch.zeros_like(scale)
    if axis < 0:
        return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -128, 127)
    return torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, axis, -128, 127)


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4), scale=nn.Parameter(torch.tensor([2.0**-7]))))
def learned_scale(m: Net, x: Tensor) -> Tensor:
    """Learned step size quantisation of activations."""
    return m.second(learned(torch.tanh(m.first(x)), m.scale))


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), scales=nn.Parameter(torch.tensor([2.0**-7, 2.0**-10, 2.0**-6, 2.0**-8]))))
def learned_scales(m: Net, x: Tensor) -> Tensor:
    """One learned scale for every output channel of the weights; one of them cuts most off."""
    return F.conv2d(x, learned(m.conv.weight, m.scales, 0), m.conv.bias)


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), head=nn.Linear(4, 5)))
def conv_block(m: Net, x: Tensor) -> Tensor:
    """With batch normalisation between."""
    x = F.conv2d(rounded(x, 2.0**-7), rounded(m.conv.weight, 2.0**-7), m.conv.bias)
    x = rounded(torch.relu(m.norm(x)), 2.0**-6, signed=False)
    return F.linear(rounded(x.mean((2, 3)), 2.0**-6), rounded(m.head.weight, 2.0**-7), m.head.bias)


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def saturated(m: Net, x: Tensor) -> Tensor:
    """Much is cut off, and gets no gradient."""
    return m.second(rounded(m.first(x), 2.0**-9))


@net(lambda: dict(embed=nn.Embedding(7, 4), head=nn.Linear(4, 3)))
def quantised_embedding(m: Net, ids: Tensor) -> Tensor:
    return m.head(rounded(F.embedding(ids, rounded(m.embed.weight, 2.0**-7)), 2.0**-6))


def cases() -> Iterator[Case]:
    x, image = [real("x", 3, 6)], [real("x", 2, 3, 5, 5)]
    for symmetric in (False, True):
        name = "signed" if symmetric else "unsigned"
        yield Case(
            f"quantised_activations_{name}",
            lambda symmetric=symmetric: activations(symmetric),
            x,
            opset=OPSET,
        )
    yield Case("quantised_weights", weights, x, opset=OPSET)
    yield Case("quantised_per_channel", PerChannel, image, opset=OPSET)
    yield Case("quantised_buffers", scale_buffers, x, opset=OPSET)
    yield Case("quantised_conv_block", conv_block, image, opset=OPSET)
    yield Case("quantised_saturated", saturated, x, opset=OPSET)
    named = {"trainable": {"parameters": ["scale*"]}}
    yield Case("quantised_learned_scale", learned_scale, x, options=named, opset=OPSET)
    yield Case("quantised_learned_scales", learned_scales, image, options=named, opset=OPSET)
    ids = [tokens("ids", 2, 3, below=7)]
    yield Case("quantised_embedding", quantised_embedding, ids, "cross_entropy", opset=OPSET)
