"""What fresh networks broke: each as small as it shows.

Integers that are summed, parameters that are repeated, products that sum nothing, scales that are
computed, flips, variances, indices that are joined or expanded, buffers of few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

ROWS = [real("x", 3, 6)]


def cases() -> Iterator[Case]:
    yield from between()
    yield from with_parameters()
    yield from indexed()
    yield from with_buffers()


class Between(nn.Module):
    """A function of what one layer makes, before another."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 3)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.function(self.first(x)))


def normalised(y: Tensor) -> Tensor:
    variance, mean = torch.var_mean(y, 1, keepdim=True)
    return (y - mean) / torch.sqrt(variance + 0.1)


def mirrored(y: Tensor) -> Tensor:
    y = torch.tanh(y)
    return y * y.flip(1)


def between() -> Iterator[Case]:
    functions = {
        "variance": lambda y: y * y.var(1, keepdim=True),
        "deviation": lambda y: y * y.std(1, keepdim=True),
        "deviation_of_all": lambda y: y / y.std(),
        "variance_biased": lambda y: y * y.var(1, unbiased=False, keepdim=True),
        "variance_and_mean": normalised,
        "flip": mirrored,
        "one_over": lambda y: 1 / (y * y + 2.0),
        "two_over": lambda y: 2 / (y * y + 2.0),
        "times_one": lambda y: y * 1.0,
        "sign_times": lambda y: torch.sign(y) * torch.exp(y),
        "hard_shrink": lambda y: F.hardshrink(y, 0.25),
        "mask_as_number": lambda y: y * (y > 0).to(y.dtype),
    }
    for name, function in functions.items():
        yield Case(f"border_{name}", lambda f=function: Between(f), ROWS, tags=["border"], opset=13)


class MaskedMean(nn.Module):
    """The mean of the embeddings of tokens that are not padding, whose number is an integer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, ids: Tensor) -> Tensor:
        mask = ids != 0
        total = (self.embed(ids) * mask.unsqueeze(-1).to(self.head.weight.dtype)).sum(1)
        return self.head(total / (mask.long().sum(1, keepdim=True) + 1).to(total.dtype))


class Repeated(nn.Module):
    """A learned row, once for every sample."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(1, 6))
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.row.repeat(3, 1)) + x[:, :3]


class Outer(nn.Module):
    """The outer product of two layers, and their product element by element."""

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.a = nn.Linear(6, 3)
        self.b = nn.Linear(6, 3)
        self.head = nn.Linear(9 if equation == "bi,bj->bij" else 3, 2)
        self.equation = equation

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.einsum(self.equation, self.a(x), self.b(x)).flatten(1))


class MadeScale(nn.Module):
    """Normalisations whose scale is computed."""

    def __init__(self, layers: bool) -> None:
        super().__init__()
        self.layers = layers
        self.a = nn.Linear(6, 5)
        self.scale = nn.Parameter(torch.zeros(5))
        self.shift = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        if self.layers:
            return F.layer_norm(y, (5,), 1.0 + self.scale, self.shift)
        return F.batch_norm(y, None, None, self.scale * 0.5, self.shift, True, 0.0, 0.001)


class FlippedWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 6))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.flip(1))


class MatrixTimesStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.zeros(5, 4))
        self.a = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix @ torch.tanh(self.a(x))


