"""Weights that are computed, shared, or read by several calls."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

IMAGE = real("x", 2, 3, 8, 8)


def cases() -> Iterator[Case]:
    yield from reparametrised()
    yield from hypernetworks()
    yield from shared()
    yield from low_rank()


# --- Reparametrised --------------------------------------------------------------------------


class WeightNormLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.weight_norm(nn.Linear(6, 8))
        self.second = nn.utils.weight_norm(nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


class WeightNormConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.weight_norm(nn.Conv2d(3, 4, 3, padding=1))
        self.second = nn.utils.weight_norm(nn.Conv1d(4, 5, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.leaky_relu(self.first(x), 0.1).flatten(2))


class SpectralLinear(nn.Module):
    """A linear layer divided by its largest singular value, after power iterations with fixed vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 6)
        self.weight = nn.Parameter(torch.zeros(4, 6))
        self.register_buffer("u", F.normalize(torch.arange(1.0, 5.0), dim=0))

    def forward(self, x: Tensor) -> Tensor:
        v = F.normalize(torch.matmul(self.weight.t(), self.u.unsqueeze(1)), dim=0)
        u = torch.matmul(self.weight, v)
        sigma = (self.u.unsqueeze(1) * u).sum()
        return F.linear(torch.relu(self.first(x)), self.weight / sigma)


class StandardisedConv(nn.Module):
    """Weight standardisation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 3, 3, 3))
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight = weight / torch.sqrt((weight * weight).mean((1, 2, 3), keepdim=True) + 0.001)
        return self.norm(F.conv2d(x, weight, padding=1))


class EqualisedLinear(nn.Module):
    """Weights scaled when they are used, as in StyleGAN."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.zeros(8, 6))
        self.second = nn.Parameter(torch.zeros(3, 8))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.leaky_relu(F.linear(x, self.first * 0.5), 0.2), self.second * 0.25)


def reparametrised() -> Iterator[Case]:
    yield Case("weight_norm_linear", WeightNormLinear, [real("x", 3, 6)], steps="adam")
    yield Case("weight_norm_conv", WeightNormConv, [real("x", 2, 3, 5, 5)])
    yield Case("spectral_norm", SpectralLinear, [real("x", 3, 5)], tags=["buffer"])
    yield Case("weight_standardisation", StandardisedConv, [IMAGE])
    yield Case("equalised_weights", EqualisedLinear, [real("x", 3, 6)])


# --- Hypernetworks ---------------------------------------------------------------------------


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


class HyperLinear(nn.Module):
    """Weights that depend on a second input, one matrix for every sample."""

    def __init__(self) -> None:
        super().__init__()
        self.maker = nn.Linear(4, 6 * 5 + 5)

    def forward(self, x: Tensor, task: Tensor) -> Tensor:
        made = self.maker(task)
        weight = made[:, :30].reshape(-1, 6, 5)
        return torch.bmm(x, weight) + made[:, 30:].unsqueeze(1)


class HyperShared(nn.Module):
    """One computed matrix for all samples."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.zeros(5, 2))
        self.right = nn.Parameter(torch.zeros(2, 6))
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, torch.tanh(self.left @ self.right), self.bias)


class DynamicConv(nn.Module):
    """A mixture of kernels, chosen by the image, applied as one grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.choice = nn.Linear(4, 3)
        self.kernels = nn.Parameter(torch.zeros(3, 5 * 4 * 3 * 3))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        share = torch.softmax(self.choice(x.mean((2, 3))), -1)
        weight = (share @ self.kernels).view(batch * 5, channels, 3, 3)
        made = F.conv2d(x.reshape(1, batch * channels, height, width), weight, padding=1, groups=batch)
        return made.view(batch, 5, height, width)


def hypernetworks() -> Iterator[Case]:
    for kind in ("conv", "depthwise", "transposed"):
        yield Case(f"hyper_{kind}", lambda kind=kind: HyperConv(kind), [IMAGE], steps="momentum")
    yield Case("hyper_linear_per_sample", HyperLinear, [real("x", 2, 3, 6), real("task", 2, 4)])
    yield Case("hyper_linear_shared", HyperShared, [real("x", 3, 6)])
    yield Case("dynamic_conv", DynamicConv, [real("x", 2, 4, 6, 6)])


# --- Shared ----------------------------------------------------------------------------------


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


class TwiceNormalised(nn.Module):
    """One batch normalisation in two places of one network."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.second(torch.relu(self.norm(self.first(x)))))


class Discriminator(nn.Module):
    """Called on real images and on what a generator made."""

    def __init__(self) -> None:
        super().__init__()
        self.make = nn.ConvTranspose2d(4, 3, 4)
        self.judge = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(4, 1)
        )

    def forward(self, image: Tensor, noise: Tensor) -> Tensor:
        fake = torch.tanh(self.make(noise))
        return torch.cat([self.judge(image), self.judge(fake)], 1)


class Recursive(nn.Module):
    """One layer, applied several times."""

    def __init__(self, layer: nn.Module, times: int) -> None:
        super().__init__()
        self.layer = layer
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = x + torch.tanh(self.layer(x))
        return x


class SharedNorm(nn.Module):
    """Layer and group normalisations with one scale for several places."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(self.norm(x))
        return self.norm(x + self.second(self.norm(x)))


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


class TiedAutoencoder(nn.Module):
    """The decoder is the encoder transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 7))
        self.down = nn.Parameter(torch.zeros(4))
        self.up = nn.Parameter(torch.zeros(7))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(torch.sigmoid(F.linear(x, self.weight, self.down)), self.weight.t(), self.up)


def shared() -> Iterator[Case]:
    pair = [real("left", 2, 3, 6, 6), real("right", 2, 3, 6, 6)]
    yield Case("siamese_batch_norm_twice", lambda: Siamese(2), pair, steps="momentum")
    yield Case("siamese_batch_norm_thrice", lambda: Siamese(3), [*pair, real("third", 2, 3, 6, 6)])
    yield Case("batch_norm_in_two_places", TwiceNormalised, [real("x", 5, 6)], steps="adam")
    yield Case(
        "discriminator_twice",
        Discriminator,
        [real("image", 2, 3, 4, 4), real("noise", 2, 4, 1, 1)],
        loss="bce_with_logits",
        steps="adam",
    )
    yield Case("layer_three_times", lambda: Recursive(nn.Linear(6, 6), 3), [real("x", 3, 6)])
    yield Case(
        "conv_three_times",
        lambda: Recursive(nn.Conv2d(3, 3, 3, padding=1), 3),
        [real("x", 2, 3, 5, 5)],
        steps="momentum",
    )
    yield Case("layer_norm_shared", SharedNorm, [real("x", 2, 3, 6)])
    yield Case(
        "embedding_tied", Tied, [tokens("ids", 2, 4, below=11)], loss="cross_entropy", steps="adam"
    )
    yield Case("autoencoder_tied", TiedAutoencoder, [real("x", 3, 7)], steps="momentum")


# --- Low rank --------------------------------------------------------------------------------


class LowRank(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(8, 2, bias=False)
        self.up = nn.Linear(2, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.down(x))


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


def low_rank() -> Iterator[Case]:
    frozen = {"trainable": {"freeze": ["*base*", "back*"]}}
    yield Case("low_rank", LowRank, [real("x", 2, 3, 8)])
    yield Case("lora_in_pytorch", LoraStack, [real("x", 2, 3, 8)], options=frozen)
    yield Case(
        "lora_merged", LoraMerged, [real("x", 3, 8)], options={"trainable": {"freeze": ["base*"]}}
    )
