"""Images read between their pixels, regions, remainders."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, zeros


@net(lambda mode="bilinear", padding="zeros": dict(
    mode=mode, padding=padding, locate=nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 6 * 6, 6)),
    classify=nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 4)),
    pixels=torch.linspace(-0.9, 0.9, 6),
))  # fmt: skip
def spatial_transformer(m: Net, x: Tensor) -> Tensor:
    """Learns where to look before it classifies."""
    matrix = m.locate(x).view(-1, 2, 3)
    rows = m.pixels[:, None].expand(6, 6)
    points = torch.stack([rows.t(), rows, torch.ones_like(rows)], -1).view(1, 36, 3)
    grid = (points @ matrix.transpose(1, 2)).view(-1, 6, 6, 2)
    return m.classify(F.grid_sample(x, grid, m.mode, m.padding, align_corners=False))


@net(lambda padding: dict(
    padding=padding, features=nn.Conv2d(2, 3, 3, padding=1), flow=nn.Conv2d(6, 2, 3, padding=1), head=nn.Conv2d(6, 2, 1),
))  # fmt: skip
def warp(m: Net, before: Tensor, after: Tensor) -> Tensor:
    """Features of one image where the flow between two points, beside those of the other."""
    before, after = F.relu(m.features(before)), F.relu(m.features(after))
    places = torch.tanh(m.flow(torch.cat([before, after], 1))).permute(0, 2, 3, 1)
    warped = F.grid_sample(after, places, padding_mode=m.padding, align_corners=True)
    return m.head(torch.cat([before, warped], 1))


@net(lambda: dict(value=nn.Linear(8, 8), places=nn.Linear(8, 2 * 3 * 2), weights=nn.Linear(8, 2 * 3), out=nn.Linear(8, 8)))
def deformable_attention(m: Net, query: Tensor, memory: Tensor, reference: Tensor) -> Tensor:
    """Deformable DETR on one level: every query reads a few places of each head's values."""
    batch, count, _ = query.shape
    value = m.value(memory).view(batch, 5, 4, 2, 4).permute(0, 3, 4, 1, 2).reshape(batch * 2, 4, 5, 4)
    moved = m.places(query).view(batch, count, 2, 3, 2)
    places = 2.0 * (reference[:, :, None, None] + 0.1 * moved) - 1.0
    grid = places.transpose(1, 2).flatten(0, 1)
    sampled = F.grid_sample(value, grid, padding_mode="zeros", align_corners=False)
    weights = m.weights(query).view(batch, count, 2, 3).softmax(-1)
    weights = weights.transpose(1, 2).reshape(batch * 2, 1, count, 3)
    mixed = (sampled * weights).sum(-1).view(batch, 8, count)
    return m.out(mixed.transpose(1, 2))


@net(lambda: dict(planes=zeros(3, 4, 5, 5), head=nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))))
def planes(m: Net, points: Tensor) -> Tensor:
    """A radiance field's features: trained planes, read where points of a ray fall on them."""
    x, y, z = points.unbind(-1)
    places = torch.stack([torch.stack([x, y], -1), torch.stack([x, z], -1), torch.stack([y, z], -1)])
    found = F.grid_sample(m.planes, places[:, None], align_corners=True)
    return m.head(found.sum(0)[:, 0].t())


@net(lambda samples, trained=False: dict(
    samples=samples, stem=nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU()),
    head=nn.Sequential(nn.Linear(4 * 9, 6), nn.ReLU(), nn.Linear(6, 5)), refine=nn.Linear(4, 4) if trained else None,
))  # fmt: skip
def box_head(m: Net, x: Tensor, boxes: Tensor) -> Tensor:
    """The second stage of a detector. A file of opset 15 means what PyTorch 1.13 computes; it writes
    the same for opset 16, which takes it as aligned."""
    if m.refine is not None:  # Which no gradient reaches.
        boxes = boxes + m.refine(boxes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regions = torchvision.ops.roi_align(m.stem(x), [boxes], 3, 0.5, m.samples)
    return m.head(regions.flatten(1))


@net(lambda truncates: dict(truncates=truncates, rate=nn.Linear(2, 5), period=nn.Parameter(torch.ones(5)), head=nn.Linear(5, 3)))
def phases(m: Net, x: Tensor) -> Tensor:
    """Time within a period that is trained."""
    times = m.rate(x)
    period = 0.5 + m.period.square()
    times = torch.fmod(times, period) if m.truncates else torch.remainder(times, period)
    return m.head(times)


@net(lambda: dict(conv=nn.Conv2d(2, 3, 3), pool=nn.LPPool2d(2, 2)))
def lp_pooled(m: Net, x: Tensor) -> Tensor:
    return m.pool(m.conv(x))


def cases() -> Iterator[Case]:
    image = [real("x", 2, 1, 8, 8)]
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Case(
            f"spatial_transformer_{mode}",
            lambda mode=mode: spatial_transformer(mode),
            image,
            loss="cross_entropy",
        )
    yield Case("spatial_transformer_border", lambda: spatial_transformer("bilinear", "border"), image)
    for padding in ("border", "reflection"):
        yield Case(f"flow_warp_{padding}", lambda p=padding: warp(p), [real("before", 2, 2, 5, 4), real("after", 2, 2, 5, 4)])
    yield Case(
        "deformable_attention",
        deformable_attention,
        [real("query", 2, 3, 8), real("memory", 2, 20, 8), real("reference", 2, 3, 2, offset=0.5, scale=0.5)],
    )
    yield Case("feature_planes", planes, [real("points", 7, 3)])
    inputs = [real("x", 1, 2, 8, 7), real("boxes", 6, 4, offset=6.0, scale=6.0)]
    yield Case("box_head", lambda: box_head(2), inputs, opset=15)
    yield Case("box_head_adaptive", lambda: box_head(-1), inputs, opset=15)
    yield Case("box_head_refined", lambda: box_head(1, trained=True), inputs, opset=15)
    for truncates in (False, True):
        name = "fmod" if truncates else "remainder"
        yield Case(f"phases_{name}", lambda t=truncates: phases(t), [real("x", 4, 2, scale=3.0)])
    yield Case("pooling_power_average", lp_pooled, [real("x", 2, 2, 6, 6)])
