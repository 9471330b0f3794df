"""Float buffers: masks, tables, filters, anchors, statistics. None of them is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens


@net(lambda: dict(
    mean=torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1), std=torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1),
    conv=nn.Conv2d(3, 4, 3),
))  # fmt: skip
def normalised(m: Net, x: Tensor) -> Tensor:
    """Images are normalised with mean and standard deviation first."""
    return torch.relu(m.conv((x - m.mean) / m.std))


EDGES = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
BLUR = torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]) / 16.0


@net(lambda: dict(
    sobel=torch.stack([EDGES, EDGES.t()]).unsqueeze(1), gauss=BLUR.expand(4, 1, 3, 3).contiguous(), conv=nn.Conv2d(2, 4, 3)
))  # fmt: skip
def sobel(m: Net, x: Tensor) -> Tensor:
    """Trained features behind a fixed edge filter, and before a fixed blur."""
    edges = F.conv2d(x.mean(1, keepdim=True), m.sobel, padding=1)
    return F.conv2d(torch.relu(m.conv(edges)), m.gauss, stride=2, padding=1, groups=4)


@net(lambda: dict(blur=torch.eye(6) * 0.5 + torch.diag(torch.full((5,), 0.25), -1), conv=nn.Conv2d(2, 3, 1)))
def blur(m: Net, x: Tensor) -> Tensor:
    """Blur as a product with fixed matrices on both sides."""
    return torch.matmul(m.blur, torch.matmul(torch.tanh(m.conv(x)), m.blur.t()))


@net(
    lambda: dict(mean=torch.linspace(-1.0, 1.0, 6), scale=torch.linspace(0.5, 2.0, 6), temperature=torch.tensor(0.5), layer=nn.Linear(5, 6))
)
def whitened(m: Net, x: Tensor) -> Tensor:
    """Features shifted and scaled by statistics that were measured once."""
    return (m.layer(x) - m.mean) * m.scale / m.temperature


@net(lambda: dict(
    head=nn.Conv2d(3, 2 * 4, 1), anchors=torch.tensor([[1.0, 2.0], [3.0, 1.5]]).view(1, 2, 2, 1, 1),
    grid=torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="xy")).view(1, 1, 2, 4, 4),
))  # fmt: skip
def anchors(m: Net, x: Tensor) -> Tensor:
    """Boxes are offsets from anchors, and a grid."""
    made = m.head(x).view(x.shape[0], 2, 4, 4, 4)
    centre = torch.sigmoid(made[:, :, :2]) + m.grid
    return torch.cat([centre, torch.exp(made[:, :, 2:]) * m.anchors], 2)


@net(lambda: dict(head=nn.Conv2d(3, 4 * 5, 1), project=torch.arange(5.0)))
def distribution_focal(m: Net, x: Tensor) -> Tensor:
    """Expected distances: a softmax times a fixed projection, as in YOLOv8."""
    share = torch.softmax(m.head(x).view(x.shape[0], 4, 5, -1), 2)
    return (share.transpose(2, 3) * m.project).sum(-1)


@net(lambda: dict(frequencies=torch.randn(2, 6), net=nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))))
def fourier_features(m: Net, x: Tensor) -> Tensor:
    """A random projection, its sine and cosine."""
    angles = 2.0 * x @ m.frequencies
    return m.net(torch.cat([torch.sin(angles), torch.cos(angles)], -1))


@net(lambda: dict(
    frame=nn.Conv1d(1, 8, 6, stride=3, bias=False), head=nn.Linear(4, 3),
    bank=torch.relu(1.0 - (torch.arange(8.0)[:, None] - torch.linspace(1.0, 6.0, 4)[None, :]).abs() / 2.0),
))  # fmt: skip
def mel_filters(m: Net, x: Tensor) -> Tensor:
    """A learned spectrum through a fixed filter bank, and its logarithm."""
    power = m.frame(x.unsqueeze(1)).square().transpose(1, 2)
    return m.head(torch.log(power @ m.bank + 0.01).mean(1))


def fourier(name: str, count: int) -> dict[str, Tensor]:
    angle = 2.0 * math.pi / count * torch.outer(torch.arange(float(count)), torch.arange(float(count)))
    return {f"{name}_cos": torch.cos(angle), f"{name}_sin": torch.sin(angle)}


@net(lambda: dict(
    **fourier("tokens", 6), **fourier("channels", 8), norm=nn.LayerNorm(8), up=nn.Linear(8, 12), down=nn.Linear(12, 8)
))  # fmt: skip
def fnet(m: Net, x: Tensor) -> Tensor:
    """Mixing by the real part of two Fourier transforms, as products with fixed matrices."""
    mixed = m.tokens_cos @ x @ m.channels_cos - m.tokens_sin @ x @ m.channels_sin
    x = m.norm(x + mixed)
    return x + m.down(F.gelu(m.up(x)))


@net(lambda: dict(q=nn.Linear(6, 4), k=nn.Linear(6, 4), v=nn.Linear(6, 4), features=torch.randn(4, 5)))
def performer(m: Net, x: Tensor) -> Tensor:
    """Attention through positive random features."""
    made = (torch.exp(y @ m.features - y.square().sum(-1, keepdim=True) * 0.5) + 0.001 for y in (part(x) for part in (m.q, m.k)))
    q, k, v = *made, m.v(x)
    kept = k.transpose(1, 2) @ v
    return q @ kept / (q @ k.sum(1).unsqueeze(-1))


@net(lambda: dict(encode=nn.Linear(6, 4), decode=nn.Linear(4, 6), codebook=torch.randn(7, 4)))
def vector_quantised(m: Net, x: Tensor) -> Tensor:
    """The nearest entry of a codebook that averages move, passed straight through."""
    z = m.encode(x)
    distance = (z.unsqueeze(1) - m.codebook.unsqueeze(0)).square().sum(-1)
    chosen = F.embedding(distance.argmin(-1), m.codebook)
    return m.decode(z + (chosen - z) * 0.5)


@net(lambda: dict(encode=nn.Linear(6, 4), codebook=torch.randn(5, 4)))
def soft_codebook(m: Net, x: Tensor) -> Tensor:
    """Shares of fixed codes by their distance."""
    z = m.encode(x)
    return torch.softmax(z @ m.codebook.t(), -1) @ m.codebook


@net(lambda: dict(vectors=torch.randn(9, 5), head=nn.Linear(5, 4)))
def fixed_embedding(m: Net, ids: Tensor) -> Tensor:
    """Word vectors that are not trained."""
    return m.head(F.embedding(ids, m.vectors).mean(1))


@net(lambda: dict(head=nn.Linear(6, 5), center=torch.linspace(-0.5, 0.5, 5).view(1, 5)))
def ema_center(m: Net, x: Tensor) -> Tensor:
    """DINO's centre is taken off before the softmax."""
    return torch.log_softmax((m.head(x) - m.center) / 0.5, -1)


