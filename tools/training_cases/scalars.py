"""Trained scalars: gates, temperatures, exponents, of shape [] and [1], in several places."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real


def cases() -> Iterator[Case]:
    yield from gates()
    yield from temperatures()
    yield from exponents()
    yield from places()
    yield from scales()


def scalar(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


# --- Gates -----------------------------------------------------------------------------------


class ReZero(nn.Module):
    """Residual branches that begin behind a gate."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.alpha = scalar(*shape)
        self.beta = scalar(*shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.alpha * torch.relu(self.first(x))
        return x + torch.relu(self.second(x)) * self.beta


class ReZeroConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.gate = scalar()

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.gate) * self.conv(x)


class WeightedSum(nn.Module):
    """Branches with weights that are elements of one vector, and of a softmax of it (ELMo)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(3))
        self.weights = nn.Parameter(torch.zeros(3))
        self.gamma = scalar(1)

    def forward(self, x: Tensor) -> Tensor:
        share = torch.softmax(self.weights, 0)
        total = 0
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            total = total + share[i] * x
        return self.gamma * total


class FastFusion(nn.Module):
    """BiFPN's weights: positive, divided by their sum."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(2, 3, 1)
        self.right = nn.Conv2d(2, 3, 1)
        self.weights = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        w = torch.relu(self.weights)
        w = w / (w.sum() + 0.0001)
        return torch.relu(w[0] * self.left(x) + w[1] * self.right(y))


def gates() -> Iterator[Case]:
    yield Case("rezero_scalar", lambda: ReZero(), [real("x", 3, 6)], tags=["scalar"], steps="adam")
    yield Case("rezero_one_element", lambda: ReZero(1), [real("x", 3, 6)], tags=["scalar"], steps="momentum")
    yield Case("rezero_conv_tanh", ReZeroConv, [real("x", 2, 3, 5, 5)], tags=["scalar"])
    yield Case("weighted_sum_of_layers", WeightedSum, [real("x", 3, 5)], tags=["scalar"], steps="adam")
    yield Case(
        "fast_normalised_fusion",
        FastFusion,
        [real("x", 2, 2, 4, 4), real("y", 2, 2, 4, 4)],
        tags=["scalar"],
        fills={"weights": (1.0, 0.5)},
    )


# --- Temperatures ----------------------------------------------------------------------------


class Clip(nn.Module):
    """Cosines of images and texts, times the exponential of a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Linear(6, 4)
        self.text = nn.Linear(5, 4)
        self.logit_scale = scalar()

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        image, text = self.image(image), self.text(text)
        image = image / image.norm(dim=1, keepdim=True)
        text = text / text.norm(dim=1, keepdim=True)
        return self.logit_scale.exp() * image @ text.t()


class SigLip(Clip):
    """With a bias beside the scale."""

    def __init__(self) -> None:
        super().__init__()
        self.logit_bias = scalar()

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        image = F.normalize(self.image(image), dim=-1)
        text = F.normalize(self.text(text), dim=-1)
        return image @ text.t() * self.logit_scale.exp() + self.logit_bias


class Temperature(nn.Module):
    """Logits divided by a trained temperature."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)
        self.temperature = scalar(*shape)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) / self.temperature


class TemperatureAttention(nn.Module):
    """One temperature for every head, as XCiT and Swin v2 have."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)
        self.temperature = nn.Parameter(torch.zeros(2, 1, 1))
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, count, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        scores = torch.softmax(q @ k.transpose(-2, -1) * self.temperature, -1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, count, width))


def temperatures() -> Iterator[Case]:
    pair = [real("image", 3, 6), real("text", 3, 5)]
    yield Case("clip", Clip, pair, loss="cross_entropy", tags=["scalar"], steps="adam")
    yield Case("siglip", SigLip, pair, loss="bce_with_logits", tags=["scalar"])
    yield Case("temperature_scalar", lambda: Temperature(), [real("x", 3, 6)], loss="cross_entropy", tags=["scalar"])
    yield Case(
        "temperature_one_element",
        lambda: Temperature(1),
        [real("x", 3, 6)],
        loss="cross_entropy",
        tags=["scalar"],
        steps="momentum",
    )
    yield Case("temperature_per_head", TemperatureAttention, [real("x", 2, 5, 8)], fills={"temperature": (1.0, 0.5)})


# --- Exponents -------------------------------------------------------------------------------


class GeM(nn.Module):
    """Generalised-mean pooling with a trained exponent."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.p = scalar(*shape)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sigmoid(self.conv(x)).clamp(min=0.001).pow(self.p)
        return self.head(x.mean((2, 3)).pow(1.0 / self.p))


