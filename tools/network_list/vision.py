"""Image networks missing in torchvision: attention of channels, cheap blocks, detectors."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from net import Net, function_net, net

from .framework import (Network, residual, conv_norm, floats, mlp, pooled_head, separable)

SMALL = floats((3, 64, 64))


@net(lambda channels: dict(layers=nn.Sequential(*mlp(channels, channels // 4, channels), nn.Sigmoid())))
def squeeze_excite(m: Net, x: Tensor) -> Tensor:
    """Channels scaled by two layers applied to their means (Hu et al. 2018)."""
    return x * m.layers(x.mean((2, 3)))[:, :, None, None]


@net(lambda channels: dict(layers=mlp(channels, channels // 4, channels), conv=nn.Conv2d(2, 1, 7, padding=3)))
def cbam(m: Net, x: Tensor) -> Tensor:
    """Channels, then positions, scaled by means and maxima (Woo et al. 2018)."""
    both = m.layers(x.mean((2, 3))) + m.layers(x.amax((2, 3)))
    x = x * torch.sigmoid(both)[:, :, None, None]
    maps = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True).values], 1)
    return x * torch.sigmoid(m.conv(maps))


@net(lambda: dict(conv=nn.Conv1d(1, 1, 3, padding=1, bias=False)))
def eca(m: Net, x: Tensor) -> Tensor:
    """Channels scaled by a convolution along them (Wang et al. 2020)."""
    means = F.adaptive_avg_pool2d(x, 1).squeeze(-1).transpose(1, 2)
    return x * torch.sigmoid(m.conv(means)).transpose(1, 2).unsqueeze(-1)


def attended(attention: nn.Module) -> nn.Module:
    """A small residual network with `attention` in its block."""
    block = nn.Sequential(conv_norm(64, 64), conv_norm(64, 64, act=None), attention)
    stem = conv_norm(3, 64, 7, 2)
    return nn.Sequential(stem, residual(block), nn.ReLU(), conv_norm(64, 128, 3, 2), pooled_head(128, 10))


@net(lambda before, after: dict(
    primary=conv_norm(before, after // 2, 1), cheap=conv_norm(after // 2, after // 2, 3, groups=after // 2),
))  # fmt: skip
def ghost(m: Net, x: Tensor) -> Tensor:
    """Half of the channels from a convolution, half from cheap convolutions of these (Han et al. 2020)."""
    x = m.primary(x)
    return torch.cat([x, m.cheap(x)], 1)


def ghostnet() -> nn.Module:
    blocks = [residual(nn.Sequential(ghost(32, 96), ghost(96, 32))) for _ in range(3)]
    return nn.Sequential(conv_norm(3, 32, 3, 2), *blocks, pooled_head(32, 100))


def xception() -> nn.Module:
    """Chollet 2017 at an eighth of the width."""

    def block(before: int, after: int) -> nn.Module:
        inner = nn.Sequential(separable(before, after), separable(after, after), nn.MaxPool2d(3, 2, 1))
        return residual(inner, conv_norm(before, after, 1, 2, act=None))

    middle = [residual(nn.Sequential(*[separable(96, 96)] * 1)) for _ in range(3)]
    stem = [conv_norm(3, 16, 3, 2), block(16, 48), block(48, 96)]
    return nn.Sequential(*stem, *middle, separable(96, 256), pooled_head(256, 100))


@net(lambda *branches, join="cat": dict(branches=nn.ModuleList(branches), join=join))
def branches(m: Net, x: Tensor) -> Tensor:
    """Branches of one input, added, or concatenated along channels."""
    parts = [branch(x) for branch in m.branches]
    return torch.cat(parts, 1) if m.join == "cat" else torch.stack(parts).sum(0)


def nasnet() -> nn.Module:
    """Two cells of separable convolutions, pooling and identities (Zoph et al. 2018)."""

    def cell(width: int) -> nn.Module:
        pooled = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        added = branches(separable(width, width, 1, 5), separable(width, width), join="add")
        return nn.Sequential(branches(added, residual(pooled), separable(width, width), nn.MaxPool2d(3, 1, 1)),
                             conv_norm(4 * width, width, 1))

    return nn.Sequential(conv_norm(3, 32, 3, 2), cell(32), cell(32), pooled_head(32, 10))


@net(lambda: dict(
    stem=conv_norm(3, 32, 3, 2), fine=conv_norm(32, 32), coarse=conv_norm(32, 64, 3, 2),
    down=conv_norm(32, 64, 3, 2, act=None), up=conv_norm(64, 32, 1, act=None), head=nn.Conv2d(96, 17, 1),
))  # fmt: skip
def high_resolution(m: Net, x: Tensor) -> Tensor:
    """Two parallel resolutions that exchange features (HRNet, Sun et al. 2019)."""
    x = m.stem(x)
    fine, coarse = m.fine(x), m.coarse(x)
    raised = F.interpolate(m.up(coarse), scale_factor=2.0, mode="nearest")
    fine, coarse = F.relu(fine + raised), F.relu(coarse + m.down(fine))
    both = [fine, F.interpolate(coarse, fine.shape[2:], mode="bilinear", align_corners=True)]
    return m.head(torch.cat(both, 1))


class BiSeNet(nn.Module):
    """A path of detail and one of context, fused by attention (Yu et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.detail = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2))
        self.context = nn.Sequential(self.detail[0], separable(32, 64, 2), separable(64, 64, 2))
        self.refine = squeeze_excite(64)
        self.fuse, self.weigh = conv_norm(128, 64, 1), squeeze_excite(64)
        self.head = nn.Conv2d(64, 19, 1)

    def forward(self, x: Tensor) -> Tensor:
        detail, context = self.detail(x), self.refine(self.context(x))
        context = F.interpolate(context, scale_factor=2, mode="bilinear", align_corners=False)
        fused = self.fuse(torch.cat([detail, context], 1))
        fused = fused + self.weigh(fused)
        return F.interpolate(self.head(fused), scale_factor=4, mode="bilinear", align_corners=False)


