"""Weights that are computed, shared, or read by several calls."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros

IMAGE = real("x", 2, 3, 8, 8)


@net(lambda: dict(first=nn.utils.weight_norm(nn.Linear(6, 8)), second=nn.utils.weight_norm(nn.Linear(8, 3))))
def weight_norm_linear(m: Net, x: Tensor) -> Tensor:
    return m.second(torch.tanh(m.first(x)))


@net(lambda: dict(first=nn.utils.weight_norm(nn.Conv2d(3, 4, 3, padding=1)), second=nn.utils.weight_norm(nn.Conv1d(4, 5, 3))))
def weight_norm_conv(m: Net, x: Tensor) -> Tensor:
    return m.second(F.leaky_relu(m.first(x), 0.1).flatten(2))


@net(lambda: dict(first=nn.Linear(5, 6), weight=zeros(4, 6), u=F.normalize(torch.arange(1.0, 5.0), dim=0)))
def spectral_linear(m: Net, x: Tensor) -> Tensor:
    """A linear layer divided by its largest singular value, after power iterations with fixed vectors."""
    v = F.normalize(torch.matmul(m.weight.t(), m.u.unsqueeze(1)), dim=0)
    u = torch.matmul(m.weight, v)
    sigma = (m.u.unsqueeze(1) * u).sum()
    return F.linear(torch.relu(m.first(x)), m.weight / sigma)


@net(lambda: dict(weight=zeros(4, 3, 3, 3), norm=nn.GroupNorm(2, 4)))
def standardised_conv(m: Net, x: Tensor) -> Tensor:
    """Weight standardisation."""
    weight = m.weight - m.weight.mean((1, 2, 3), keepdim=True)
    weight = weight / torch.sqrt((weight * weight).mean((1, 2, 3), keepdim=True) + 0.001)
    return m.norm(F.conv2d(x, weight, padding=1))


@net(lambda: dict(first=zeros(8, 6), second=zeros(3, 8)))
def equalised_linear(m: Net, x: Tensor) -> Tensor:
    """Weights scaled when they are used, as in StyleGAN."""
    return F.linear(F.leaky_relu(F.linear(x, m.first * 0.5), 0.2), m.second * 0.25)


class HyperConv(nn.Module):
    """A convolution whose weight another network computes from an embedding."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.code = nn.Parameter(torch.zeros(1, 5))
        self.shape = {"conv": (6, 4, 3, 3), "depthwise": (4, 1, 3, 3), "transposed": (4, 3, 2, 2)}[kind]
        size = self.shape[0] * self.shape[1] * self.shape[2] * self.shape[3]
        self.maker = nn.Linear(5, size)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        weight = self.maker(torch.tanh(self.code)).view(self.shape)
        if self.kind == "transposed":
            return F.conv_transpose2d(x, weight, stride=2)
        return F.conv2d(x, weight, padding=1, groups=4 if self.kind == "depthwise" else 1)


@net(lambda: dict(maker=nn.Linear(4, 6 * 5 + 5)))
def hyper_linear(m: Net, x: Tensor, task: Tensor) -> Tensor:
    """Weights that depend on a second input, one matrix for every sample."""
    made = m.maker(task)
    weight = made[:, :30].reshape(-1, 6, 5)
    return torch.bmm(x, weight) + made[:, 30:].unsqueeze(1)


@net(lambda: dict(left=zeros(5, 2), right=zeros(2, 6), bias=zeros(5)))
def hyper_shared(m: Net, x: Tensor) -> Tensor:
    """One computed matrix for all samples."""
    return F.linear(x, torch.tanh(m.left @ m.right), m.bias)


@net(lambda: dict(choice=nn.Linear(4, 3), kernels=zeros(3, 5 * 4 * 3 * 3)))
def dynamic_conv(m: Net, x: Tensor) -> Tensor:
    """A mixture of kernels, chosen by the image, applied as one grouped convolution."""
    batch, channels, height, width = x.shape
    share = torch.softmax(m.choice(x.mean((2, 3))), -1)
    weight = (share @ m.kernels).view(batch * 5, channels, 3, 3)
    made = F.conv2d(x.reshape(1, batch * channels, height, width), weight, padding=1, groups=batch)
    return made.view(batch, 5, height, width)


