"""Loops, branches and lists of tensors in the file: scripted modules, bags of embeddings."""

from collections.abc import Iterator
from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, net, real, tokens, zeros

# Runs operators separately, so that the oracle sees each of them; scripts are fused otherwise.
torch._C._set_graph_executor_optimize(False)


@net(lambda mode: dict(bag=nn.EmbeddingBag(9, 4, mode=mode), head=nn.Linear(4, 3)))
def bag(m: Net, x: Tensor) -> Tensor:
    """Rows with an equal number of values."""
    return m.head(torch.tanh(m.bag(x)))


@net(lambda: dict(bag=nn.EmbeddingBag(9, 4, mode="sum"), weigh=nn.Linear(5, 5)))
def weighted_bag(m: Net, x: Tensor, importance: Tensor) -> Tensor:
    """Every value has a weight, which is trained through a layer."""
    return m.bag(x, per_sample_weights=m.weigh(importance))


@net(lambda mode: dict(starts=torch.tensor([0, 3, 4]), bag=nn.EmbeddingBag(9, 4, mode=mode)))
def ragged_bag(m: Net, x: Tensor) -> Tensor:
    """Bags of 3, 1 and 4 values."""
    return m.bag(x, m.starts)


@net(lambda: dict(bags=nn.ModuleList(nn.EmbeddingBag(7, 4, mode="sum") for _ in range(2)), dense=nn.Linear(3, 4), head=nn.Linear(12, 2)))
def many_bags(m: Net, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """A bag for each feature, together with dense features (DLRM)."""
    parts = [torch.relu(m.dense(x)), m.bags[0](first), m.bags[1](second)]
    return m.head(torch.cat(parts, 1))


@torch.jit.script
def settled(x: Tensor, weight: Tensor, bias: Tensor, turns: int) -> Tensor:
    state = torch.zeros_like(x)
    for i in range(turns):
        state = torch.tanh(F.linear(state, weight, bias) + x)
    return state


@net(lambda: dict(layer=nn.Linear(4, 4)))
def equilibrium(m: Net, x: Tensor) -> Tensor:
    """One layer, applied until it converges."""
    return settled(x, m.layer.weight, m.layer.bias, 3)


@torch.jit.script
def doubled(x: Tensor, weight: Tensor) -> Tensor:
    i = 1
    while i < 8:
        x = torch.sin(x * weight) + x
        i = i * 2
    return x


@net(lambda: dict(weight=zeros(4)))
def while_net(m: Net, x: Tensor) -> Tensor:
    """A loop that runs until a counter reaches its end."""
    return doubled(x, m.weight)


@torch.jit.script
def scaled(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    for i in range(2):
        for j in range(3):
            x = x + torch.sigmoid(torch.matmul(x, weight)) * scales[i + 2 * j]
    return x


@net(lambda: dict(weight=zeros(4, 4), scales=zeros(6)))
def nested(m: Net, x: Tensor) -> Tensor:
    """A nested loop whose counters are used."""
    return scaled(x, m.weight, m.scales)


@torch.jit.script
def recurred(x: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    state = torch.zeros_like(x[0])
    states: List[Tensor] = []
    for i in range(x.size(0)):
        state = torch.tanh(torch.matmul(x[i], inner) + torch.matmul(state, outer))
        states.append(state)
    return torch.stack(states, 1)


@net(lambda: dict(inner=zeros(4, 4), outer=zeros(4, 4)))
def scripted_recurrence(m: Net, x: Tensor) -> Tensor:
    """States of all steps in a list, stacked."""
    return recurred(x, m.inner, m.outer)


@torch.jit.script
def chained(x: Tensor, weight: Tensor) -> Tensor:
    parts: List[Tensor] = []
    previous = torch.zeros_like(x[:, :2])
    for part in torch.split(x, 2, 1):
        previous = torch.relu(torch.matmul(part + previous, weight))
        parts.append(previous)
    return torch.cat(parts, 1)


@net(lambda: dict(weight=zeros(2, 2)))
def scripted_scales(m: Net, x: Tensor) -> Tensor:
    """Groups of channels in order, each added to the previous result (Res2Net)."""
    return chained(x, m.weight)


@torch.jit.script
def picked(x: Tensor, weight: Tensor) -> Tensor:
    kept: List[Tensor] = []
    for row in torch.unbind(x, 1):
        kept.append(row * weight)
    kept.insert(0, kept[-1] + kept[1])
    for i in range(len(kept) - 1):
        kept.append(kept[i] - kept[i + 1])
    return torch.cat(kept, 1)


@net(lambda: dict(weight=zeros(4)))
def scripted_list(m: Net, x: Tensor) -> Tensor:
    """List elements inserted at the front and at the back, looked up from both ends."""
    return picked(x, m.weight).flatten(1)


@net(lambda: dict(first=nn.Linear(4, 4), rest=nn.Linear(4, 4)))
def tensor_split(m: Net, x: Tensor) -> Tensor:
    """The class token separated from the others, as in multi-scale transformers."""
    token, rest = torch.tensor_split(x, indices=(1,), dim=1)
    return torch.cat([m.first(token), torch.relu(m.rest(rest))], 1)


@torch.jit.script
def alternating(x: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    for i in range(4):
        if i % 2 == 0:
            x = torch.tanh(torch.matmul(x, even))
        else:
            x = x + torch.matmul(x, odd)
    return x


@net(lambda: dict(even=zeros(4, 4), odd=zeros(4, 4)))
def alternating_net(m: Net, x: Tensor) -> Tensor:
    """Layers of two alternating kinds, from a branch in a loop."""
    return alternating(x, m.even, m.odd)


def cases() -> Iterator[Case]:
    rows = [tokens("x", 3, 5, below=9)]
    fills = {"*bag*": (0.0, 0.5)}
    modes = ("sum", "mean", "max")
    yield Case("embedding_bag", lambda: beside(*map(bag, modes)), rows, fills=fills)
    yield Case("embedding_bag_ragged", lambda: beside(*map(ragged_bag, modes)), [tokens("x", 8, below=9)], fills=fills)
    yield Case("embedding_bag_opset_11", lambda: bag("mean"), rows, fills=fills, opset=11)
    yield Case("embedding_bag_weighted", weighted_bag, [*rows, real("importance", 3, 5)], fills=fills)
    features = [real("x", 3, 3), tokens("first", 3, 4, below=7), tokens("second", 3, 2, below=7)]
    yield Case("embedding_bags", many_bags, features, fills=fills)
    x = [real("x", 3, 4)]
    yield Case("loop_equilibrium", equilibrium, x)
    yield Case("loop_while", while_net, x)
    yield Case("loop_nested", nested, x)
    yield Case("list_recurrence", scripted_recurrence, [real("x", 3, 2, 4)])
    yield Case("list_scales", scripted_scales, [real("x", 3, 8)])
    yield Case("list_of_rows", scripted_list, [real("x", 2, 3, 4)])
    yield Case("tensor_split", tensor_split, [real("x", 2, 5, 4)])
    yield Case("branch_in_loop", alternating_net, [real("x", 3, 4)])
