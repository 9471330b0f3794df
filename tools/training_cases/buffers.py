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


class Sobel(nn.Module):
    """Trained features behind a fixed edge filter, and before a fixed blur."""

    def __init__(self) -> None:
        super().__init__()
        across = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        blur = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("sobel", torch.stack([across, across.t()]).unsqueeze(1))
        self.register_buffer("gauss", (blur[:, None] * blur[None, :] / 16.0).expand(4, 1, 3, 3).contiguous())
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        edges = F.conv2d(x.mean(1, keepdim=True), self.sobel, padding=1)
        return F.conv2d(torch.relu(self.conv(edges)), self.gauss, stride=2, padding=1, groups=4)


class BlurOutput(nn.Module):
    """Blur as a product with fixed matrices on both sides."""

    def __init__(self) -> None:
        super().__init__()
        matrix = torch.eye(6) * 0.5
        matrix[1:, :-1] += torch.eye(5) * 0.25
        self.register_buffer("blur", matrix)
        self.conv = nn.Conv2d(2, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.matmul(self.blur, torch.matmul(torch.tanh(self.conv(x)), self.blur.t()))


@net(
    lambda: dict(mean=torch.linspace(-1.0, 1.0, 6), scale=torch.linspace(0.5, 2.0, 6), temperature=torch.tensor(0.5), layer=nn.Linear(5, 6))
)
def whitened(m: Net, x: Tensor) -> Tensor:
    """Features shifted and scaled by statistics that were measured once."""
    return (m.layer(x) - m.mean) * m.scale / m.temperature


class Anchors(nn.Module):
    """Boxes are offsets from anchors, and a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 2 * 4, 1)
        self.register_buffer("anchors", torch.tensor([[1.0, 2.0], [3.0, 1.5]]).view(1, 2, 2, 1, 1))
        rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        self.register_buffer("grid", torch.stack([columns, rows]).view(1, 1, 2, 4, 4))

    def forward(self, x: Tensor) -> Tensor:
        made = self.head(x).view(x.shape[0], 2, 4, 4, 4)
        centre = torch.sigmoid(made[:, :, :2]) + self.grid
        size = torch.exp(made[:, :, 2:]) * self.anchors
        return torch.cat([centre, size], 2)


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


class MelFilters(nn.Module):
    """A learned spectrum through a fixed filter bank, and its logarithm."""

    def __init__(self) -> None:
        super().__init__()
        self.frame = nn.Conv1d(1, 8, 6, stride=3, bias=False)
        bank = torch.relu(1.0 - (torch.arange(8.0)[:, None] - torch.linspace(1.0, 6.0, 4)[None, :]).abs() / 2.0)
        self.register_buffer("bank", bank)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        power = self.frame(x.unsqueeze(1)).square().transpose(1, 2)
        return self.head(torch.log(power @ self.bank + 0.01).mean(1))


class FNet(nn.Module):
    """Mixing by the real part of two Fourier transforms, as products with fixed matrices."""

    def __init__(self) -> None:
        super().__init__()
        for name, count in (("tokens", 6), ("channels", 8)):
            angle = 2.0 * math.pi / count * torch.outer(torch.arange(float(count)), torch.arange(float(count)))
            self.register_buffer(f"{name}_cos", torch.cos(angle))
            self.register_buffer(f"{name}_sin", torch.sin(angle))
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.tokens_cos @ x @ self.channels_cos - self.tokens_sin @ x @ self.channels_sin
        x = self.norm(x + mixed)
        return x + self.down(F.gelu(self.up(x)))


class Performer(nn.Module):
    """Attention through positive random features."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(6, 4)
        self.k = nn.Linear(6, 4)
        self.v = nn.Linear(6, 4)
        self.register_buffer("features", torch.randn(4, 5))

    def phi(self, x: Tensor) -> Tensor:
        return torch.exp(x @ self.features - x.square().sum(-1, keepdim=True) * 0.5) + 0.001

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.phi(self.q(x)), self.phi(self.k(x)), self.v(x)
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
    yield Case("image_mean_std", normalised, [real("x", 2, 3, 6, 6)], steps="adam")
    yield Case("sobel_and_gauss_filters", Sobel, [real("x", 2, 3, 7, 7)])
    yield Case("blur_matrices", BlurOutput, [real("x", 2, 2, 6, 6)])
    yield Case("statistics_of_features", whitened, [real("x", 3, 5)], steps="momentum")
    yield Case("detection_anchors", Anchors, [real("x", 2, 3, 4, 4)], steps="adam")
    yield Case("distribution_focal", distribution_focal, [real("x", 2, 3, 3, 3)])
    yield Case("fourier_features", fourier_features, [real("x", 5, 2)])
    yield Case("mel_filter_bank", MelFilters, [real("x", 2, 24)], loss="cross_entropy")
    yield Case("fnet_dft_matrices", FNet, [real("x", 2, 6, 8)])
    yield Case("performer_features", Performer, [real("x", 2, 5, 6)])
    yield Case("vq_codebook", vector_quantised, [real("x", 3, 6)])
    yield Case("soft_codebook", soft_codebook, [real("x", 3, 6)], steps="adam")
    yield Case("fixed_embedding", fixed_embedding, [tokens("ids", 3, 4, below=9)], loss="cross_entropy")
    yield Case("dino_center", ema_center, [real("x", 3, 6)])