class Siamese(nn.Module):
    """One encoder with one batch normalisation, called on two or three inputs."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 6)

    def encode(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

    def forward(self, *images: Tensor) -> Tensor:
        first, *others = [self.encode(image) for image in images[: self.calls]]
        for other in others:
            first = first - other
        return first * first


@net(lambda: dict(first=nn.Linear(6, 6), second=nn.Linear(6, 6), norm=nn.BatchNorm1d(6)))
def twice_normalised(m: Net, x: Tensor) -> Tensor:
    """One batch normalisation in two places of one network."""
    return m.norm(m.second(torch.relu(m.norm(m.first(x)))))


@net(lambda: dict(
    make=nn.ConvTranspose2d(4, 3, 4),
    judge=nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(4, 1)),
))  # fmt: skip
def discriminator(m: Net, image: Tensor, noise: Tensor) -> Tensor:
    """Called on real images and on what a generator made."""
    fake = torch.tanh(m.make(noise))
    return torch.cat([m.judge(image), m.judge(fake)], 1)


@net(lambda layer, times: dict(layer=layer, times=times))
def recursive(m: Net, x: Tensor) -> Tensor:
    """One layer, applied several times."""
    for _ in range(m.times):
        x = x + torch.tanh(m.layer(x))
    return x


@net(lambda: dict(norm=nn.LayerNorm(6), first=nn.Linear(6, 6), second=nn.Linear(6, 6)))
def shared_norm(m: Net, x: Tensor) -> Tensor:
    """Layer and group normalisations with one scale for several places."""
    x = x + m.first(m.norm(x))
    return m.norm(x + m.second(m.norm(x)))


class Tied(nn.Module):
    """An embedding that the head reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.relu(self.mix(self.embed(ids))))


@net(lambda: dict(weight=zeros(4, 7), down=zeros(4), up=zeros(7)))
def tied_autoencoder(m: Net, x: Tensor) -> Tensor:
    """The decoder is the encoder transposed."""
    return F.linear(torch.sigmoid(F.linear(x, m.weight, m.down)), m.weight.t(), m.up)


@net(lambda: dict(down=nn.Linear(8, 2, bias=False), up=nn.Linear(2, 7)))
def low_rank_net(m: Net, x: Tensor) -> Tensor:
    return m.up(m.down(x))


class LoraLinear(nn.Module):
    """A frozen linear layer with an adapter beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(8, 6)
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.zeros(2, 8))
        self.up = nn.Parameter(torch.zeros(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + F.linear(F.linear(x, self.down), self.up) * 2.0


class LoraMerged(LoraLinear):
    """The adapter is added to the weight."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.base.weight + self.up @ self.down, self.base.bias)


class LoraStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = LoraLinear()
        self.second = LoraLinear()
        self.back = nn.Linear(6, 8)
        self.back.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.back(self.first(x))))


def cases() -> Iterator[Case]:
    yield Case("weight_norm_linear", weight_norm_linear, [real("x", 3, 6)], steps="adam")
    yield Case("weight_norm_conv", weight_norm_conv, [real("x", 2, 3, 5, 5)])
    yield Case("spectral_norm", spectral_linear, [real("x", 3, 5)])
    yield Case("weight_standardisation", standardised_conv, [IMAGE])
    yield Case("equalised_weights", equalised_linear, [real("x", 3, 6)])
    for kind in ("conv", "depthwise", "transposed"):
        yield Case(f"hyper_{kind}", lambda kind=kind: HyperConv(kind), [IMAGE], steps="momentum")
    yield Case("hyper_linear_per_sample", hyper_linear, [real("x", 2, 3, 6), real("task", 2, 4)])
    yield Case("hyper_linear_shared", hyper_shared, [real("x", 3, 6)])
    yield Case("dynamic_conv", dynamic_conv, [real("x", 2, 4, 6, 6)])
    pair = [real("left", 2, 3, 6, 6), real("right", 2, 3, 6, 6)]
    yield Case("siamese_batch_norm_twice", lambda: Siamese(2), pair, steps="momentum")
    yield Case("siamese_batch_norm_thrice", lambda: Siamese(3), [*pair, real("third", 2, 3, 6, 6)])
    yield Case("batch_norm_in_two_places", twice_normalised, [real("x", 5, 6)], steps="adam")
    yield Case(
        "discriminator_twice", discriminator, [real("image", 2, 3, 4, 4), real("noise", 2, 4, 1, 1)], loss="bce_with_logits", steps="adam"
    )
    yield Case("layer_three_times", lambda: recursive(nn.Linear(6, 6), 3), [real("x", 3, 6)])
    yield Case("conv_three_times", lambda: recursive(nn.Conv2d(3, 3, 3, padding=1), 3), [real("x", 2, 3, 5, 5)], steps="momentum")
    yield Case("layer_norm_shared", shared_norm, [real("x", 2, 3, 6)])
    yield Case("embedding_tied", Tied, [tokens("ids", 2, 4, below=11)], loss="cross_entropy", steps="adam")
    yield Case("autoencoder_tied", tied_autoencoder, [real("x", 3, 7)], steps="momentum")
    frozen = {"trainable": {"freeze": ["*base*", "back*"]}}
    yield Case("low_rank", low_rank_net, [real("x", 2, 3, 8)])
    yield Case("lora_in_pytorch", LoraStack, [real("x", 2, 3, 8)], options=frozen)
    yield Case("lora_merged", LoraMerged, [real("x", 3, 8)], options={"trainable": {"freeze": ["base*"]}})
