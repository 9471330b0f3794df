"""Images read between their pixels, regions, remainders."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from training_cases.framework import Case, real


def cases() -> Iterator[Case]:
    yield from grids()
    yield from regions()
    yield from periodic()


# --- Grids -----------------------------------------------------------------------------------


class SpatialTransformer(nn.Module):
    """Learns where to look before it classifies."""

    def __init__(self, mode: str = "bilinear", padding: str = "zeros") -> None:
        super().__init__()
        self.mode, self.padding = mode, padding
        self.locate = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 6 * 6, 6)
        )
        self.classify = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 4))
        self.register_buffer("pixels", torch.linspace(-0.9, 0.9, 6))

    def forward(self, x: Tensor) -> Tensor:
        matrix = self.locate(x).view(-1, 2, 3)
        rows = self.pixels[:, None].expand(6, 6)
        points = torch.stack([rows.t(), rows, torch.ones_like(rows)], -1).view(1, 36, 3)
        grid = (points @ matrix.transpose(1, 2)).view(-1, 6, 6, 2)
        return self.classify(F.grid_sample(x, grid, self.mode, self.padding, align_corners=False))


class Warp(nn.Module):
    """Features of one image where the flow between two points, beside those of the other."""

    def __init__(self, padding: str) -> None:
        super().__init__()
        self.padding = padding
        self.features = nn.Conv2d(2, 3, 3, padding=1)
        self.flow = nn.Conv2d(6, 2, 3, padding=1)
        self.head = nn.Conv2d(6, 2, 1)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        before, after = F.relu(self.features(before)), F.relu(self.features(after))
        places = torch.tanh(self.flow(torch.cat([before, after], 1))).permute(0, 2, 3, 1)
        warped = F.grid_sample(after, places, padding_mode=self.padding, align_corners=True)
        return self.head(torch.cat([before, warped], 1))


class DeformableAttention(nn.Module):
    """Deformable DETR on one level: every query reads a few places of each head's values."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Linear(8, 8)
        self.places = nn.Linear(8, 2 * 3 * 2)
        self.weights = nn.Linear(8, 2 * 3)
        self.out = nn.Linear(8, 8)

    def forward(self, query: Tensor, memory: Tensor, reference: Tensor) -> Tensor:
        batch, count, _ = query.shape
        value = self.value(memory).view(batch, 5, 4, 2, 4).permute(0, 3, 4, 1, 2).reshape(batch * 2, 4, 5, 4)
        moved = self.places(query).view(batch, count, 2, 3, 2)
        places = 2.0 * (reference[:, :, None, None] + 0.1 * moved) - 1.0
        grid = places.transpose(1, 2).flatten(0, 1)
        sampled = F.grid_sample(value, grid, padding_mode="zeros", align_corners=False)
        weights = self.weights(query).view(batch, count, 2, 3).softmax(-1)
        weights = weights.transpose(1, 2).reshape(batch * 2, 1, count, 3)
        mixed = (sampled * weights).sum(-1).view(batch, 8, count)
        return self.out(mixed.transpose(1, 2))


class Planes(nn.Module):
    """A radiance field's features: trained planes, read where points of a ray fall on them."""

    def __init__(self) -> None:
        super().__init__()
        self.planes = nn.Parameter(torch.zeros(3, 4, 5, 5))
        self.head = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, points: Tensor) -> Tensor:
        x, y, z = points.unbind(-1)
        places = torch.stack([torch.stack([x, y], -1), torch.stack([x, z], -1), torch.stack([y, z], -1)])
        found = F.grid_sample(self.planes, places[:, None], align_corners=True)
        return self.head(found.sum(0)[:, 0].t())


def grids() -> Iterator[Case]:
    image = [real("x", 2, 1, 8, 8)]
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Case(
            f"spatial_transformer_{mode}",
            lambda mode=mode: SpatialTransformer(mode),
            image,
            loss="cross_entropy",
            steps="adam" if mode == "bilinear" else "",
        )
    yield Case("spatial_transformer_border", lambda: SpatialTransformer("bilinear", "border"), image)
    for padding in ("border", "reflection"):
        yield Case(f"flow_warp_{padding}", lambda p=padding: Warp(p), [real("before", 2, 2, 5, 4), real("after", 2, 2, 5, 4)])
    yield Case(
        "deformable_attention",
        DeformableAttention,
        [real("query", 2, 3, 8), real("memory", 2, 20, 8), real("reference", 2, 3, 2, offset=0.5, scale=0.5)],
        steps="momentum",
    )
    yield Case("feature_planes", Planes, [real("points", 7, 3)])


# --- Regions ---------------------------------------------------------------------------------


class BoxHead(nn.Module):
    """The second stage of a detector. A file of opset 15 means what PyTorch 1.13 computes; it writes
    the same for opset 16, which takes it as aligned."""

    def __init__(self, samples: int, trained: bool = False) -> None:
        super().__init__()
        self.samples = samples
        self.stem = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(4 * 9, 6), nn.ReLU(), nn.Linear(6, 5))
        self.refine = nn.Linear(4, 4) if trained else None

    def forward(self, x: Tensor, boxes: Tensor) -> Tensor:
        if self.refine is not None:  # Which no gradient reaches.
            boxes = boxes + self.refine(boxes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regions = torchvision.ops.roi_align(self.stem(x), [boxes], 3, 0.5, self.samples)
        return self.head(regions.flatten(1))


def regions() -> Iterator[Case]:
    inputs = [real("x", 1, 2, 8, 7), real("boxes", 6, 4, offset=6.0, scale=6.0)]
    yield Case("box_head", lambda: BoxHead(2), inputs, opset=15, steps="momentum")
    yield Case("box_head_adaptive", lambda: BoxHead(-1), inputs, opset=15)
    yield Case("box_head_refined", lambda: BoxHead(1, trained=True), inputs, opset=15)


# --- Remainders ------------------------------------------------------------------------------


class Phases(nn.Module):
    """Time within a period that is trained."""

    def __init__(self, truncates: bool) -> None:
        super().__init__()
        self.truncates = truncates
        self.rate = nn.Linear(2, 5)
        self.period = nn.Parameter(torch.ones(5))
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        times = self.rate(x)
        period = 0.5 + self.period.square()
        times = torch.fmod(times, period) if self.truncates else torch.remainder(times, period)
        return self.head(times)


class LpPooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.pool = nn.LPPool2d(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(x))


def periodic() -> Iterator[Case]:
    for truncates in (False, True):
        name = "fmod" if truncates else "remainder"
        yield Case(f"phases_{name}", lambda t=truncates: Phases(t), [real("x", 4, 2, scale=3.0)])
    yield Case("pooling_power_average", LpPooled, [real("x", 2, 2, 6, 6)])
