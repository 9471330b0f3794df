"""Convolutions of all kinds, paddings, shuffles, normalisations and activations around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real

IMAGE = [real("x", 2, 3, 6, 6)]


def cases() -> Iterator[Case]:
    yield from paddings()
    yield from geometries()
    yield from rearranged()
    yield from normalised()
    yield from activated()
    yield from networks()


class Chain(nn.Module):
    """Modules and functions one after the other."""

    def __init__(self, *parts: nn.Module | Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.parts = parts
        self.layers = nn.ModuleList(part for part in parts if isinstance(part, nn.Module))

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x


# --- Paddings --------------------------------------------------------------------------------


def circular(x: Tensor) -> Tensor:
    """Around both axes; what PyTorch 1.13 writes for its own circular padding is off by one."""
    x = torch.cat([x[..., -1:], x, x[..., :1]], -1)
    return torch.cat([x[..., -1:, :], x, x[..., :1, :]], -2)


def paddings() -> Iterator[Case]:
    for mode in ("reflect", "replicate"):
        yield Case(
            f"conv_padding_{mode}",
            lambda mode=mode: Chain(
                nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1, padding_mode=mode)
            ),
            IMAGE,
            tags=["padding"],
            steps="adam" if mode == "reflect" else "",
        )
    for name, pad in (
        ("pad_constant", lambda x: F.pad(x, (1, 2, 2, 0))),
        ("pad_reflect", lambda x: F.pad(x, (1, 2, 2, 0), mode="reflect")),
        ("pad_replicate", lambda x: F.pad(x, (1, 2, 2, 0), mode="replicate")),
        ("pad_circular", circular),
    ):
        yield Case(
            name,
            lambda pad=pad: Chain(nn.Conv2d(3, 4, 1), pad, nn.Tanh(), nn.Conv2d(4, 2, 3)),
            IMAGE,
            tags=["padding"],
        )
    yield Case(
        "conv1d_causal", lambda: Chain(lambda x: F.pad(x, (4, 0)), nn.Conv1d(3, 5, 3, dilation=2)), [real("x", 2, 3, 7)]
    )
    yield Case("crop", lambda: Chain(nn.Conv2d(3, 4, 3, padding=1), lambda x: F.pad(x, (-1, -1, -1, -1))), IMAGE)


# --- Geometries ------------------------------------------------------------------------------


def geometries() -> Iterator[Case]:
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
            lambda kind=kind, sizes=sizes, options=options: Chain(
                nn.Conv2d(3, 6, 3), nn.ReLU(), kind(*sizes, **options)
            ),
            IMAGE,
            steps="momentum" if "output_padding" in name else "",
        )
    yield Case("conv3d", lambda: Chain(nn.Conv3d(2, 3, 2), nn.ELU(), nn.Conv3d(3, 2, 1)), [real("x", 2, 2, 3, 4, 4)])
    yield Case(
        "conv1d_transposed",
        lambda: Chain(nn.Conv1d(3, 4, 3), nn.Tanh(), nn.ConvTranspose1d(4, 3, 4, stride=2)),
        [real("x", 2, 3, 8)],
    )


# --- Rearranged ------------------------------------------------------------------------------


class Deformed(nn.Module):
    """Every channel shifted another way."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 1)
        self.second = nn.Conv2d(4, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.first(x).chunk(4, 1)
        moved = [torch.roll(part, shift, (2, 3)) for part, shift in zip(parts, [(1, 0), (-1, 0), (0, 1), (0, -1)])]
        return self.second(torch.cat(moved, 1))


class ChannelShuffle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 1)
        self.second = nn.Conv2d(6, 6, 3, padding=1, groups=3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        batch, channels, height, width = x.shape
        x = x.view(batch, 2, 3, height, width).transpose(1, 2).reshape(batch, channels, height, width)
        return self.second(x)


class Unfolded(nn.Module):
    """Patches as columns, and back."""

    def __init__(self, fold: bool) -> None:
        super().__init__()
        self.fold = fold
        self.conv = nn.Conv2d(3, 4, 1)
        self.mix = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = F.unfold(self.conv(x), 2, stride=2).transpose(1, 2)
        x = torch.relu(self.mix(x))
        if not self.fold:
            return x
        patches = x.view(x.shape[0], 3, 3, 4, 2, 2).permute(0, 3, 1, 4, 2, 5)
        return patches.reshape(x.shape[0], 4, 6, 6)


def rearranged() -> Iterator[Case]:
    yield Case(
        "pixel_shuffle", lambda: Chain(nn.Conv2d(3, 8, 3), nn.PixelShuffle(2), nn.PReLU(2), nn.Conv2d(2, 3, 1)), IMAGE
    )
    yield Case(
        "pixel_unshuffle", lambda: Chain(nn.Conv2d(3, 2, 1), nn.PixelUnshuffle(2), nn.Conv2d(8, 3, 1)), IMAGE
    )
    yield Case("shifted_channels", Deformed, IMAGE)
    yield Case("channel_shuffle", ChannelShuffle, IMAGE)
    yield Case("unfold", lambda: Unfolded(False), IMAGE)
    yield Case("unfold_fold", lambda: Unfolded(True), IMAGE)
    for mode in ("nearest", "bilinear"):
        align = {} if mode == "nearest" else {"align_corners": False}
        yield Case(
            f"upsample_{mode}",
            lambda mode=mode, align=align: Chain(
                nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode=mode, **align), nn.Conv2d(4, 2, 3)
            ),
            IMAGE,
        )


