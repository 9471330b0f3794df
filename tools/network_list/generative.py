"""Networks that generate: adversarial, autoencoding, diffusion."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Network, Residual, conv_norm, floats, mlp, together, tokens


def dcgan_discriminator() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for width in (16, 32, 64):
        layers += [nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width)]
        layers.append(nn.LeakyReLU(0.2, inplace=True))
    return nn.Sequential(*layers, nn.Conv2d(128, 1, 4, bias=False), nn.Flatten())


def srgan_generator() -> nn.Module:
    """Ledig et al. 2017, half as wide: PReLU with one slope, shuffled pixels."""

    def block() -> nn.Module:
        return Residual(nn.Sequential(conv_norm(32, 32, act=nn.PReLU), conv_norm(32, 32, act=None)))

    body = Residual(nn.Sequential(block(), block(), conv_norm(32, 32, act=None)))
    up = [nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()]
    ends = nn.Conv2d(3, 32, 9, padding=4), nn.Conv2d(32, 3, 9, padding=4)
    return nn.Sequential(ends[0], nn.PReLU(), body, *up, ends[1])


def srgan_discriminator() -> nn.Module:
    def leaky() -> nn.Module:
        return nn.LeakyReLU(0.2)

    layers = [conv_norm(3, 16, act=leaky), conv_norm(16, 32, 3, 2, act=leaky), conv_norm(32, 64, 3, 2, act=leaky)]
    ends = [nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, 128), leaky(), nn.Linear(128, 1)]
    return nn.Sequential(*layers, *ends)


def cyclegan_generator() -> nn.Module:
    """Zhu et al. 2017: reflected borders, instance normalisation; a quarter as wide."""

    def block() -> nn.Module:
        half = [nn.ReflectionPad2d(1), nn.Conv2d(64, 64, 3), nn.InstanceNorm2d(64)]
        other = [nn.ReflectionPad2d(1), nn.Conv2d(64, 64, 3), nn.InstanceNorm2d(64)]
        return Residual(nn.Sequential(*half, nn.ReLU(), *other))

    def norm(width: int) -> list[nn.Module]:
        return [nn.InstanceNorm2d(width), nn.ReLU()]

    layers = [nn.ReflectionPad2d(3), nn.Conv2d(3, 16, 7), *norm(16)]
    for width in (16, 32):
        layers += [nn.Conv2d(width, 2 * width, 3, 2, 1), *norm(2 * width)]
    layers += [block(), block()]
    for width in (64, 32):
        layers += [nn.ConvTranspose2d(width, width // 2, 3, 2, 1, output_padding=1), *norm(width // 2)]
    return nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(16, 3, 7), nn.Tanh())


class Pix2Pix(nn.Module):
    """Isola et al. 2017: a U-Net of strided convolutions with dropout on the way up."""

    def __init__(self) -> None:
        super().__init__()
        widths = [3, 16, 32, 64]
        self.down = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in ((64, 32), (64, 16), (32, 3)))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in (32, 16))

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for conv in self.down:
            x = conv(F.leaky_relu(x, 0.2))
            skips.append(x)
        for i in range(2):
            x = F.dropout(self.norms[i](self.up[i](F.relu(x))), 0.5, self.training)
            x = torch.cat([x, skips[1 - i]], 1)
        return torch.tanh(self.up[2](F.relu(x)))


def time_embedding(steps: Tensor, width: int) -> Tensor:
    """Sines and cosines of the step."""
    rates = torch.exp(torch.arange(width // 2, device=steps.device) * (-math.log(10000.0) / (width // 2)))
    angles = steps.to(torch.float32) * rates[None]
    return torch.cat([angles.sin(), angles.cos()], -1)


class TimeBlock(nn.Module):
    """A residual block that a step shifts and scales."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, before), nn.GroupNorm(8, after)
        self.conv1, self.conv2 = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(64, 2 * after)
        self.shortcut = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, 1)
        y = self.conv2(F.silu(self.norm2(y) * (1 + scale) + shift))
        return self.shortcut(x) + y


