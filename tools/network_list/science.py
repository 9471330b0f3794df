"""Fields and equations, graphs, sets of points."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Lambda, Network, floats, mlp

GRAPH = floats((20, 16), (20, 20))  # features and adjacency


class Nerf(nn.Module):
    """Density and colour of points seen from directions (Mildenhall et al. 2020)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first, self.second = mlp(63, width, width, width), mlp(63 + width, width, width)
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.colour = nn.Sequential(*mlp(width + 27, 32, 3), nn.Sigmoid())

    @staticmethod
    def encode(x: Tensor, octaves: int) -> Tensor:
        waves = [f(x * 2.0**i) for i in range(octaves) for f in (torch.sin, torch.cos)]
        return torch.cat([x, *waves], -1)

    def forward(self, points: Tensor, directions: Tensor) -> Tensor:
        place = self.encode(points, 10)
        x = F.relu(self.second(torch.cat([place, F.relu(self.first(place))], -1)))
        density = F.relu(self.density(x)).squeeze(-1)
        colour = self.colour(torch.cat([self.feature(x), self.encode(directions, 4)], -1))
        opacity = 1 - torch.exp(-density * 0.1)
        passed = torch.cumsum(torch.log(1 - opacity + 1e-10), -1)
        weights = opacity * torch.cat([torch.ones_like(opacity[:, :1]), passed[:, :-1].exp()], -1)
        return (weights.unsqueeze(-1) * colour).sum(1)


def siren() -> nn.Module:
    """Sines between linear layers (Sitzmann et al. 2020)."""

    def sine() -> nn.Module:
        return Lambda(lambda x: torch.sin(30 * x))

    return mlp(2, 64, 64, 64, 3, act=sine)


class Pinn(nn.Module):
    """The residual of an equation of heat that decays (Raissi et al. 2019): derivatives by hand."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, width) for a in (2, width))
        self.head = nn.Linear(width, 1, bias=False)
        self.conductivity = nn.Parameter(torch.tensor(0.1))

    def forward(self, points: Tensor) -> Tensor:
        u, time, space = points, torch.zeros_like(points), torch.zeros_like(points)
        time, space = time + torch.tensor([1.0, 0.0]), space + torch.tensor([0.0, 1.0])
        curve = torch.zeros_like(points)
        for layer in self.layers:
            u = torch.tanh(layer(u))
            time, space, curve = (part @ layer.weight.t() for part in (time, space, curve))
            slope = 1 - u * u
            curve = slope * curve - 2 * u * slope * space * space
            time, space = slope * time, slope * space
        return self.head(u) + self.head(time) - self.conductivity * self.head(curve)


class DeepONet(nn.Module):
    """An operator from samples of a function to its values at points (Lu et al. 2021)."""

    def __init__(self) -> None:
        super().__init__()
        self.branch, self.trunk = mlp(50, 64, 32), mlp(1, 64, 32, act=nn.Tanh)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, function: Tensor, points: Tensor) -> Tensor:
        return torch.einsum("bp,bnp->bn", self.branch(function), self.trunk(points)) + self.bias


class Spectral(nn.Module):
    """FNO's layer (Li et al. 2021): few modes of a transform, as products with real matrices."""

    def __init__(self, width: int = 16, length: int = 64, modes: int = 12) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(length), torch.arange(modes)) * (2 * math.pi / length)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.real = nn.Parameter(0.01 * torch.randn(modes, width, width))
        self.imaginary = nn.Parameter(0.01 * torch.randn(modes, width, width))
        self.local = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        a, b = ((x @ table).permute(2, 0, 1) for table in (self.cos, self.sin))
        a, b = a @ self.real + b @ self.imaginary, b @ self.real - a @ self.imaginary
        a, b = a.permute(1, 2, 0), b.permute(1, 2, 0)
        return F.gelu(a @ self.cos.t() + b @ self.sin.t() + self.local(x))


def fno() -> nn.Module:
    enter, leave = nn.Conv1d(2, 16, 1), nn.Conv1d(16, 1, 1)
    return nn.Sequential(enter, Spectral(), Spectral(), leave)


class NeuralOde(nn.Module):
    """A field integrated by four Runge-Kutta steps (Chen et al. 2018): one MLP, many uses."""

    def __init__(self) -> None:
        super().__init__()
        self.field, self.head = mlp(8, 32, 8, act=nn.Tanh), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(4):
            k1 = self.field(x)
            k2 = self.field(x + 0.125 * k1)
            k3 = self.field(x + 0.125 * k2)
            k4 = self.field(x + 0.25 * k3)
            x = x + 0.25 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return self.head(x)


