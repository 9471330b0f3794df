"""Quantisation-aware training: numbers are rounded to a grid going forward, gradients pass where none was cut off.

Exported as QuantizeLinear and DequantizeLinear. Scales are powers of two, so that nothing depends
on the precision of their inverse.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

OPSET = 13


def cases() -> Iterator[Case]:
    tags = ["quantised"]
    x, image = [real("x", 3, 6)], [real("x", 2, 3, 5, 5)]
    for symmetric in (False, True):
        name = "signed" if symmetric else "unsigned"
        yield Case(
            f"quantised_activations_{name}",
            lambda symmetric=symmetric: Activations(symmetric),
            x,
            tags=tags,
            opset=OPSET,
            steps="adam" if symmetric else "",
        )
    yield Case("quantised_weights", Weights, x, tags=tags, opset=OPSET)
    yield Case("quantised_per_channel", PerChannel, image, tags=tags, opset=OPSET, steps="momentum")
    yield Case("quantised_buffers", ScaleBuffers, x, tags=[*tags, "buffer"], opset=OPSET)
    yield Case("quantised_conv_block", ConvBlock, image, tags=tags, opset=OPSET)
    yield Case("quantised_saturated", Saturated, x, tags=tags, opset=OPSET)
    named = {"trainable": {"parameters": ["scale*"]}}
    yield Case("quantised_learned_scale", LearnedScale, x, options=named, tags=tags, opset=OPSET, steps="sgd")
    yield Case("quantised_learned_scales", LearnedScales, image, options=named, tags=tags, opset=OPSET)
    ids = [tokens("ids", 2, 3, below=7)]
    yield Case("quantised_embedding", QuantisedEmbedding, ids, "cross_entropy", tags=tags, opset=OPSET)


def rounded(x: Tensor, scale: float, zero: int = 0, signed: bool = True) -> Tensor:
    low, high = (-128, 127) if signed else (0, 255)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)


class Activations(nn.Module):
    """Between two layers."""

    def __init__(self, symmetric: bool) -> None:
        super().__init__()
        self.symmetric = symmetric
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        x = rounded(x, 2.0**-6) if self.symmetric else rounded(x, 2.0**-7, 10, signed=False)
        return self.second(x)


class Weights(nn.Module):
    """Input and weights of both layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second):
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
        return torch.fake_quantize_per_channel_affine(
            weight, scales, torch.zeros(count, dtype=torch.int32), 0, -128, 127
        )

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(F.conv2d(x, self.channels(self.first.weight), self.first.bias))
        return F.conv2d(x, self.channels(self.second.weight), self.second.bias)


class ScaleBuffers(nn.Module):
    """Scales and zero points are buffers, as observers leave them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)
        self.register_buffer("scale", torch.tensor(2.0**-6, dtype=torch.float32))
        self.register_buffer("zero", torch.tensor(3, dtype=torch.int32))
        self.register_buffer("scales", torch.tensor([2.0**-6, 2.0**-7, 2.0**-6, 2.0**-7], dtype=torch.float32))
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.fake_quantize_per_tensor_affine(
            torch.tanh(self.first(x)), self.scale.float(), self.zero, -128, 127
        )
        weight = torch.fake_quantize_per_channel_affine(
            self.second.weight, self.scales.float(), self.zeros, 0, -128, 127
        )
        return F.linear(x, weight, self.second.bias)


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


class LearnedScale(nn.Module):
    """Learned step size quantisation of activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)
        self.scale = nn.Parameter(torch.tensor([2.0**-7]))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(learned(torch.tanh(self.first(x)), self.scale))


class LearnedScales(nn.Module):
    """One learned scale for every output channel of the weights; one of them cuts most off."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.scales = nn.Parameter(torch.tensor([2.0**-7, 2.0**-10, 2.0**-6, 2.0**-8]))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, learned(self.conv.weight, self.scales, 0), self.conv.bias)


class ConvBlock(nn.Module):
    """With batch normalisation between."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.conv2d(rounded(x, 2.0**-7), rounded(self.conv.weight, 2.0**-7), self.conv.bias)
        x = rounded(torch.relu(self.norm(x)), 2.0**-6, signed=False)
        return F.linear(rounded(x.mean((2, 3)), 2.0**-6), rounded(self.head.weight, 2.0**-7), self.head.bias)


class Saturated(nn.Module):
    """Much is cut off, and gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(rounded(self.first(x), 2.0**-9))


class QuantisedEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(rounded(F.embedding(ids, rounded(self.embed.weight, 2.0**-7)), 2.0**-6))
