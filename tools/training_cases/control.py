"""Loops, branches and lists of tensors in the file: scripted modules, bags of embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

# Operators one by one, as the oracle watches them; scripts are joined otherwise.
torch._C._set_graph_executor_optimize(False)


def cases() -> Iterator[Case]:
    yield from bags()
    yield from loops()
    yield from lists()
    yield from branches()


# --- Bags of embeddings ----------------------------------------------------------------------


class Bag(nn.Module):
    """Rows of equally many values."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 4, mode=mode)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.bag(x)))


class WeightedBag(nn.Module):
    """Every value has a weight, which is trained through a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 4, mode="sum")
        self.weigh = nn.Linear(5, 5)

    def forward(self, x: Tensor, importance: Tensor) -> Tensor:
        return self.bag(x, per_sample_weights=self.weigh(importance))


class RaggedBag(nn.Module):
    """Bags of 3, 1 and 4 values."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.register_buffer("starts", torch.tensor([0, 3, 4]))
        self.bag = nn.EmbeddingBag(9, 4, mode=mode)

    def forward(self, x: Tensor) -> Tensor:
        return self.bag(x, self.starts)


class ManyBags(nn.Module):
    """A bag a feature, beside dense features, as DLRM has them."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(7, 4, mode="sum") for _ in range(2))
        self.dense = nn.Linear(3, 4)
        self.head = nn.Linear(12, 2)

    def forward(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        parts = [torch.relu(self.dense(x)), self.bags[0](first), self.bags[1](second)]
        return self.head(torch.cat(parts, 1))


def bags() -> Iterator[Case]:
    rows = [tokens("x", 3, 5, below=9)]
    fills = {"*bag*": (0.0, 0.5)}
    for mode in ("sum", "mean", "max"):
        yield Case(f"embedding_bag_{mode}", lambda mode=mode: Bag(mode), rows, fills=fills, tags=["loop"])
        flat = [tokens("x", 8, below=9)]
        yield Case(f"embedding_bag_{mode}_ragged", lambda mode=mode: RaggedBag(mode), flat, fills=fills, tags=["loop"])
    yield Case("embedding_bag_opset_11", lambda: Bag("mean"), rows, fills=fills, opset=11, tags=["loop"], steps="adam")
    yield Case(
        "embedding_bag_weighted", WeightedBag, [*rows, real("importance", 3, 5)], fills=fills, tags=["loop"]
    )
    features = [real("x", 3, 3), tokens("first", 3, 4, below=7), tokens("second", 3, 2, below=7)]
    yield Case("embedding_bags", ManyBags, features, fills=fills, tags=["loop"])


# --- Loops -----------------------------------------------------------------------------------


@torch.jit.script
def settled(x: Tensor, weight: Tensor, bias: Tensor, turns: int) -> Tensor:
    state = torch.zeros_like(x)
    for i in range(turns):
        state = torch.tanh(F.linear(state, weight, bias) + x)
    return state


class Equilibrium(nn.Module):
    """One layer, applied until it settles."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return settled(x, self.layer.weight, self.layer.bias, 3)


@torch.jit.script
def doubled(x: Tensor, weight: Tensor) -> Tensor:
    i = 1
    while i < 8:
        x = torch.sin(x * weight) + x
        i = i * 2
    return x


class While(nn.Module):
    """As many turns as a counter takes to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        return doubled(x, self.weight)


@torch.jit.script
def scaled(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    for i in range(2):
        for j in range(3):
            x = x + torch.sigmoid(torch.matmul(x, weight)) * scales[i + 2 * j]
    return x


class Nested(nn.Module):
    """A loop in a loop, whose counters are used."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4))
        self.scales = nn.Parameter(torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        return scaled(x, self.weight, self.scales)


def loops() -> Iterator[Case]:
    x = [real("x", 3, 4)]
    yield Case("loop_equilibrium", Equilibrium, x, tags=["loop"], steps="adam")
    yield Case("loop_while", While, x, tags=["loop"])
    yield Case("loop_nested", Nested, x, tags=["loop"])


# --- Lists of tensors ------------------------------------------------------------------------


@torch.jit.script
def recurred(x: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    state = torch.zeros_like(x[0])
    states: List[Tensor] = []
    for i in range(x.size(0)):
        state = torch.tanh(torch.matmul(x[i], inner) + torch.matmul(state, outer))
        states.append(state)
    return torch.stack(states, 1)


class ScriptedRecurrence(nn.Module):
    """States of all steps in a list, stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.zeros(4, 4))
        self.outer = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return recurred(x, self.inner, self.outer)


@torch.jit.script
def chained(x: Tensor, weight: Tensor) -> Tensor:
    parts: List[Tensor] = []
    previous = torch.zeros_like(x[:, :2])
    for part in torch.split(x, 2, 1):
        previous = torch.relu(torch.matmul(part + previous, weight))
        parts.append(previous)
    return torch.cat(parts, 1)


class ScriptedScales(nn.Module):
    """Groups of channels one after the other, each with what came before (Res2Net)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return chained(x, self.weight)


@torch.jit.script
def picked(x: Tensor, weight: Tensor) -> Tensor:
    kept: List[Tensor] = []
    for row in torch.unbind(x, 1):
        kept.append(row * weight)
    kept.insert(0, kept[-1] + kept[1])
    for i in range(len(kept) - 1):
        kept.append(kept[i] - kept[i + 1])
    return torch.cat(kept, 1)


class ScriptedList(nn.Module):
    """Inserted at the front and at the back, looked up from both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        return picked(x, self.weight).flatten(1)


class TensorSplit(nn.Module):
    """The class token apart from the others, as multi-scale transformers have it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        token, rest = torch.tensor_split(x, indices=(1,), dim=1)
        return torch.cat([self.first(token), torch.relu(self.rest(rest))], 1)


def lists() -> Iterator[Case]:
    yield Case("list_recurrence", ScriptedRecurrence, [real("x", 3, 2, 4)], tags=["loop", "sequence"])
    yield Case("list_scales", ScriptedScales, [real("x", 3, 8)], tags=["loop", "sequence"])
    yield Case("list_of_rows", ScriptedList, [real("x", 2, 3, 4)], tags=["loop", "sequence"])
    yield Case("tensor_split", TensorSplit, [real("x", 2, 5, 4)], tags=["loop", "sequence"])


# --- Branches --------------------------------------------------------------------------------


@torch.jit.script
def alternating(x: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    for i in range(4):
        if i % 2 == 0:
            x = torch.tanh(torch.matmul(x, even))
        else:
            x = x + torch.matmul(x, odd)
    return x


class Alternating(nn.Module):
    """Layers of two kinds by turns, from a branch in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.even = nn.Parameter(torch.zeros(4, 4))
        self.odd = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return alternating(x, self.even, self.odd)


def branches() -> Iterator[Case]:
    yield Case("branch_in_loop", Alternating, [real("x", 3, 4)], tags=["loop", "branch"])