class Kan(nn.Module):
    """A layer of learned functions, each of radial bases (Liu et al. 2024)."""

    def __init__(self, before: int, after: int, bases: int = 6) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(-1, 1, bases))
        self.weight = nn.Parameter(0.1 * torch.randn(before, bases, after))
        self.base = nn.Linear(before, after, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        bases = torch.exp(-(((x.unsqueeze(-1) - self.centres) * 3) ** 2))
        return self.base(F.silu(x)) + torch.einsum("bik,iko->bo", bases, self.weight)


class GraphLayer(nn.Module):
    """Neighbours by a dense adjacency: gcn, sage, gin or gat."""

    def __init__(self, kind: str, before: int, after: int) -> None:
        super().__init__()
        self.kind = kind
        self.own = nn.Linear(before, after, bias=kind != "gat")
        self.neighbours = nn.Linear(before, after, bias=False) if kind == "sage" else None
        self.share = nn.Parameter(torch.zeros(())) if kind == "gin" else None
        self.deep = mlp(before, after, after) if kind == "gin" else None
        self.weigh = nn.ParameterList(nn.Parameter(0.1 * torch.randn(after, 1)) for _ in range(2 * (kind == "gat")))
        if kind == "gin":
            self.own = nn.Identity()

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        if self.kind == "gcn":
            scale = torch.rsqrt(edges.abs().sum(-1, keepdim=True) + 1)
            return self.own(scale * (edges @ (scale * x)))
        if self.kind == "sage":
            mean = edges @ x / edges.abs().sum(-1, keepdim=True).clamp(min=1)
            return F.normalize(self.own(x) + self.neighbours(mean), dim=-1)
        if self.kind == "gin":
            return self.deep((1 + self.share) * x + edges @ x)
        h = self.own(x)
        scores = F.leaky_relu(h @ self.weigh[0] + (h @ self.weigh[1]).transpose(1, 2), 0.2)
        scores = torch.where(edges > 0, scores, torch.full_like(scores, -1e9))
        return scores.softmax(-1) @ h


class Graph(nn.Module):
    """Two such layers, classes of all nodes."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first, self.second = GraphLayer(kind, 16, 32), GraphLayer(kind, 32, 7)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(F.elu(self.first(x, edges)), edges)


class MessagePassing(nn.Module):
    """Edges as lists: gathered, transformed, added up by scattering."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.message, self.update = mlp(2 * width, 32, width), nn.GRUCell(width, width)
        self.head = nn.Linear(width, 7)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        for _ in range(2):
            messages = self.message(torch.cat([x[sources], x[targets]], -1))
            places = targets.unsqueeze(-1).expand(-1, messages.shape[-1])
            x = self.update(torch.zeros_like(x).scatter_add(0, places, messages), x)
        return self.head(x)


class Schnet(nn.Module):
    """Continuous filters of distances between atoms (Schuett et al. 2017)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(16, width, bias=False), mlp(width, width, 1, act=nn.Softplus)
        self.register_buffer("centres", torch.linspace(0, 5, 20))
        self.filter = mlp(20, width, width, act=nn.Softplus)
        self.update = mlp(width, width, width, act=nn.Softplus)

    def forward(self, atoms: Tensor, places: Tensor) -> Tensor:
        offsets = places.unsqueeze(1) - places.unsqueeze(2)
        distance = (offsets.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()
        filters = self.filter(torch.exp(-10 * (distance - self.centres) ** 2))
        x = self.enter(atoms)
        x = x + self.update((filters * x.unsqueeze(1)).sum(2))
        return self.leave(x).sum(1)


class PointNet(nn.Module):
    """Points, a transform of them, their maximum (Qi et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1))
        self.matrix = mlp(64, 32, 9)
        self.layers = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 128, 1))
        self.head = mlp(128, 64, 10)

    def forward(self, x: Tensor) -> Tensor:
        matrix = self.matrix(self.transform(x).max(-1).values).view(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(matrix, x)
        return F.log_softmax(self.head(self.layers(x).max(-1).values), -1)


class PointGroups(nn.Module):
    """PointNet++ and DGCNN in short: the nearest neighbours of every point, their maximum."""

    def __init__(self, neighbours: int = 8) -> None:
        super().__init__()
        self.neighbours = neighbours
        self.first, self.second = mlp(6, 32, 64), mlp(64, 128, 10)

    def forward(self, x: Tensor) -> Tensor:
        square = x.pow(2).sum(-1)
        distance = square.unsqueeze(2) + square.unsqueeze(1) - 2 * x @ x.transpose(1, 2)
        places = (-distance).topk(self.neighbours, -1).indices.flatten(1).unsqueeze(-1).expand(-1, -1, 3)
        near = x.gather(1, places).view(-1, 32, self.neighbours, 3)
        centre = x.unsqueeze(2).expand_as(near)
        grouped = self.first(torch.cat([near - centre, centre], -1)).amax(2)
        return self.second(grouped.amax(1))


def edge_lists(batch: int) -> tuple[Tensor, ...]:
    return torch.randn(20, 16), torch.randint(20, (60,)), torch.randint(20, (60,))


NETWORKS: dict[str, Network] = {
    "nerf": Network(Nerf, floats((16, 3), (16, 3)), "mse"), "siren": Network(siren, floats((2,)), "mse", batch=16),
    "pinn_heat": Network(Pinn, floats((2,)), "mse", batch=16),
    "deeponet": Network(DeepONet, floats((50,), (20, 1)), "mse"), "fno_1d": Network(fno, floats((2, 64)), "mse"),
    "neural_ode_rk4": Network(NeuralOde, floats((8,))),
    "kan_radial": Network(lambda: nn.Sequential(Kan(8, 16), Kan(16, 2)), floats((8,))),
    "gcn": Network(lambda: Graph("gcn"), GRAPH), "graph_sage": Network(lambda: Graph("sage"), GRAPH),
    "gin": Network(lambda: Graph("gin"), GRAPH), "gat": Network(lambda: Graph("gat"), GRAPH),
    "message_passing_edges": Network(MessagePassing, edge_lists, opset=16, fixed=True),
    "schnet": Network(Schnet, floats((10, 16), (10, 3)), "mse"), "pointnet": Network(PointNet, floats((3, 64))),
    "pointnet_plus_plus": Network(PointGroups, floats((32, 3)))}
