"""Images to images: segmentation, volumes, super-resolution."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Lambda, Network, Residual, conv_norm, floats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_networks import UNet, two_convolutions  # noqa: E402

IMAGE = floats((3, 64, 64))


class NestedUNet(nn.Module):
    """U-Net++ (Zhou et al. 2018): the skips are convolved, too; two levels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter = two_convolutions(3, width)
        self.down1, self.down2 = two_convolutions(width, 2 * width), two_convolutions(2 * width, 4 * width)
        self.skip = two_convolutions(3 * width, width)
        self.up1 = two_convolutions(6 * width, 2 * width)
        self.up0 = two_convolutions(4 * width, width)
        self.heads = nn.ModuleList(nn.Conv2d(width, 2, 1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        def raised(y: Tensor) -> Tensor:
            return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True)

        fine = self.enter(x)
        middle = self.down1(F.max_pool2d(fine, 2))
        coarse = self.down2(F.max_pool2d(middle, 2))
        skip = self.skip(torch.cat([fine, raised(middle)], 1))
        middle = self.up1(torch.cat([middle, raised(coarse)], 1))
        last = self.up0(torch.cat([fine, skip, raised(middle)], 1))
        return (self.heads[0](skip) + self.heads[1](last)) / 2


class GatedUNet(nn.Module):
    """Attention U-Net (Oktay et al. 2018): what comes down is weighed by what is below."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.down = nn.ModuleList([two_convolutions(3, width), two_convolutions(width, 2 * width)])
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.of_gate, self.of_skip = conv_norm(width, 8, 1, act=None), conv_norm(width, 8, 1, act=None)
        self.weigh = nn.Sequential(nn.ReLU(), conv_norm(8, 1, 1, act=nn.Sigmoid))
        self.merge, self.head = two_convolutions(2 * width, width), nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.down[0](x)
        gate = self.up(self.down[1](F.max_pool2d(skip, 2)))
        skip = skip * self.weigh(self.of_gate(gate) + self.of_skip(skip))
        return self.head(self.merge(torch.cat([skip, gate], 1)))


class VNet(nn.Module):
    """Volumes, strided convolutions and PReLU (Milletari et al. 2016)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()

        def stage(channels: int) -> nn.Module:
            conv = nn.Conv3d(channels, channels, 5, padding=2)
            inner = nn.Sequential(conv, nn.BatchNorm3d(channels), nn.PReLU(channels))
            return Residual(inner)

        self.enter = nn.Conv3d(1, width, 1)
        self.fine, self.coarse = stage(width), stage(2 * width)
        self.down = nn.Sequential(nn.Conv3d(width, 2 * width, 2, 2), nn.PReLU(2 * width))
        self.up = nn.Sequential(nn.ConvTranspose3d(2 * width, width, 2, 2), nn.PReLU(width))
        self.merge, self.head = stage(2 * width), nn.Conv3d(2 * width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.fine(self.enter(x))
        raised = self.up(self.coarse(self.down(fine)))
        return self.head(self.merge(torch.cat([fine, raised], 1)))


class SegNet(nn.Module):
    """Max pooling whose places unpooling takes (Badrinarayanan et al. 2017), by scattering."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = conv_norm(3, 32), conv_norm(32, 32)
        self.head = nn.Conv2d(32, 12, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        pooled, places = F.max_pool2d(x, 2, return_indices=True)
        empty = torch.zeros_like(x).flatten(2)
        raised = empty.scatter(2, places.flatten(2), self.up(pooled).flatten(2))
        return self.head(raised.view_as(x))


class Aspp(nn.Module):
    """DeepLab's pyramid of dilated convolutions (Chen et al. 2017) upon a small backbone."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2))
        self.rates = nn.ModuleList(nn.Conv2d(64, 32, 3, padding=r, dilation=r) for r in (1, 6, 12))
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(64, 32, 1), nn.ReLU())
        self.head = nn.Sequential(conv_norm(128, 32, 1), nn.Conv2d(32, 21, 1))

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        x = self.body(x)
        pooled = F.interpolate(self.pooled(x), x.shape[-2:], mode="bilinear", align_corners=False)
        x = self.head(torch.cat([*(rate(x) for rate in self.rates), pooled], 1))
        return F.interpolate(x, size, mode="bilinear", align_corners=False)


def srcnn() -> nn.Module:
    """Dong et al. 2014: 9-1-5."""
    layers = [nn.Conv2d(1, 64, 9, padding=4), nn.ReLU(), nn.Conv2d(64, 32, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(32, 1, 5, padding=2))


def edsr() -> nn.Module:
    """Lim et al. 2017: residual blocks without normalisation, scaled; pixels shuffled."""

    def block() -> nn.Module:
        first, second = nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
        return Residual(nn.Sequential(first, nn.ReLU(), second, Lambda(lambda x: x * 0.1)))

    body = Residual(nn.Sequential(block(), block(), block(), nn.Conv2d(32, 32, 3, padding=1)))
    up = [nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2)]
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), body, *up, nn.Conv2d(32, 3, 3, padding=1))


def espcn() -> nn.Module:
    """Shi et al. 2016: everything at the low resolution."""
    layers = [nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*layers, nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


class HalfInstance(nn.Module):
    """HINet's block: one half of the channels normalised by instance."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.InstanceNorm2d(width // 2, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        one, other = torch.chunk(self.first(x), 2, dim=1)
        y = F.leaky_relu(torch.cat([self.norm(one), other], 1), 0.2)
        return x + F.leaky_relu(self.second(y), 0.2)


class Dncnn(nn.Module):
    """Denoising by what is to be taken away (Zhang et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        middle = [conv_norm(32, 32) for _ in range(5)]
        ends = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 1, 3, padding=1)
        self.layers = nn.Sequential(ends[0], nn.ReLU(), *middle, ends[1])

    def forward(self, x: Tensor) -> Tensor:
        return x - self.layers(x)


NETWORKS: dict[str, Network] = {
    "unet": Network(lambda: UNet(16, 3, 2, interpolate=False), IMAGE),
    "unet_bilinear": Network(lambda: UNet(16, 3, 2, interpolate=True), IMAGE, opset=13),
    "unet_plus_plus": Network(NestedUNet, IMAGE), "attention_unet": Network(GatedUNet, IMAGE),
    "vnet_3d": Network(VNet, floats((1, 16, 16, 16)), "bce_with_logits"), "segnet": Network(SegNet, IMAGE),
    "deeplab_aspp": Network(Aspp, IMAGE, batch=2), "srcnn": Network(srcnn, floats((1, 33, 33)), "mse"),
    "edsr": Network(edsr, floats((3, 24, 24)), "mse"), "espcn": Network(espcn, floats((1, 17, 17)), "mse"),
    "dncnn": Network(Dncnn, floats((1, 40, 40)), "mse"),
    "hinet_block": Network(lambda: nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), HalfInstance(32),
                                                 nn.Conv2d(32, 3, 1)), IMAGE, "mse")}
