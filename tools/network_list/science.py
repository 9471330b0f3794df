"""Fields and equations, graphs, sets of points."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Network, floats, mlp

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


NETWORKS: dict[str, Network] = {
    "pinn_heat": Network(Pinn, floats((2,)), "mse", batch=16),
    "fno_1d": Network(fno, floats((2, 64)), "mse"),
    "schnet": Network(Schnet, floats((10, 16), (10, 3)), "mse")}
