"""Convolutions of all kinds, paddings, normalisations and activations; images sampled between their pixels."""

import warnings
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, net, real, zeros

IMAGE = [real("x", 2, 3, 6, 6)]


@net(lambda *parts: dict(parts=parts, layers=nn.ModuleList(part for part in parts if isinstance(part, nn.Module))))
def chain(m: Net, x: Tensor) -> Tensor:
    """Chains modules and functions."""
    for part in m.parts:
        x = part(x)
    return x


def circular(x: Tensor) -> Tensor:
    """Circular padding of both axes; PyTorch 1.13 exports its circular padding with an error of one element."""
    x = torch.cat([x[..., -1:], x, x[..., :1]], -1)
    return torch.cat([x[..., -1:, :], x, x[..., :1, :]], -2)


@net(lambda: dict(first=nn.Conv2d(3, 4, 1), second=nn.Conv2d(4, 3, 1)))
def deformed(m: Net, x: Tensor) -> Tensor:
    """Shifts every channel differently."""
    parts = m.first(x).chunk(4, 1)
    moved = [torch.roll(part, shift, (2, 3)) for part, shift in zip(parts, [(1, 0), (-1, 0), (0, 1), (0, -1)])]
    return m.second(torch.cat(moved, 1))


@net(lambda: dict(first=nn.Conv2d(3, 6, 1), second=nn.Conv2d(6, 6, 3, padding=1, groups=3)))
def channel_shuffle(m: Net, x: Tensor) -> Tensor:
    x = m.first(x)
    batch, channels, height, width = x.shape
    x = x.view(batch, 2, 3, height, width).transpose(1, 2).reshape(batch, channels, height, width)
    return m.second(x)


@net(lambda fold: dict(fold=fold, conv=nn.Conv2d(3, 4, 1), mix=nn.Linear(16, 16)))
def unfolded(m: Net, x: Tensor) -> Tensor:
    """Patches as columns, and back."""
    x = F.unfold(m.conv(x), 2, stride=2).transpose(1, 2)
    x = torch.relu(m.mix(x))
    if not m.fold:
        return x
    patches = x.view(x.shape[0], 3, 3, 4, 2, 2).permute(0, 3, 1, 4, 2, 5)
    return patches.reshape(x.shape[0], 4, 6, 6)


@net(lambda: dict(
    first=nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False), first_norm=nn.BatchNorm2d(4),
    second=nn.Conv2d(4, 4, 3, padding=1, bias=False), second_norm=nn.BatchNorm2d(4),
    skip=nn.Conv2d(3, 4, 1, stride=2, bias=False), skip_norm=nn.BatchNorm2d(4), head=nn.Linear(4, 5),
))  # fmt: skip
def residual(m: Net, x: Tensor) -> Tensor:
    y = m.second_norm(m.second(F.relu(m.first_norm(m.first(x)))))
    return m.head(F.relu(y + m.skip_norm(m.skip(x))).mean((2, 3)))


@net(lambda: dict(layers=nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(3))))
def dense(m: Net, x: Tensor) -> Tensor:
    for layer in m.layers:
        x = torch.cat([x, F.relu(layer(x))], 1)
    return x


@net(lambda: dict(
    up=nn.Conv2d(4, 8, 1, bias=False), up_norm=nn.BatchNorm2d(8), middle=nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
    middle_norm=nn.BatchNorm2d(8), gate=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1)),
    down=nn.Conv2d(8, 4, 1, bias=False), down_norm=nn.BatchNorm2d(4),
))  # fmt: skip
def inverted(m: Net, x: Tensor) -> Tensor:
    """An inverted residual of MobileNet v3."""
    y = F.hardswish(m.up_norm(m.up(x)))
    y = F.hardswish(m.middle_norm(m.middle(y)))
    return x + m.down_norm(m.down(y * F.hardsigmoid(m.gate(y))))


@net(lambda dropped: dict(conv=nn.Conv2d(3, 3, 3, padding=1), drop=nn.Dropout(dropped), head=nn.Linear(3, 4)))
def drop_path(m: Net, x: Tensor) -> Tensor:
    """Residual branches dropped with a probability, here zero, and dropout of features."""
    x = x + m.drop(F.relu(m.conv(x)))
    return m.head(m.drop(x.mean((2, 3))))