class CrossAttention(nn.Module):
    """Positions of an image attend to words (latent diffusion, Rombach et al. 2022)."""

    def __init__(self, width: int, words: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = nn.Linear(words, width, bias=False), nn.Linear(words, width, bias=False)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor, words: Tensor) -> Tensor:
        y = self.norm(x).flatten(2).transpose(1, 2)

        def split(z: Tensor) -> Tensor:
            return z.view(z.shape[0], z.shape[1], self.heads, -1).transpose(1, 2)

        query, key, value = split(self.query(y)), split(self.key(words)), split(self.value(words))
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
        y = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), value)
        y = self.output(y.transpose(1, 2).flatten(2))
        return x + y.transpose(1, 2).view_as(x)


class DiffusionUNet(nn.Module):
    """Predicts the noise at a step; with words it attends to them."""

    def __init__(self, *, words: int = 0, consistency: bool = False) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 64))
        self.enter = nn.Conv2d(3, 32, 3, padding=1)
        self.down, self.middle, self.up = TimeBlock(32, 32), TimeBlock(64, 64), TimeBlock(96, 32)
        self.shrink = nn.Conv2d(32, 64, 3, 2, 1)
        self.attention = CrossAttention(64, words or 64)
        self.leave = nn.Sequential(nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1))
        self.consistency = consistency

    def forward(self, x: Tensor, steps: Tensor, words: Tensor | None = None) -> Tensor:
        time = self.time(time_embedding(steps, 64))
        fine = self.down(self.enter(x), time)
        y = self.middle(self.shrink(fine), time)
        y = self.attention(y, y.flatten(2).transpose(1, 2) if words is None else words)
        y = self.up(torch.cat([F.interpolate(y, scale_factor=2.0), fine], 1), time)
        y = self.leave(y)
        if not self.consistency:
            return y
        sigma = steps.to(torch.float32)[:, :, None, None]
        return 0.25 / (sigma**2 + 0.25) * x + 0.5 * sigma * torch.rsqrt(sigma**2 + 0.25) * y


class DitBlock(nn.Module):
    """A transformer layer whose norms are shifted, scaled and gated (Peebles and Xie 2023)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = mlp(width, 4 * width, width, act=lambda: nn.GELU(approximate="tanh"))
        self.modulate = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        parts = self.modulate(condition).unsqueeze(1).chunk(6, -1)
        y = self.norms[0](x) * (1 + parts[1]) + parts[0]
        x = x + parts[2] * self.attention(y, y, y, need_weights=False)[0]
        return x + parts[5] * self.mlp(self.norms[1](x) * (1 + parts[4]) + parts[3])


class Dit(nn.Module):
    """Patches of a latent image, a step and a class."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(4, width, 2, 2)
        self.positions = nn.Parameter(torch.zeros(1, 64, width), requires_grad=False)
        self.time, self.classes = mlp(64, width, width, act=nn.SiLU), nn.Embedding(11, width)
        self.blocks = nn.ModuleList(DitBlock(width) for _ in range(2))
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor, steps: Tensor, labels: Tensor) -> Tensor:
        condition = self.time(time_embedding(steps, 64)) + self.classes(labels[:, 0])
        y = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            y = block(y, condition)
        y = self.head(y).view(-1, 8, 8, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", y).reshape(-1, 4, 16, 16)


STEP = tokens(1000, 1)
NETWORKS: dict[str, Network] = {
    "dcgan_discriminator": Network(dcgan_discriminator, floats((3, 64, 64)), "bce_with_logits"),
    "srgan_generator": Network(srgan_generator, floats((3, 24, 24)), "mse"),
    "srgan_discriminator": Network(srgan_discriminator, floats((3, 32, 32)), "bce_with_logits"),
    "cyclegan_generator": Network(cyclegan_generator, floats((3, 64, 64)), "mse"),
    "pix2pix": Network(Pix2Pix, floats((3, 64, 64)), "mse"),
    "diffusion_unet": Network(DiffusionUNet, together(floats((3, 16, 16)), STEP), "mse"),
    "latent_diffusion": Network(lambda: DiffusionUNet(words=48),
                                together(floats((3, 16, 16)), STEP, floats((7, 48))), "mse"),
    "consistency_model": Network(lambda: DiffusionUNet(consistency=True), together(floats((3, 16, 16)), STEP),
                                 "mse", opset=17),
    "dit": Network(Dit, together(floats((4, 16, 16)), STEP, tokens(11, 1)), "mse", freeze=("positions",))}