class Trace(nn.Module):
    """An identity that the export makes of a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x) @ (torch.eye(6, dtype=x.dtype) + self.a.weight)


def with_parameters() -> Iterator[Case]:
    tags = ["border"]
    ids = [tokens("ids", 3, 5, below=9)]
    yield Case("border_masked_mean", MaskedMean, ids, "cross_entropy", tags=tags, opset=13, steps="adam")
    yield Case("border_repeated_row", Repeated, ROWS, tags=tags, opset=13)
    for name, equation in (("outer", "bi,bj->bij"), ("elementwise", "bi,bi->bi")):
        yield Case(f"border_einsum_{name}", lambda e=equation: Outer(e), ROWS, tags=tags, opset=13)
    yield Case("border_made_scale_batch", lambda: MadeScale(False), ROWS, tags=tags, opset=14)
    yield Case("border_made_scale_layer", lambda: MadeScale(True), ROWS, tags=tags)
    yield Case("border_flipped_weight", FlippedWeight, ROWS, tags=tags, opset=13)
    yield Case("border_matrix_times_stack", MatrixTimesStack, [real("x", 2, 4, 6)], tags=tags, opset=13)
    yield Case("border_identity", Trace, ROWS, tags=tags, opset=14)


class Expanded(nn.Module):
    """Rows gathered, or scattered, by indices that are expanded along the columns."""

    def __init__(self, gathers: bool) -> None:
        super().__init__()
        self.gathers = gathers
        self.a = nn.Linear(6, 4)
        self.b = nn.Linear(4, 2)
        self.register_buffer("rows", torch.tensor([0, 2, 0, 1] if gathers else [0, 1, 0]))

    def forward(self, x: Tensor) -> Tensor:
        rows, y = self.rows[:, None].expand(-1, 4), self.a(x)
        made = y.gather(0, rows) if self.gathers else x.new_zeros(2, 4).scatter_add(0, rows, y)
        return self.b(made)


class Pairs(nn.Module):
    """Elements of a matrix by rows and columns."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(5, 5))
        self.a = nn.Linear(1, 3)

    def forward(self, i: Tensor, j: Tensor) -> Tensor:
        return self.a(self.table[i, j].unsqueeze(1))


def indexed() -> Iterator[Case]:
    tags = ["border"]
    yield Case("border_gather_expanded", lambda: Expanded(True), ROWS, tags=tags, opset=16)
    yield Case("border_scatter_expanded", lambda: Expanded(False), ROWS, tags=tags, opset=16)
    places = [tokens("i", 4, below=5), tokens("j", 4, below=5)]
    yield Case("border_pairs", Pairs, places, tags=tags, opset=13)


class Table(nn.Module):
    """A buffer without a telling name that is multiplied, or a filter or matrix of a product."""

    def __init__(self, numbers: Tensor) -> None:
        super().__init__()
        self.a = nn.Linear(6, numbers.shape[-1])
        self.register_buffer("table", numbers)
        self.b = nn.Linear(numbers.shape[-1], 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        y = torch.sin(y * self.table) if self.table.dim() == 1 else torch.relu(F.linear(y, self.table))
        return self.b(y)


class Counted(nn.Module):
    """How much of each window is there: a convolution with ones, as partial convolutions have it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3)
        self.register_buffer("ones", torch.ones(1, 2, 3, 3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.conv(x * mask) / (F.conv2d(mask, self.ones) + 1.0)


def hippo(size: int) -> Tensor:
    root = torch.sqrt(2.0 * torch.arange(size) + 1.0)
    return -(torch.tril(torch.outer(root, root), -1) + torch.diag(torch.arange(size) + 1.0))


def cosines(size: int) -> Tensor:
    places = torch.arange(size, dtype=torch.float32)
    return torch.cos(math.pi / size * (places[None] + 0.5) * places[:, None])


def with_buffers() -> Iterator[Case]:
    tags = ["border", "buffer"]
    tables = {
        "line_of_three": torch.tensor([-1.0, 0.0, 1.0]),
        "powers_of_three": torch.tensor([1.0, 0.25, 0.0625]),
        "smoothing": torch.tensor([0.25, 0.5, 0.25]),
        "hann": torch.hann_window(6, periodic=False),
        "hippo": hippo(4),
        "cosine_transform": cosines(4),
    }
    for name, numbers in tables.items():
        yield Case(f"border_table_{name}", lambda n=numbers: Table(n.clone()), ROWS, tags=tags, opset=13)
    image = [real("x", 2, 2, 5, 5), real("mask", 2, 2, 5, 5, offset=0.5, scale=0.5)]
    yield Case("border_ones_filter", Counted, image, tags=tags, opset=13)