@net(lambda: dict(
    enter=nn.Conv2d(2, 4, 3, padding=1), deep=nn.Conv2d(4, 6, 3, padding=1), up=nn.ConvTranspose2d(6, 4, 2, stride=2),
    leave=nn.Conv2d(8, 3, 3, padding=1),
))  # fmt: skip
def unet(m: Net, x: Tensor) -> Tensor:
    x = F.relu(m.enter(x))
    y = m.up(F.relu(m.deep(F.max_pool2d(x, 2))))
    return m.leave(torch.cat([x, y], 1))


def paddings() -> Net:
    pads = (
        lambda x: F.pad(x, (1, 2, 2, 0)),
        lambda x: F.pad(x, (1, 2, 2, 0), mode="reflect"),
        lambda x: F.pad(x, (1, 2, 2, 0), mode="replicate"),
        lambda x: F.pad(x, (-1, -1, -1, -1)),
        circular,
        nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(4, 3, 3, padding=1, padding_mode="replicate"),
    )
    causal = chain(lambda x: F.pad(x.flatten(2), (4, 0)), nn.Conv1d(3, 5, 3, dilation=2))
    return beside(causal, *(chain(nn.Conv2d(3, 4, 1), pad, nn.Conv2d(3 if isinstance(pad, nn.Conv2d) else 4, 2, 3)) for pad in pads))


def geometries() -> Net:
    kinds = (
        nn.Conv2d(6, 4, 3, groups=2, dilation=2, padding=2),
        nn.Conv2d(6, 12, 3, groups=6, stride=2),
        nn.Conv2d(6, 4, 2, stride=3),
        nn.Conv2d(6, 4, (1, 3), padding=(0, 1), stride=(2, 1)),
        nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1),
        nn.ConvTranspose2d(6, 4, 3, groups=2, dilation=2),
        chain(lambda x: x.flatten(2), nn.ConvTranspose1d(6, 3, 4, stride=2)),
        chain(lambda x: x.view(-1, 2, 3, 4, 4), nn.Conv3d(2, 3, 2), nn.ELU(), nn.Conv3d(3, 2, 1)),
    )
    return beside(*(chain(nn.Conv2d(3, 6, 3), nn.ReLU(), kind) for kind in kinds))


def resampled() -> Net:
    return beside(
        chain(nn.Conv2d(3, 8, 3), nn.PixelShuffle(2), nn.PReLU(2), nn.Conv2d(2, 3, 1)),
        chain(nn.Conv2d(3, 2, 1), nn.PixelUnshuffle(2), nn.Conv2d(8, 3, 1)),
        chain(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(4, 2, 3)),
        chain(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(4, 2, 3)),
    )


def normalised() -> Net:
    norms = (
        nn.BatchNorm2d(4),
        nn.BatchNorm2d(4, affine=False),
        nn.BatchNorm2d(4, track_running_stats=False),
        nn.BatchNorm2d(4, eps=0.001, momentum=0.5),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4, affine=True),
        nn.InstanceNorm2d(4),
        nn.LayerNorm([4, 4, 4]),
        nn.LocalResponseNorm(3, alpha=0.5),
    )
    return beside(*(chain(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.Conv2d(4, 3, 1)) for norm in norms))


