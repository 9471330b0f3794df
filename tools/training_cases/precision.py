"""Casts inside networks, modules in other element types, and quantisation-aware training.

PyTorch's numbers are those of the same modules without rounding (framework.cast), as MONET computes
them; stored bytes are those with the casts. Quantised networks are exported as QuantizeLinear
and DequantizeLinear; their scales are powers of two, so that nothing depends on the precision of
their inverse.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, cast, lowered, net, real, tokens, zeros

HALF, BFLOAT, DOUBLE = torch.float16, torch.bfloat16, torch.float64


@net(lambda dtype: dict(dtype=dtype, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_between(m: Net, x: Tensor) -> Tensor:
    """Casts down and up between two layers."""
    y = torch.relu(m.first(x))
    return m.second(cast(cast(y, m.dtype), x.dtype))


@net(lambda dtype: dict(dtype=dtype, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_kept(m: Net, x: Tensor) -> Tensor:
    """The gradient reads the result of the cast at two places."""
    y = cast(m.first(x), m.dtype)
    y = y * y + y * 0.5
    return m.second(cast(y, x.dtype))


@net(lambda dtype: dict(dtype=dtype, scale=zeros(6), layer=nn.Linear(6, 4)))
def cast_input(m: Net, x: Tensor) -> Tensor:
    """An input is cast and multiplied with a trained tensor."""
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
    """Llama's norm: computed in a wide type for any input type."""
    x = m.first(x)
    wide = cast(x, m.wide)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 0.001)
    return m.second(m.weight * cast(wide, x.dtype))


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def cast_mask(m: Net, x: Tensor) -> Tensor:
    """A comparison is cast to numbers and multiplied."""
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
    """Everything in bfloat16, with inputs and targets in single precision."""
    return cast(m.net(cast(x, BFLOAT)), x.dtype)


@net(lambda: dict(
    layer=nn.Linear(6, 5), scale=lowered(nn.ParameterList([zeros(5)]), HALF), shift=lowered(nn.ParameterList([zeros(5)]), HALF),
))  # fmt: skip
def half_gates(m: Net, x: Tensor) -> Tensor:
    """A module of half precision without products, which CPUs do not support."""
    y = cast(m.layer(x), HALF) * m.scale[0] + m.shift[0]
    return cast(y, x.dtype)


OPSET = 13


def rounded(x: Tensor, scale: float, zero: int = 0, signed: bool = True) -> Tensor:
    low, high = (-128, 127) if signed else (0, 255)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)


@net(lambda symmetric: dict(symmetric=symmetric, first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def activations(m: Net, x: Tensor) -> Tensor:
    """Quantised activations between two layers."""
    x = torch.relu(m.first(x))
    x = rounded(x, 2.0**-6) if m.symmetric else rounded(x, 2.0**-7, 10, signed=False)
    return m.second(x)


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def weights(m: Net, x: Tensor) -> Tensor:
    """Quantised inputs and weights of both layers."""
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
    """Scales and zero points are buffers, set by observers."""
    x = torch.fake_quantize_per_tensor_affine(torch.tanh(m.first(x)), m.scale.float(), m.zero, -128, 127)
    weight = torch.fake_quantize_per_channel_affine(m.second.weight, m.scales.float(), m.zeros, 0, -128, 127)
    return F.linear(x, weight, m.second.bias)


def along(scale: Tensor, x: Tensor, axis: int) -> Tensor:
    """Reshapes a scale for broadcasting; `axis` is -1 for a single scale."""
    return scale if axis < 0 else scale.reshape([-1] + [1] * (x.dim() - axis - 1))


class LearnedRounding(torch.autograd.Function):
    """Rounding with a learned scale (Esser et al. 2020) and a derivative of one."""

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
    """One learned scale for every output channel of the weights; one of them clips most values."""
    return F.conv2d(x, learned(m.conv.weight, m.scales, 0), m.conv.bias)


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), head=nn.Linear(4, 5)))
def conv_block(m: Net, x: Tensor) -> Tensor:
    """Quantised layers with batch normalisation between them."""
    x = F.conv2d(rounded(x, 2.0**-7), rounded(m.conv.weight, 2.0**-7), m.conv.bias)
    x = rounded(torch.relu(m.norm(x)), 2.0**-6, signed=False)
    return F.linear(rounded(x.mean((2, 3)), 2.0**-6), rounded(m.head.weight, 2.0**-7), m.head.bias)


@net(lambda: dict(first=nn.Linear(6, 5), second=nn.Linear(5, 4)))
def saturated(m: Net, x: Tensor) -> Tensor:
    """Many values are clipped and receive no gradient."""
    return m.second(rounded(m.first(x), 2.0**-9))


@net(lambda: dict(embed=nn.Embedding(7, 4), head=nn.Linear(4, 3)))
def quantised_embedding(m: Net, ids: Tensor) -> Tensor:
    return m.head(rounded(F.embedding(ids, rounded(m.embed.weight, 2.0**-7)), 2.0**-6))


def cases() -> Iterator[Case]:
    x = [real("x", 3, 6)]
    types = (HALF, BFLOAT, DOUBLE)
    yield Case("casts_and_back", lambda: beside(*map(cast_between, types)), x)
    yield Case("casts_kept", lambda: beside(*map(cast_kept, types)), x)
    yield Case("casts_of_input", lambda: beside(*map(cast_input, types)), x)
    yield Case("softmax_in_double", exact_softmax, [real("x", 2, 4, 6)])
    yield Case("rms_norms", lambda: beside(rms_norm(torch.float32), rms_norm(DOUBLE)), x)
    yield Case("cast_of_comparison", cast_mask, x)
    yield Case("bfloat_layer", low_middle, x)
    yield Case("bfloat_casts_of_weights", cast_weight, x)
    yield Case("bfloat_network", low_network, x)
    yield Case("half_module", half_gates, x)
    x, image = [real("x", 3, 6)], [real("x", 2, 3, 5, 5)]
    yield Case("quantised_activations", lambda: beside(activations(False), activations(True)), x, opset=OPSET)
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
