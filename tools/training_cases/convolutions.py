"""Convolutions of all kinds, paddings, shuffles, normalisations and activations around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real

IMAGE = [real("x", 2, 3, 6, 6)]


@net(lambda *parts: dict(parts=parts, layers=nn.ModuleList(part for part in parts if isinstance(part, nn.Module))))
def chain(m: Net, x: Tensor) -> Tensor:
    """Modules and functions one after the other."""
    for part in m.parts:
        x = part(x)
    return x


def circular(x: Tensor) -> Tensor:
    """Around both axes; what PyTorch 1.13 writes for its own circular padding is off by one."""
    x = torch.cat([x[..., -1:], x, x[..., :1]], -1)
    return torch.cat([x[..., -1:, :], x, x[..., :1, :]], -2)


@net(lambda: dict(first=nn.Conv2d(3, 4, 1), second=nn.Conv2d(4, 3, 1)))
def deformed(m: Net, x: Tensor) -> Tensor:
    """Every channel shifted another way."""
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
    """Residual branches that are dropped with a probability, here none; and dropout of features."""
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


def cases() -> Iterator[Case]:
    for mode in ("reflect", "replicate"):
        yield Case(
            f"conv_padding_{mode}",
            lambda mode=mode: chain(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1, padding_mode=mode)),
            IMAGE,
        )
    for name, pad in (
        ("pad_constant", lambda x: F.pad(x, (1, 2, 2, 0))),
        ("pad_reflect", lambda x: F.pad(x, (1, 2, 2, 0), mode="reflect")),
        ("pad_replicate", lambda x: F.pad(x, (1, 2, 2, 0), mode="replicate")),
        ("pad_circular", circular),
    ):
        yield Case(name, lambda pad=pad: chain(nn.Conv2d(3, 4, 1), pad, nn.Tanh(), nn.Conv2d(4, 2, 3)), IMAGE)
    yield Case("conv1d_causal", lambda: chain(lambda x: F.pad(x, (4, 0)), nn.Conv1d(3, 5, 3, dilation=2)), [real("x", 2, 3, 7)])
    yield Case("crop", lambda: chain(nn.Conv2d(3, 4, 3, padding=1), lambda x: F.pad(x, (-1, -1, -1, -1))), IMAGE)
    made = {
        "conv_grouped_dilated": [nn.Conv2d, (6, 4, 3), {"groups": 2, "dilation": 2, "padding": 2}],
        "conv_depthwise_multiplier": [nn.Conv2d, (6, 12, 3), {"groups": 6, "stride": 2}],
        "conv_stride_leaves_rest": [nn.Conv2d, (6, 4, 2), {"stride": 3}],
        "conv_uneven": [nn.Conv2d, (6, 4, (1, 3)), {"padding": (0, 1), "stride": (2, 1)}],
        "conv_transposed_output_padding": [
            nn.ConvTranspose2d, (6, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1},
        ],
        "conv_transposed_grouped": [nn.ConvTranspose2d, (6, 4, 3), {"groups": 2, "dilation": 2}],
    }  # fmt: skip
    for name, (kind, sizes, options) in made.items():
        yield Case(
            name,
            lambda kind=kind, sizes=sizes, options=options: chain(nn.Conv2d(3, 6, 3), nn.ReLU(), kind(*sizes, **options)),
            IMAGE,
        )
    yield Case("conv3d", lambda: chain(nn.Conv3d(2, 3, 2), nn.ELU(), nn.Conv3d(3, 2, 1)), [real("x", 2, 2, 3, 4, 4)])
    yield Case(
        "conv1d_transposed", lambda: chain(nn.Conv1d(3, 4, 3), nn.Tanh(), nn.ConvTranspose1d(4, 3, 4, stride=2)), [real("x", 2, 3, 8)]
    )
    yield Case("pixel_shuffle", lambda: chain(nn.Conv2d(3, 8, 3), nn.PixelShuffle(2), nn.PReLU(2), nn.Conv2d(2, 3, 1)), IMAGE)
    yield Case("pixel_unshuffle", lambda: chain(nn.Conv2d(3, 2, 1), nn.PixelUnshuffle(2), nn.Conv2d(8, 3, 1)), IMAGE)
    yield Case("shifted_channels", deformed, IMAGE)
    yield Case("channel_shuffle", channel_shuffle, IMAGE)
    yield Case("unfold", lambda: unfolded(False), IMAGE)
    yield Case("unfold_fold", lambda: unfolded(True), IMAGE)
    for mode in ("nearest", "bilinear"):
        align = {} if mode == "nearest" else {"align_corners": False}
        yield Case(
            f"upsample_{mode}",
            lambda mode=mode, align=align: chain(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode=mode, **align), nn.Conv2d(4, 2, 3)),
            IMAGE,
        )
    made = {
        "batch_norm": lambda: nn.BatchNorm2d(4),
        "batch_norm_no_affine": lambda: nn.BatchNorm2d(4, affine=False),
        "batch_norm_no_statistics": lambda: nn.BatchNorm2d(4, track_running_stats=False),
        "batch_norm_momentum": lambda: nn.BatchNorm2d(4, eps=0.001, momentum=0.5),
        "group_norm": lambda: nn.GroupNorm(2, 4),
        "instance_norm": lambda: nn.InstanceNorm2d(4, affine=True),
        "instance_norm_no_affine": lambda: nn.InstanceNorm2d(4),
        "layer_norm_of_images": lambda: nn.LayerNorm([4, 4, 4]),
        "local_response_norm": lambda: nn.LocalResponseNorm(3, alpha=0.5),
    }
    for name, norm in made.items():
        yield Case(
            name,
            lambda norm=norm: chain(nn.Conv2d(3, 4, 3), norm(), nn.ReLU(), nn.Conv2d(4, 3, 1)),
            IMAGE,
        )
    made: dict[str, Callable[[Tensor], Tensor]] = {
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "mish": F.mish,
        "silu": F.silu,
        "softplus_beta": lambda x: F.softplus(x, beta=2.0),
        "hardswish": F.hardswish,
        "hardtanh": F.hardtanh,
        "relu6": F.relu6,
        "elu_alpha": lambda x: F.elu(x, alpha=0.5),
        "celu": lambda x: F.celu(x, alpha=0.5),
        "selu": F.selu,
        "logsigmoid": F.logsigmoid,
        "softsign": F.softsign,
        "tanhshrink": F.tanhshrink,
        "softshrink": lambda x: F.softshrink(x, 0.25),
        "glu": lambda x: F.glu(x, 1),
        "squared_relu": lambda x: F.relu(x).square(),
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
        "clamped": lambda x: x.clamp(-0.5, 0.75),
        "maxout": lambda x: x.view(x.shape[0], 2, 2, *x.shape[2:]).max(1)[0],
    }
    for name, function in made.items():
        width = 2 if name in ("glu", "maxout") else 4
        yield Case(
            f"activation_{name}", lambda function=function, width=width: chain(nn.Conv2d(3, 4, 3), function, nn.Conv2d(width, 2, 1)), IMAGE
        )
    yield Case("residual_block", residual, IMAGE, loss="cross_entropy")
    yield Case("dense_block", dense, IMAGE)
    yield Case("inverted_residual", inverted, [real("x", 2, 4, 5, 5)])
    yield Case("dropout", lambda: drop_path(0.1), IMAGE, compare=False)
    yield Case("dropout_of_nothing", lambda: drop_path(0.0), IMAGE)
    yield Case("unet", unet, [real("x", 2, 2, 6, 6)], loss="cross_entropy")
    yield Case(
        "pooling_variety",
        lambda: chain(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(4, 4, 1),
            nn.AvgPool2d(2, stride=1),
            nn.AdaptiveMaxPool2d(1),
        ),
        IMAGE,
    )