@net(lambda width: dict(change=nn.Linear(width, width), gate=nn.Linear(width, width)))
def highway(m: Net, x: Tensor) -> Tensor:
    """Layers with gates that forward their input (Srivastava et al. 2015)."""
    gate = torch.sigmoid(m.gate(x))
    return gate * F.relu(m.change(x)) + (1 - gate) * x


def conv_mixer() -> nn.Module:
    """Patches are all you need (Trockman and Kolter 2022)."""

    def block() -> list[nn.Module]:
        depthwise = nn.Sequential(nn.Conv2d(96, 96, 7, groups=96, padding=3), nn.GELU(), nn.BatchNorm2d(96))
        return [residual(depthwise), nn.Conv2d(96, 96, 1), nn.GELU(), nn.BatchNorm2d(96)]

    stem = [nn.Conv2d(3, 96, 4, 4), nn.GELU(), nn.BatchNorm2d(96)]
    return nn.Sequential(*stem, *block(), *block(), *block(), pooled_head(96, 10))


class YoloTiny(nn.Module):
    """YOLO v3 tiny (Redmon and Farhadi 2018), a quarter as wide: two scales of boxes."""

    def __init__(self) -> None:
        super().__init__()

        def leaky() -> nn.Module:
            return nn.LeakyReLU(0.1)

        widths = [3, 4, 8, 16, 32, 64]
        pairs = zip(widths, widths[1:])
        layers = [nn.Sequential(conv_norm(a, b, act=leaky), nn.MaxPool2d(2)) for a, b in pairs]
        self.fine = nn.Sequential(*layers[:4], conv_norm(32, 64, act=leaky))
        pad = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.MaxPool2d(2, 1))
        self.coarse = nn.Sequential(nn.MaxPool2d(2), conv_norm(64, 128, act=leaky), pad, conv_norm(128, 64, 1))
        self.up = nn.Sequential(conv_norm(64, 32, 1, act=leaky), nn.Upsample(scale_factor=2))
        self.heads = nn.ModuleList([nn.Conv2d(64, 255, 1), nn.Conv2d(96, 255, 1)])

    def forward(self, x: Tensor) -> list[Tensor]:
        fine = self.fine(x)
        coarse = self.coarse(fine)
        return [self.heads[0](coarse), self.heads[1](torch.cat([self.up(coarse), fine], 1))]


