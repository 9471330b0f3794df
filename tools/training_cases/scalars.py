"""Trained scalars: gates, temperatures, exponents, of shape [] and [1], in several places."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, zeros


def scalar(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


@net(lambda *shape: dict(first=nn.Linear(6, 6), second=nn.Linear(6, 6), alpha=scalar(*shape), beta=scalar(*shape)))
def rezero(m: Net, x: Tensor) -> Tensor:
    """Residual branches that begin behind a gate."""
    x = x + m.alpha * torch.relu(m.first(x))
    return x + torch.relu(m.second(x)) * m.beta


@net(lambda: dict(conv=nn.Conv2d(3, 3, 3, padding=1), gate=scalar()))
def rezero_conv(m: Net, x: Tensor) -> Tensor:
    return x + torch.tanh(m.gate) * m.conv(x)


@net(lambda: dict(layers=nn.ModuleList(nn.Linear(5, 5) for _ in range(3)), weights=zeros(3), gamma=scalar(1)))
def weighted_sum(m: Net, x: Tensor) -> Tensor:
    """Branches with weights that are elements of one vector, and of a softmax of it (ELMo)."""
    share = torch.softmax(m.weights, 0)
    total = 0
    for i, layer in enumerate(m.layers):
        x = torch.tanh(layer(x))
        total = total + share[i] * x
    return m.gamma * total


@net(lambda: dict(left=nn.Conv2d(2, 3, 1), right=nn.Conv2d(2, 3, 1), weights=zeros(2)))
def fast_fusion(m: Net, x: Tensor, y: Tensor) -> Tensor:
    """BiFPN's weights: positive, divided by their sum."""
    w = torch.relu(m.weights)
    w = w / (w.sum() + 0.0001)
    return torch.relu(w[0] * m.left(x) + w[1] * m.right(y))


@net(lambda: dict(image=nn.Linear(6, 4), text=nn.Linear(5, 4), logit_scale=scalar()))
def clip(m: Net, image: Tensor, text: Tensor) -> Tensor:
    """Cosines of images and texts, times the exponential of a scalar."""
    image, text = m.image(image), m.text(text)
    image = image / image.norm(dim=1, keepdim=True)
    text = text / text.norm(dim=1, keepdim=True)
    return m.logit_scale.exp() * image @ text.t()


@net(lambda: dict(image=nn.Linear(6, 4), text=nn.Linear(5, 4), logit_scale=scalar(), logit_bias=scalar()))
def siglip(m: Net, image: Tensor, text: Tensor) -> Tensor:
    """With a bias beside the scale."""
    image = F.normalize(m.image(image), dim=-1)
    text = F.normalize(m.text(text), dim=-1)
    return image @ text.t() * m.logit_scale.exp() + m.logit_bias


@net(lambda *shape: dict(head=nn.Linear(6, 4), temperature=scalar(*shape)))
def temperature(m: Net, x: Tensor) -> Tensor:
    """Logits divided by a trained temperature."""
    return m.head(x) / m.temperature


