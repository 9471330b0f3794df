"""Graphs and points: convolutions with a fixed adjacency, attention between neighbours, point sets."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros

VERTICES = 5


def adjacency() -> Tensor:
    """A ring with a chord, loops included."""
    ring = torch.roll(torch.eye(VERTICES), 1, 0)
    made = torch.eye(VERTICES) + ring + ring.t()
    made[0, 2] = made[2, 0] = 1.0
    return made


def normalised_adjacency() -> Tensor:
    degree = adjacency().sum(1).rsqrt()
    return degree[:, None] * adjacency() * degree[None, :]


@net(lambda: dict(adjacency=normalised_adjacency(), first=nn.Linear(4, 6, bias=False), second=nn.Linear(6, 3)))
def graph_convolution(m: Net, x: Tensor) -> Tensor:
    """Two layers over a normalised adjacency that is a buffer."""
    return m.adjacency @ m.second(torch.relu(m.adjacency @ m.first(x)))


@net(lambda: dict(far=(1.0 - adjacency()) * -1e9, layer=nn.Linear(4, 6, bias=False), left=zeros(6, 1), right=zeros(6, 1)))
def graph_attention(m: Net, x: Tensor) -> Tensor:
    """Scores of neighbours; others are masked by a buffer of large negative numbers."""
    x = m.layer(x)
    scores = F.leaky_relu(x @ m.left + (x @ m.right).transpose(1, 2), 0.2)
    return F.elu(torch.softmax(scores + m.far, -1) @ x)


@net(lambda: dict(adjacency=adjacency(), epsilon=zeros(1), net=nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))))
def isomorphism(m: Net, x: Tensor) -> Tensor:
    """GIN: sums of neighbours, and the vertex itself with a trained weight."""
    return m.net((1.0 + m.epsilon) * x + m.adjacency @ x).sum(1)


@net(lambda: dict(laplacian=torch.eye(VERTICES) - adjacency() * 0.25, weight=zeros(3, 4, 3)))
def chebyshev(m: Net, x: Tensor) -> Tensor:
    """Polynomials of a Laplacian, each with its matrix."""
    first = m.laplacian @ x
    second = 2.0 * (m.laplacian @ first) - x
    return sum(part @ weight for part, weight in zip((x, first, second), m.weight))


@net(lambda: dict(message=nn.Linear(8, 5), update=nn.Linear(4 + 5, 4)))
def message_passing(m: Net, x: Tensor, sources: Tensor, places: Tensor) -> Tensor:
    """Messages along edges that are fed in: rows are gathered and added up where they arrive."""
    made = torch.relu(m.message(torch.cat([x[sources], x[places]], -1)))
    arrived = x.new_zeros(x.shape[0], 5).scatter_add(0, places.unsqueeze(1).expand(-1, 5), made)
    return m.update(torch.cat([x, arrived], -1))


@net(lambda: dict(adjacency=adjacency() / adjacency().sum(1, keepdim=True), head=nn.Linear(4, 3)))
def propagated(m: Net, x: Tensor) -> Tensor:
    """APPNP: predictions are spread with a share of the first ones."""
    first = made = m.head(x)
    for _ in range(3):
        made = 0.75 * (m.adjacency @ made) + 0.25 * first
    return made


@net(lambda: dict(
    transform=nn.Linear(4, 9), first=nn.Conv1d(3, 4, 1), norm=nn.BatchNorm1d(4), second=nn.Conv1d(3, 6, 1), head=nn.Linear(6, 4),
    eye=torch.eye(3),
))  # fmt: skip
def point_net(m: Net, x: Tensor) -> Tensor:
    """A transform computed from the points, shared layers, the largest over all points."""
    features = torch.relu(m.norm(m.first(x))).max(-1)[0]
    matrix = m.transform(features).view(-1, 3, 3) + m.eye
    x = torch.bmm(x.transpose(1, 2), matrix).transpose(1, 2)
    return m.head(torch.relu(m.second(x)).max(-1)[0])


@net(lambda: dict(each=nn.Sequential(nn.Linear(3, 5), nn.ReLU()), together=nn.Linear(5, 2)))
def deep_sets(m: Net, x: Tensor) -> Tensor:
    return m.together(m.each(x).sum(1))


@net(lambda: dict(layer=nn.Linear(6, 5)))
def edge_conv(m: Net, x: Tensor, neighbours: Tensor) -> Tensor:
    """DGCNN: neighbours that are fed in, differences to them, the largest."""
    near = x[neighbours]
    own = x.unsqueeze(1).expand_as(near)
    return F.leaky_relu(m.layer(torch.cat([own, near - own], -1)), 0.2).max(1)[0]


@net(lambda: dict(pair=nn.Linear(8, 5), head=nn.Linear(5, 2)))
def relation_network(m: Net, x: Tensor) -> Tensor:
    """A layer on all pairs."""
    batch, count, width = x.shape
    left = x.unsqueeze(1).expand(batch, count, count, width)
    right = x.unsqueeze(2).expand(batch, count, count, width)
    return m.head(torch.relu(m.pair(torch.cat([left, right], -1))).sum((1, 2)))


@net(lambda: dict(norm=nn.LayerNorm(4), left=nn.Linear(4, 3), right=nn.Linear(4, 3), gate=nn.Linear(4, 3), out=nn.Linear(3, 4)))
def triangle_update(m: Net, z: Tensor) -> Tensor:
    """AlphaFold: pairs are updated by products over a third vertex."""
    y = m.norm(z)
    left = torch.sigmoid(m.gate(y)) * m.left(y)
    made = torch.einsum("bikc,bjkc->bijc", left, m.right(y))
    return z + m.out(made)


def cases() -> Iterator[Case]:
    x = [real("x", 2, VERTICES, 4)]
    yield Case("graph_convolution", graph_convolution, x, loss="cross_entropy")
    yield Case("graph_attention", graph_attention, x)
    yield Case("graph_isomorphism", isomorphism, x)
    yield Case("graph_chebyshev", chebyshev, x)
    yield Case("graph_propagation", propagated, x)
    edges = [tokens("sources", 8, below=VERTICES), tokens("places", 8, below=VERTICES)]
    yield Case("message_passing", message_passing, [real("x", VERTICES, 4), *edges])
    yield Case("point_net", point_net, [real("x", 2, 3, 6)], loss="cross_entropy")
    yield Case("deep_sets", deep_sets, [real("x", 2, 5, 3)])
    yield Case("edge_conv", edge_conv, [real("x", 5, 3), tokens("neighbours", 5, 3, below=5)])
    yield Case("relation_network", relation_network, [real("x", 2, 3, 4)])
    yield Case("triangle_update", triangle_update, [real("z", 2, 3, 3, 4)])