ACTIVATIONS: tuple[Callable[[Tensor], Tensor], ...] = (
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    F.mish,
    F.silu,
    lambda x: F.softplus(x, beta=2.0),
    F.hardswish,
    F.hardtanh,
    F.relu6,
    lambda x: F.elu(x, alpha=0.5),
    lambda x: F.celu(x, alpha=0.5),
    F.selu,
    F.logsigmoid,
    F.softsign,
    F.tanhshrink,
    lambda x: F.softshrink(x, 0.25),
    lambda x: F.glu(x, 1),
    lambda x: F.relu(x).square(),
    lambda x: x * torch.sigmoid(1.702 * x),
    lambda x: x.clamp(-0.5, 0.75),
    lambda x: x.view(x.shape[0], 2, 2, *x.shape[2:]).max(1)[0],
)


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
    """Features of one image at the places of a flow, concatenated with those of the other image."""
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
    """The second stage of a detector. A file of opset 15 has the meaning that PyTorch 1.13 computes. It writes
    the same nodes for opset 16, where they mean aligned regions."""
    if m.refine is not None:  # These weights receive no gradient.
        boxes = boxes + m.refine(boxes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regions = torchvision.ops.roi_align(m.stem(x), [boxes], 3, 0.5, m.samples)
    return m.head(regions.flatten(1))


@net(lambda truncates: dict(truncates=truncates, rate=nn.Linear(2, 5), period=nn.Parameter(torch.ones(5)), head=nn.Linear(5, 3)))
def phases(m: Net, x: Tensor) -> Tensor:
    """Time within a trained period."""
    times = m.rate(x)
    period = 0.5 + m.period.square()
    times = torch.fmod(times, period) if m.truncates else torch.remainder(times, period)
    return m.head(times)


@net(lambda: dict(conv=nn.Conv2d(2, 3, 3), pool=nn.LPPool2d(2, 2)))
def lp_pooled(m: Net, x: Tensor) -> Tensor:
    return m.pool(m.conv(x))


def pooled() -> Net:
    pools = nn.MaxPool2d(3, stride=2, padding=1), nn.Conv2d(4, 4, 1), nn.AvgPool2d(2, stride=1), nn.AdaptiveMaxPool2d(1)
    return chain(nn.Conv2d(3, 4, 3, padding=1), *pools)


def cases() -> Iterator[Case]:
    yield Case("paddings", paddings, IMAGE)
    yield Case("geometries", geometries, IMAGE)
    yield Case("resampled", resampled, IMAGE)
    yield Case("normalisations", normalised, IMAGE)
    yield Case("activations", lambda: beside(*(chain(nn.Conv2d(3, 4, 3), function) for function in ACTIVATIONS)), IMAGE)
    yield Case("shifted_channels", deformed, IMAGE)
    yield Case("channel_shuffle", channel_shuffle, IMAGE)
    yield Case("unfold", lambda: unfolded(False), IMAGE)
    yield Case("unfold_fold", lambda: unfolded(True), IMAGE)
    yield Case("residual_block", residual, IMAGE, loss="cross_entropy")
    yield Case("dense_block", dense, IMAGE)
    yield Case("inverted_residual", inverted, [real("x", 2, 4, 5, 5)])
    yield Case("dropout", lambda: drop_path(0.1), IMAGE, compare=False)
    yield Case("dropout_of_nothing", lambda: drop_path(0.0), IMAGE)
    yield Case("unet", unet, [real("x", 2, 2, 6, 6)], loss="cross_entropy")
    yield Case("pooling_variety", pooled, IMAGE)
    image = [real("x", 2, 1, 8, 8)]
    yield Case(
        "spatial_transformers", lambda: beside(*map(spatial_transformer, ("bilinear", "nearest", "bicubic"))), image, "cross_entropy"
    )
    yield Case("spatial_transformer_border", lambda: spatial_transformer("bilinear", "border"), image)
    yield Case("flow_warps", lambda: beside(warp("border"), warp("reflection")), [real("before", 2, 2, 5, 4), real("after", 2, 2, 5, 4)])
    yield Case(
        "deformable_attention", deformable_attention,
        [real("query", 2, 3, 8), real("memory", 2, 20, 8), real("reference", 2, 3, 2, offset=0.5, scale=0.5)],
    )  # fmt: skip
    yield Case("feature_planes", planes, [real("points", 7, 3)])
    inputs = [real("x", 1, 2, 8, 7), real("boxes", 6, 4, offset=6.0, scale=6.0)]
    yield Case("box_heads", lambda: beside(box_head(2), box_head(-1), box_head(1, trained=True)), inputs, opset=15)
    yield Case("phases", lambda: beside(phases(False), phases(True)), [real("x", 4, 2, scale=3.0)])
    yield Case("pooling_power_average", lp_pooled, [real("x", 2, 2, 6, 6)])