@net(lambda: dict(qkv=nn.Linear(8, 24, bias=False), temperature=zeros(2, 1, 1), out=nn.Linear(8, 8)))
def temperature_attention(m: Net, x: Tensor) -> Tensor:
    """One temperature for every head, as XCiT and Swin v2 have."""
    batch, count, width = x.shape
    q, k, v = m.qkv(x).reshape(batch, count, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    scores = torch.softmax(q @ k.transpose(-2, -1) * m.temperature, -1)
    return m.out((scores @ v).transpose(1, 2).reshape(batch, count, width))


@net(lambda *shape: dict(conv=nn.Conv2d(3, 4, 3), p=scalar(*shape), head=nn.Linear(4, 5)))
def gem(m: Net, x: Tensor) -> Tensor:
    """Generalised-mean pooling with a trained exponent."""
    x = torch.sigmoid(m.conv(x)).clamp(min=0.001).pow(m.p)
    return m.head(x.mean((2, 3)).pow(1.0 / m.p))


PLACES = ("add", "sub", "under", "mul", "div", "over", "exponent", "base")


@net(lambda *shape: dict(layer=nn.Linear(5, 4), **{name: scalar(*shape) for name in PLACES}))
def everywhere(m: Net, x: Tensor) -> Tensor:
    """Scalars on either side of Add, Sub, Mul, Div and Pow."""
    x = torch.sigmoid(m.layer(x)) + m.add
    x = (m.sub - x) * m.mul - m.under
    x = m.over / (1.0 + x * x) + x / m.div
    return torch.pow(x * x + 0.5, m.exponent) + torch.pow(m.base, x)


@net(lambda: dict(slope=scalar(), shift=scalar()))
def scalars_only(m: Net, x: Tensor) -> Tensor:
    """Of one input; nothing but scalars is trained."""
    return torch.tanh(x * m.slope + m.shift)


@net(lambda: dict(first=nn.Linear(5, 5), scale=scalar(), offset=scalar()))
def shared_scalar(m: Net, x: Tensor) -> Tensor:
    """One scalar, read at several places and by other scalars."""
    both = m.scale * m.offset
    return torch.relu(m.first(x * m.scale)) * both + m.scale - m.offset.square()


@net(lambda channels_last: dict(
    channels_last=channels_last, depthwise=nn.Conv2d(4, 4, 3, padding=1, groups=4), norm=nn.LayerNorm(4), up=nn.Linear(4, 8),
    down=nn.Linear(8, 4), layer_scale=nn.Parameter(torch.zeros(4) if channels_last else torch.zeros(4, 1, 1)),
))  # fmt: skip
def convnext(m: Net, x: Tensor) -> Tensor:
    """A block with a layer scale of [C] or [C, 1, 1]."""
    y = m.norm(m.depthwise(x).permute(0, 2, 3, 1))
    y = m.down(F.gelu(m.up(y)))
    if m.channels_last:
        return x + (m.layer_scale * y).permute(0, 3, 1, 2)
    return x + m.layer_scale * y.permute(0, 3, 1, 2)


@net(lambda: dict(layer=nn.Linear(6, 6), slope=nn.PReLU(), g=scalar(1)))
def learned_norm(m: Net, x: Tensor) -> Tensor:
    """Normalisation with a single scale (ScaleNorm), and PReLU with a single slope."""
    x = m.slope(m.layer(x))
    return m.g * x / (torch.norm(x, dim=-1, keepdim=True) + 0.001)


def cases() -> Iterator[Case]:
    yield Case("rezero_scalar", lambda: rezero(), [real("x", 3, 6)])
    yield Case("rezero_one_element", lambda: rezero(1), [real("x", 3, 6)])
    yield Case("rezero_conv_tanh", rezero_conv, [real("x", 2, 3, 5, 5)])
    yield Case("weighted_sum_of_layers", weighted_sum, [real("x", 3, 5)])
    yield Case("fast_normalised_fusion", fast_fusion, [real("x", 2, 2, 4, 4), real("y", 2, 2, 4, 4)], fills={"weights": (1.0, 0.5)})
    pair = [real("image", 3, 6), real("text", 3, 5)]
    yield Case("clip", clip, pair, loss="cross_entropy")
    yield Case("siglip", siglip, pair, loss="bce_with_logits")
    yield Case("temperature_scalar", lambda: temperature(), [real("x", 3, 6)], loss="cross_entropy")
    yield Case("temperature_one_element", lambda: temperature(1), [real("x", 3, 6)], loss="cross_entropy")
    yield Case("temperature_per_head", temperature_attention, [real("x", 2, 5, 8)], fills={"temperature": (1.0, 0.5)})
    image = [real("x", 2, 3, 6, 6)]
    pooled = {"fills": {"p": (3.0, 0.5)}, "loss": "cross_entropy"}
    yield Case("gem_one_element", lambda: gem(1), image, **pooled)
    yield Case("gem_scalar", lambda: gem(), image, **pooled)
    fills = {"div": (2.0, 0.25), "base": (1.5, 0.25), "exponent": (1.5, 0.25)}
    given = {"inputs": [real("x", 3, 5)], "fills": fills}
    yield Case("scalars_everywhere", lambda: everywhere(), **given)
    yield Case("one_elements_everywhere", lambda: everywhere(1), **given)
    yield Case("scalars_only", scalars_only, [real("x", 3, 4)])
    yield Case("scalar_shared", shared_scalar, [real("x", 3, 5)])
    image = [real("x", 2, 4, 5, 5)]
    yield Case("convnext_layer_scale", lambda: convnext(True), image)
    yield Case("convnext_layer_scale_c11", lambda: convnext(False), image)
    yield Case("scale_norm_prelu", learned_norm, [real("x", 3, 6)])
