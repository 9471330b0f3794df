"""The entries of the network list, and helpers to write them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from net import Net, net

Maker = Callable[[int], tuple[Tensor, ...]]  # makes inputs of a batch size


@dataclass(frozen=True)
class Network:
    """A network: how to build, feed, export and train it."""

    build: Callable[[], nn.Module]
    inputs: Maker
    loss: str = "cross_entropy"  # one of MONET's losses; none: gradients of all outputs are given
    opset: int = 14  # PyTorch 1.13's default
    batch: int = 1  # larger if a batch normalisation sees one number a channel
    fixed: bool = False  # exported with this batch instead of a symbol
    precision: str = "float"  # or half, bfloat16
    freeze: tuple[str, ...] = ()  # patterns of parameters that are not trained
    note: str = ""  # reason why figures differ


def floats(*shapes: tuple[int, ...]) -> Maker:
    """Makes real inputs of these shapes, which lack the batch axis."""
    return lambda batch: tuple(torch.randn(batch, *shape) for shape in shapes)


def tokens(vocabulary: int, *shapes: int | tuple[int, ...]) -> Maker:
    """Makes integer inputs below `vocabulary`; a number is a length."""
    sizes = [shape if isinstance(shape, tuple) else (shape,) for shape in shapes]
    return lambda batch: tuple(torch.randint(vocabulary, (batch, *size)) for size in sizes)


def together(*makers: Maker) -> Maker:
    """Makes the inputs of all makers, in order."""
    return lambda batch: tuple(tensor for maker in makers for tensor in maker(batch))


@net(lambda inner, shortcut=None: dict(inner=inner, shortcut=shortcut or nn.Identity()))
def residual(m: Net, x: Tensor) -> Tensor:
    """x + f(x), or shortcut(x) + f(x)."""
    return m.shortcut(x) + m.inner(x)


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), act()]
    return nn.Sequential(*layers[:-1])


def conv_norm(before: int, after: int, kernel: int = 3, stride: int = 1, groups: int = 1,
              act: Callable[[], nn.Module] | None = nn.ReLU) -> nn.Sequential:
    """Convolution that keeps the size (but for its stride), batch normalisation, activation."""
    layers: list[nn.Module] = [nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
                               nn.BatchNorm2d(after)]
    return nn.Sequential(*layers, *([act()] if act else []))


def separable(before: int, after: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    """A depthwise and a 1x1 convolution, each with normalisation and activation."""
    depthwise = conv_norm(before, before, kernel, stride, groups=before)
    return nn.Sequential(depthwise, conv_norm(before, after, 1))


def pooled_head(channels: int, classes: int) -> nn.Sequential:
    """Mean over positions, classes."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