# --- Normalised ------------------------------------------------------------------------------


def normalised() -> Iterator[Case]:
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
            lambda norm=norm: Chain(nn.Conv2d(3, 4, 3), norm(), nn.ReLU(), nn.Conv2d(4, 3, 1)),
            IMAGE,
            steps="adam" if name.startswith("batch_norm") else "",
            tags=["normalisation"],
        )


# --- Activated -------------------------------------------------------------------------------


def activated() -> Iterator[Case]:
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
            f"activation_{name}",
            lambda function=function, width=width: Chain(nn.Conv2d(3, 4, 3), function, nn.Conv2d(width, 2, 1)),
            IMAGE,
            tags=["activation"],
        )


# --- Networks --------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(4)
        self.skip = nn.Conv2d(3, 4, 1, stride=2, bias=False)
        self.skip_norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.second_norm(self.second(F.relu(self.first_norm(self.first(x)))))
        return self.head(F.relu(y + self.skip_norm(self.skip(x))).mean((2, 3)))


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return x


class Inverted(nn.Module):
    """An inverted residual of MobileNet v3."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Conv2d(4, 8, 1, bias=False)
        self.up_norm = nn.BatchNorm2d(8)
        self.middle = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.middle_norm = nn.BatchNorm2d(8)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1))
        self.down = nn.Conv2d(8, 4, 1, bias=False)
        self.down_norm = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.up_norm(self.up(x)))
        y = F.hardswish(self.middle_norm(self.middle(y)))
        return x + self.down_norm(self.down(y * F.hardsigmoid(self.gate(y))))


class DropPath(nn.Module):
    """Residual branches that are dropped with a probability, here none; and dropout of features."""

    def __init__(self, dropped: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.drop = nn.Dropout(dropped)
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(F.relu(self.conv(x)))
        return self.head(self.drop(x.mean((2, 3))))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(2, 4, 3, padding=1)
        self.deep = nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.leave = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.enter(x))
        y = self.up(F.relu(self.deep(F.max_pool2d(x, 2))))
        return self.leave(torch.cat([x, y], 1))


def networks() -> Iterator[Case]:
    yield Case("residual_block", Residual, IMAGE, loss="cross_entropy", steps="momentum")
    yield Case("dense_block", Dense, IMAGE)
    yield Case("inverted_residual", Inverted, [real("x", 2, 4, 5, 5)], steps="adam")
    yield Case("dropout", lambda: DropPath(0.1), IMAGE, compare=False, tags=["random"])
    yield Case("dropout_of_nothing", lambda: DropPath(0.0), IMAGE)
    yield Case("unet", UNet, [real("x", 2, 2, 6, 6)], loss="cross_entropy", steps="adam")
    yield Case(
        "pooling_variety",
        lambda: Chain(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(4, 4, 1),
            nn.AvgPool2d(2, stride=1),
            nn.AdaptiveMaxPool2d(1),
        ),
        IMAGE,
    )
