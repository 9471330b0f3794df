"""Graphs and points: convolutions with a fixed adjacency, attention between neighbours, point sets."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

VERTICES = 5


def cases() -> Iterator[Case]:
    yield from convolutions()
    yield from points()


def adjacency() -> Tensor:
    """A ring with a chord, loops included."""
    ring = torch.roll(torch.eye(VERTICES), 1, 0)
    made = torch.eye(VERTICES) + ring + ring.t()
    made[0, 2] = made[2, 0] = 1.0
    return made


class GraphConvolution(nn.Module):
    """Two layers over a normalised adjacency that is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        made = adjacency()
        degree = made.sum(1).rsqrt()
        self.register_buffer("adjacency", degree[:, None] * made * degree[None, :])
        self.first = nn.Linear(4, 6, bias=False)
        self.second = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.adjacency @ self.first(x))
        return self.adjacency @ self.second(x)


class GraphAttention(nn.Module):
    """Scores of neighbours; others are masked by a buffer of large negative numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("far", (1.0 - adjacency()) * -1e9)
        self.layer = nn.Linear(4, 6, bias=False)
        self.left = nn.Parameter(torch.zeros(6, 1))
        self.right = nn.Parameter(torch.zeros(6, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        scores = F.leaky_relu(x @ self.left + (x @ self.right).transpose(1, 2), 0.2)
        return F.elu(torch.softmax(scores + self.far, -1) @ x)


class Isomorphism(nn.Module):
    """GIN: sums of neighbours, and the vertex itself with a trained weight."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency())
        self.epsilon = nn.Parameter(torch.zeros(1))
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.net((1.0 + self.epsilon) * x + self.adjacency @ x).sum(1)


class Chebyshev(nn.Module):
    """Polynomials of a Laplacian, each with its matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("laplacian", torch.eye(VERTICES) - adjacency() * 0.25)
        self.weight = nn.Parameter(torch.zeros(3, 4, 3))

    def forward(self, x: Tensor) -> Tensor:
        first = self.laplacian @ x
        second = 2.0 * (self.laplacian @ first) - x
        return sum(part @ weight for part, weight in zip((x, first, second), self.weight))


class MessagePassing(nn.Module):
    """Messages along edges that are fed in: rows are gathered and added up where they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(8, 5)
        self.update = nn.Linear(4 + 5, 4)

    def forward(self, x: Tensor, sources: Tensor, places: Tensor) -> Tensor:
        made = torch.relu(self.message(torch.cat([x[sources], x[places]], -1)))
        arrived = x.new_zeros(x.shape[0], 5).scatter_add(0, places.unsqueeze(1).expand(-1, 5), made)
        return self.update(torch.cat([x, arrived], -1))


class Propagated(nn.Module):
    """APPNP: predictions are spread with a share of the first ones."""

    def __init__(self) -> None:
        super().__init__()
        made = adjacency()
        self.register_buffer("adjacency", made / made.sum(1, keepdim=True))
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        first = made = self.head(x)
        for _ in range(3):
            made = 0.75 * (self.adjacency @ made) + 0.25 * first
        return made


def convolutions() -> Iterator[Case]:
    x = [real("x", 2, VERTICES, 4)]
    tags = ["buffer"]
    yield Case("graph_convolution", GraphConvolution, x, tags=tags, loss="cross_entropy", steps="adam")
    yield Case("graph_attention", GraphAttention, x, tags=tags)
    yield Case("graph_isomorphism", Isomorphism, x, tags=tags)
    yield Case("graph_chebyshev", Chebyshev, x, tags=tags)
    yield Case("graph_propagation", Propagated, x, tags=tags)
    edges = [tokens("sources", 8, below=VERTICES), tokens("places", 8, below=VERTICES)]
    yield Case("message_passing", MessagePassing, [real("x", VERTICES, 4), *edges])


# --- Points ----------------------------------------------------------------------------------


class PointNet(nn.Module):
    """A transform computed from the points, shared layers, the largest over all points."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Linear(4, 9)
        self.first = nn.Conv1d(3, 4, 1)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Conv1d(3, 6, 1)
        self.head = nn.Linear(6, 4)
        self.register_buffer("eye", torch.eye(3))

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.first(x))).max(-1)[0]
        matrix = self.transform(features).view(-1, 3, 3) + self.eye
        x = torch.bmm(x.transpose(1, 2), matrix).transpose(1, 2)
        return self.head(torch.relu(self.second(x)).max(-1)[0])


class DeepSets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
        self.together = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.together(self.each(x).sum(1))


class EdgeConv(nn.Module):
    """DGCNN: neighbours that are fed in, differences to them, the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        near = x[neighbours]
        own = x.unsqueeze(1).expand_as(near)
        return F.leaky_relu(self.layer(torch.cat([own, near - own], -1)), 0.2).max(1)[0]


class RelationNetwork(nn.Module):
    """A layer on all pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Linear(8, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        left = x.unsqueeze(1).expand(batch, count, count, width)
        right = x.unsqueeze(2).expand(batch, count, count, width)
        return self.head(torch.relu(self.pair(torch.cat([left, right], -1))).sum((1, 2)))


class TriangleUpdate(nn.Module):
    """AlphaFold: pairs are updated by products over a third vertex."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.left = nn.Linear(4, 3)
        self.right = nn.Linear(4, 3)
        self.gate = nn.Linear(4, 3)
        self.out = nn.Linear(3, 4)

    def forward(self, z: Tensor) -> Tensor:
        y = self.norm(z)
        left = torch.sigmoid(self.gate(y)) * self.left(y)
        made = torch.einsum("bikc,bjkc->bijc", left, self.right(y))
        return z + self.out(made)


def points() -> Iterator[Case]:
    yield Case("point_net", PointNet, [real("x", 2, 3, 6)], tags=["buffer"], loss="cross_entropy")
    yield Case("deep_sets", DeepSets, [real("x", 2, 5, 3)], steps="momentum")
    yield Case("edge_conv", EdgeConv, [real("x", 5, 3), tokens("neighbours", 5, 3, below=5)])
    yield Case("relation_network", RelationNetwork, [real("x", 2, 3, 4)])
    yield Case("triangle_update", TriangleUpdate, [real("z", 2, 3, 3, 4)], tags=["einsum"])