class CrossStage(nn.Module):
    """The C2f block of YOLO v8: the results of all bottlenecks are concatenated."""

    def __init__(self, before: int, after: int, repeats: int) -> None:
        super().__init__()
        half = after // 2
        self.enter = conv_norm(before, after, 1, act=nn.SiLU)
        bottleneck = [conv_norm(half, half, act=nn.SiLU) for _ in range(2 * repeats)]
        pairs = zip(bottleneck[::2], bottleneck[1::2])
        self.blocks = nn.ModuleList(residual(nn.Sequential(*pair)) for pair in pairs)
        self.leave = conv_norm((2 + repeats) * half, after, 1, act=nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.leave(torch.cat(parts, 1))


@net(lambda width: dict(
    enter=conv_norm(width, width // 2, 1), leave=conv_norm(2 * width, width, 1), pool=nn.MaxPool2d(5, 1, 2),
))  # fmt: skip
def pooling(m: Net, x: Tensor) -> Tensor:
    """SPPF: three chained poolings."""
    parts = [m.enter(x)]
    for _ in range(3):
        parts.append(m.pool(parts[-1]))
    return m.leave(torch.cat(parts, 1))


class YoloV8(nn.Module):
    """Backbone, pyramid and decoupled head with a distribution over distances."""

    def __init__(self) -> None:
        super().__init__()
        silu = nn.SiLU
        self.stem = nn.Sequential(conv_norm(3, 16, 3, 2, act=silu), conv_norm(16, 32, 3, 2, act=silu))
        self.fine = nn.Sequential(CrossStage(32, 32, 1), conv_norm(32, 64, 3, 2, act=silu), CrossStage(64, 64, 2))
        self.coarse = nn.Sequential(conv_norm(64, 128, 3, 2, act=silu), CrossStage(128, 128, 1), pooling(128))
        self.up, self.merge = nn.Upsample(scale_factor=2), CrossStage(192, 64, 1)
        self.boxes, self.classes = nn.Conv2d(64, 64, 1), nn.Conv2d(64, 80, 1)
        self.register_buffer("bins", torch.arange(16.0).view(1, 16, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.fine(self.stem(x))
        merged = self.merge(torch.cat([self.up(self.coarse(fine)), fine], 1))
        distances = self.boxes(merged).flatten(2).view(-1, 4, 16, 64).transpose(1, 2)
        boxes = (distances.softmax(1) * self.bins).sum(1)
        return boxes, self.classes(merged).sigmoid()


def yolo_v5_focus() -> nn.Module:
    """YOLO v5's first layers: pixels of a square become channels by slices."""

    def focus(x: Tensor) -> Tensor:
        return torch.cat([x[..., i::2, j::2] for j in range(2) for i in range(2)], 1)

    layers = [function_net(focus), conv_norm(12, 32, act=nn.SiLU), conv_norm(32, 64, 3, 2, act=nn.SiLU)]
    return nn.Sequential(*layers, CrossStage(64, 64, 2), pooling(64), nn.Conv2d(64, 255, 1))


class CenterNet(nn.Module):
    """Objects as points: a map of centres, sizes, offsets (Zhou et al. 2019)."""

    def __init__(self) -> None:
        super().__init__()
        down = [conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2), conv_norm(64, 128, 3, 2)]
        up = nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False)
        self.body = nn.Sequential(*down, up, nn.BatchNorm2d(64), nn.ReLU())
        self.heads = nn.ModuleList(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                                                 nn.Conv2d(64, channels, 1)) for channels in (80, 2, 2))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.body(x)
        centres, *rest = [head(x) for head in self.heads]
        return [centres.sigmoid().clamp(1e-4, 1 - 1e-4), *rest]


NETWORKS: dict[str, Network] = {
    "se_resnet_small": Network(lambda: attended(squeeze_excite(64)), SMALL),
    "cbam_resnet_small": Network(lambda: attended(cbam(64)), SMALL),
    "eca_resnet_small": Network(lambda: attended(eca()), SMALL), "ghostnet_small": Network(ghostnet, SMALL),
    "xception_small": Network(xception, SMALL), "nasnet_cells": Network(nasnet, SMALL),
    "hrnet_small": Network(high_resolution, SMALL, "mse"), "bisenet": Network(BiSeNet, SMALL),
    "highway_network": Network(lambda: nn.Sequential(nn.Linear(784, 50), *(highway(50) for _ in range(8)),
                                                     nn.Linear(50, 10)), floats((784,))),
    "convmixer": Network(conv_mixer, SMALL), "yolo_v3_tiny": Network(YoloTiny, floats((3, 128, 128)), "none"),
    "yolo_v5_focus": Network(yolo_v5_focus, SMALL, "mse"),
    "yolo_v8_small": Network(YoloV8, floats((3, 64, 64)), "none"), "centernet": Network(CenterNet, SMALL, "none")}