def exponents() -> Iterator[Case]:
    image = [real("x", 2, 3, 6, 6)]
    pooled = {"fills": {"p": (3.0, 0.5)}, "loss": "cross_entropy", "tags": ["scalar"]}
    yield Case("gem_one_element", lambda: GeM(1), image, steps="adam", **pooled)
    yield Case("gem_scalar", lambda: GeM(), image, **pooled)


# --- Places ----------------------------------------------------------------------------------


class Everywhere(nn.Module):
    """Scalars on either side of Add, Sub, Mul, Div and Pow."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 4)
        for name in ("add", "sub", "under", "mul", "div", "over", "exponent", "base"):
            setattr(self, name, scalar(*shape))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sigmoid(self.layer(x)) + self.add
        x = (self.sub - x) * self.mul - self.under
        x = self.over / (1.0 + x * x) + x / self.div
        return torch.pow(x * x + 0.5, self.exponent) + torch.pow(self.base, x)


class ScalarsOnly(nn.Module):
    """Of one input; nothing but scalars is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = scalar()
        self.shift = scalar()

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x * self.slope + self.shift)


class SharedScalar(nn.Module):
    """One scalar, read at several places and by other scalars."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.scale = scalar()
        self.offset = scalar()

    def forward(self, x: Tensor) -> Tensor:
        both = self.scale * self.offset
        return torch.relu(self.first(x * self.scale)) * both + self.scale - self.offset.square()


def places() -> Iterator[Case]:
    fills = {"div": (2.0, 0.25), "base": (1.5, 0.25), "exponent": (1.5, 0.25)}
    given = {"inputs": [real("x", 3, 5)], "fills": fills, "tags": ["scalar"]}
    yield Case("scalars_everywhere", lambda: Everywhere(), steps="momentum", **given)
    yield Case("one_elements_everywhere", lambda: Everywhere(1), **given)
    yield Case("scalars_only", ScalarsOnly, [real("x", 3, 4)], tags=["scalar"], steps="adam")
    yield Case("scalar_shared", SharedScalar, [real("x", 3, 5)], tags=["scalar"])


# --- Scales ----------------------------------------------------------------------------------


class ConvNeXt(nn.Module):
    """A block with a layer scale of [C] or [C, 1, 1]."""

    def __init__(self, channels_last: bool) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.norm = nn.LayerNorm(4)
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)
        self.layer_scale = nn.Parameter(torch.zeros(4) if channels_last else torch.zeros(4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.down(F.gelu(self.up(y)))
        if self.channels_last:
            return x + (self.layer_scale * y).permute(0, 3, 1, 2)
        return x + self.layer_scale * y.permute(0, 3, 1, 2)


class LearnedNorm(nn.Module):
    """Normalisation with a single scale (ScaleNorm), and PReLU with a single slope."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.slope = nn.PReLU()
        self.g = scalar(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.slope(self.layer(x))
        return self.g * x / (torch.norm(x, dim=-1, keepdim=True) + 0.001)


def scales() -> Iterator[Case]:
    image = [real("x", 2, 4, 5, 5)]
    yield Case("convnext_layer_scale", lambda: ConvNeXt(True), image, steps="adam")
    yield Case("convnext_layer_scale_c11", lambda: ConvNeXt(False), image)
    yield Case("scale_norm_prelu", LearnedNorm, [real("x", 3, 6)], tags=["scalar"])
