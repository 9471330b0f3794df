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

from training_cases.framework import Case, Net, net, real, tokens, zeros

ROWS = [real("x", 3, 6)]


@net(lambda function: dict(first=nn.Linear(6, 8), second=nn.Linear(8, 3), function=function))
def between_net(m: Net, x: Tensor) -> Tensor:
    """A function of what one layer makes, before another."""
    return m.second(m.function(m.first(x)))


def normalised(y: Tensor) -> Tensor:
    variance, mean = torch.var_mean(y, 1, keepdim=True)
    return (y - mean) / torch.sqrt(variance + 0.1)


def mirrored(y: Tensor) -> Tensor:
    y = torch.tanh(y)
    return y * y.flip(1)


@net(lambda: dict(embed=nn.Embedding(9, 4), head=nn.Linear(4, 3)))
def masked_mean(m: Net, ids: Tensor) -> Tensor:
    """The mean of the embeddings of tokens that are not padding, whose number is an integer."""
    mask = ids != 0
    total = (m.embed(ids) * mask.unsqueeze(-1).to(m.head.weight.dtype)).sum(1)
    return m.head(total / (mask.long().sum(1, keepdim=True) + 1).to(total.dtype))


@net(lambda: dict(row=zeros(1, 6), layer=nn.Linear(6, 3)))
def repeated(m: Net, x: Tensor) -> Tensor:
    """A learned row, once for every sample."""
    return m.layer(m.row.repeat(3, 1)) + x[:, :3]


@net(
    lambda equation: dict(a=nn.Linear(6, 3), b=nn.Linear(6, 3), head=nn.Linear(9 if equation == "bi,bj->bij" else 3, 2), equation=equation)
)
def outer(m: Net, x: Tensor) -> Tensor:
    """The outer product of two layers, and their product element by element."""
    return m.head(torch.einsum(m.equation, m.a(x), m.b(x)).flatten(1))


@net(lambda layers: dict(layers=layers, a=nn.Linear(6, 5), scale=zeros(5), shift=zeros(5)))
def made_scale(m: Net, x: Tensor) -> Tensor:
    """Normalisations whose scale is computed."""
    y = m.a(x)
    if m.layers:
        return F.layer_norm(y, (5,), 1.0 + m.scale, m.shift)
    return F.batch_norm(y, None, None, m.scale * 0.5, m.shift, True, 0.0, 0.001)


@net(lambda: dict(weight=zeros(3, 6)))
def flipped_weight(m: Net, x: Tensor) -> Tensor:
    return F.linear(x, m.weight.flip(1))


@net(lambda: dict(mix=zeros(5, 4), a=nn.Linear(6, 3)))
def matrix_times_stack(m: Net, x: Tensor) -> Tensor:
    return m.mix @ torch.tanh(m.a(x))


@net(lambda: dict(a=nn.Linear(6, 6)))
def trace(m: Net, x: Tensor) -> Tensor:
    """An identity that the export makes of a matrix."""
    return m.a(x) @ (torch.eye(6, dtype=x.dtype) + m.a.weight)


@net(lambda gathers: dict(gathers=gathers, a=nn.Linear(6, 4), b=nn.Linear(4, 2), rows=torch.tensor([0, 2, 0, 1] if gathers else [0, 1, 0])))
def expanded(m: Net, x: Tensor) -> Tensor:
    """Rows gathered, or scattered, by indices that are expanded along the columns."""
    rows, y = m.rows[:, None].expand(-1, 4), m.a(x)
    made = y.gather(0, rows) if m.gathers else x.new_zeros(2, 4).scatter_add(0, rows, y)
    return m.b(made)


@net(lambda: dict(table=zeros(5, 5), a=nn.Linear(1, 3)))
def pairs(m: Net, i: Tensor, j: Tensor) -> Tensor:
    """Elements of a matrix by rows and columns."""
    return m.a(m.table[i, j].unsqueeze(1))


@net(lambda numbers: dict(a=nn.Linear(6, numbers.shape[-1]), table=numbers, b=nn.Linear(numbers.shape[-1], 2)))
def table(m: Net, x: Tensor) -> Tensor:
    """A buffer without a telling name that is multiplied, or a filter or matrix of a product."""
    y = m.a(x)
    y = torch.sin(y * m.table) if m.table.dim() == 1 else torch.relu(F.linear(y, m.table))
    return m.b(y)


@net(lambda: dict(conv=nn.Conv2d(2, 2, 3), ones=torch.ones(1, 2, 3, 3)))
def counted(m: Net, x: Tensor, mask: Tensor) -> Tensor:
    """How much of each window is there: a convolution with ones, as partial convolutions have it."""
    return m.conv(x * mask) / (F.conv2d(mask, m.ones) + 1.0)


def hippo(size: int) -> Tensor:
    root = torch.sqrt(2.0 * torch.arange(size) + 1.0)
    return -(torch.tril(torch.outer(root, root), -1) + torch.diag(torch.arange(size) + 1.0))


def cosines(size: int) -> Tensor:
    places = torch.arange(size, dtype=torch.float32)
    return torch.cos(math.pi / size * (places[None] + 0.5) * places[:, None])


def cases() -> Iterator[Case]:
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
        yield Case(f"border_{name}", lambda f=function: between_net(f), ROWS, opset=13)
    ids = [tokens("ids", 3, 5, below=9)]
    yield Case("border_masked_mean", masked_mean, ids, "cross_entropy", opset=13)
    yield Case("border_repeated_row", repeated, ROWS, opset=13)
    for name, equation in (("outer", "bi,bj->bij"), ("elementwise", "bi,bi->bi")):
        yield Case(f"border_einsum_{name}", lambda e=equation: outer(e), ROWS, opset=13)
    yield Case("border_made_scale_batch", lambda: made_scale(False), ROWS, opset=14)
    yield Case("border_made_scale_layer", lambda: made_scale(True), ROWS)
    yield Case("border_flipped_weight", flipped_weight, ROWS, opset=13)
    yield Case("border_matrix_times_stack", matrix_times_stack, [real("x", 2, 4, 6)], opset=13)
    yield Case("border_identity", trace, ROWS, opset=14)
    yield Case("border_gather_expanded", lambda: expanded(True), ROWS, opset=16)
    yield Case("border_scatter_expanded", lambda: expanded(False), ROWS, opset=16)
    places = [tokens("i", 4, below=5), tokens("j", 4, below=5)]
    yield Case("border_pairs", pairs, places, opset=13)
    tables = {
        "line_of_three": torch.tensor([-1.0, 0.0, 1.0]),
        "powers_of_three": torch.tensor([1.0, 0.25, 0.0625]),
        "smoothing": torch.tensor([0.25, 0.5, 0.25]),
        "hann": torch.hann_window(6, periodic=False),
        "hippo": hippo(4),
        "cosine_transform": cosines(4),
    }
    for name, numbers in tables.items():
        yield Case(f"border_table_{name}", lambda n=numbers: table(n.clone()), ROWS, opset=13)
    image = [real("x", 2, 2, 5, 5), real("mask", 2, 2, 5, 5, offset=0.5, scale=0.5)]
    yield Case("border_ones_filter", counted, image, opset=13)