def cases() -> Iterator[Case]:
    yield Case("image_mean_std", normalised, [real("x", 2, 3, 6, 6)])
    yield Case("sobel_and_gauss_filters", sobel, [real("x", 2, 3, 7, 7)])
    yield Case("blur_matrices", blur, [real("x", 2, 2, 6, 6)])
    yield Case("statistics_of_features", whitened, [real("x", 3, 5)])
    yield Case("detection_anchors", anchors, [real("x", 2, 3, 4, 4)])
    yield Case("distribution_focal", distribution_focal, [real("x", 2, 3, 3, 3)])
    yield Case("fourier_features", fourier_features, [real("x", 5, 2)])
    yield Case("mel_filter_bank", mel_filters, [real("x", 2, 24)], loss="cross_entropy")
    yield Case("fnet_dft_matrices", fnet, [real("x", 2, 6, 8)])
    yield Case("performer_features", performer, [real("x", 2, 5, 6)])
    yield Case("vq_codebook", vector_quantised, [real("x", 3, 6)])
    yield Case("soft_codebook", soft_codebook, [real("x", 3, 6)])
    yield Case("fixed_embedding", fixed_embedding, [tokens("ids", 3, 4, below=9)], loss="cross_entropy")
    yield Case("dino_center", ema_center, [real("x", 3, 6)])
