"""Who computes what is decided by the data: experts, capsules, slots, gates of channels."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real


def cases() -> Iterator[Case]:
    yield from experts()
    yield from agreement()
    yield from channels()


# --- Experts ---------------------------------------------------------------------------------


class SoftExperts(nn.Module):
    """All experts compute; their results are weighted."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(5, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        share = torch.softmax(self.gate(x), -1)
        made = torch.stack([expert(x) for expert in self.experts], 1)
        return (share.unsqueeze(-1) * made).sum(1)


class BatchedExperts(nn.Module):
    """Weights of all experts in one tensor, einsums over it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(5, 3, bias=False)
        self.up = nn.Parameter(torch.zeros(3, 5, 6))
        self.down = nn.Parameter(torch.zeros(3, 6, 4))

    def forward(self, x: Tensor) -> Tensor:
        share = torch.softmax(self.gate(x), -1)
        made = F.gelu(torch.einsum("td,edh->eth", x, self.up))
        return torch.einsum("eth,eho,te->to", made, self.down, share)


class TopExperts(nn.Module):
    """The two best experts: the others' shares are made zero by comparing with the second best."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(5, 4)
        self.up = nn.Parameter(torch.zeros(4, 5, 6))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x)
        least = scores.topk(2, -1)[0][:, 1:]
        share = torch.softmax(scores.masked_fill(scores < least, float("-inf")), -1)
        return (torch.matmul(x, self.up) * share.t().unsqueeze(-1)).sum(0)


class GatheredExperts(nn.Module):
    """The matrix of the best expert is picked for every token."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(5, 3)
        self.up = nn.Parameter(torch.zeros(3, 5, 6))

    def forward(self, x: Tensor) -> Tensor:
        share, chosen = torch.softmax(self.gate(x), -1).max(-1, keepdim=True)
        return torch.bmm(x.unsqueeze(1), self.up[chosen.squeeze(-1)]).squeeze(1) * share


class NormalisedTop(nn.Module):
    """Shares of the two best, scattered back, as Mixtral has them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(5, 4)
        self.experts = nn.ModuleList(nn.Linear(5, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x)
        best, chosen = scores.topk(2, -1)
        share = torch.zeros_like(scores).scatter(1, chosen, torch.softmax(best, -1))
        made = torch.stack([expert(x) for expert in self.experts], 1)
        return torch.bmm(share.unsqueeze(1), made).squeeze(1)


def experts() -> Iterator[Case]:
    x = [real("x", 4, 5)]
    yield Case("experts_soft", SoftExperts, x, steps="adam")
    yield Case("experts_batched", BatchedExperts, x, tags=["einsum"])
    yield Case("experts_top_two", TopExperts, x)
    yield Case("experts_gathered", GatheredExperts, x)
    yield Case("experts_scattered", NormalisedTop, x)


# --- Agreement -------------------------------------------------------------------------------


def squashed(x: Tensor) -> Tensor:
    square = x.square().sum(-1, keepdim=True)
    return x * square / ((1.0 + square) * torch.sqrt(square + 0.001))


class Capsules(nn.Module):
    """Dynamic routing between capsules, three rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 4, 3, 5, 2))

    def forward(self, x: Tensor) -> Tensor:
        votes = torch.matmul(self.weight, squashed(x)[:, :, None, :, None]).squeeze(-1)
        logits = x.new_zeros(x.shape[0], 4, 3)
        for i in range(3):
            made = squashed((torch.softmax(logits, -1).unsqueeze(-1) * votes).sum(1))
            if i < 2:
                logits = logits + (votes * made.unsqueeze(1)).sum(-1)
        return made.norm(dim=-1)


class SlotAttention(nn.Module):
    """Slots compete for inputs and are updated by a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = nn.Parameter(torch.zeros(1, 3, 4))
        self.inputs = nn.LayerNorm(5)
        self.norm = nn.LayerNorm(4)
        self.q = nn.Linear(4, 4, bias=False)
        self.k = nn.Linear(5, 4, bias=False)
        self.v = nn.Linear(5, 4, bias=False)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inputs(x)
        k, v = self.k(x), self.v(x)
        slots = self.slots.expand(x.shape[0], 3, 4)
        for _ in range(2):
            scores = torch.softmax(torch.bmm(k, self.q(self.norm(slots)).transpose(1, 2)) * 0.5, -1) + 0.001
            weights = scores / scores.sum(1, keepdim=True)
            updates = torch.bmm(weights.transpose(1, 2), v)
            slots = self.cell(updates.reshape(-1, 4), slots.reshape(-1, 4)).view(-1, 3, 4)
        return slots


class NetVlad(nn.Module):
    """Residuals from trained centres, by soft assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.assign = nn.Conv2d(4, 3, 1)
        self.centres = nn.Parameter(torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels = x.shape[:2]
        x = F.normalize(x, dim=1)
        share = torch.softmax(self.assign(x).view(batch, 3, -1), 1)
        flat = x.view(batch, channels, -1)
        residual = flat.unsqueeze(1) - self.centres.unsqueeze(0).unsqueeze(-1)
        made = (residual * share.unsqueeze(2)).sum(-1)
        return F.normalize(F.normalize(made, dim=2).view(batch, -1), dim=1)


def agreement() -> Iterator[Case]:
    yield Case("capsule_routing", Capsules, [real("x", 2, 4, 2)])
    yield Case("slot_attention", SlotAttention, [real("x", 2, 5, 5)])
    yield Case("net_vlad", NetVlad, [real("x", 2, 4, 3, 3)])


# --- Channels --------------------------------------------------------------------------------


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.down = nn.Conv2d(6, 2, 1)
        self.up = nn.Conv2d(2, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.conv(x))
        gate = torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))
        return x * gate


class SwitchableNorm(nn.Module):
    """A mixture of the statistics of instances, layers and the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.mean_share = nn.Parameter(torch.zeros(3))
        self.variance_share = nn.Parameter(torch.zeros(3))
        self.weight = nn.Parameter(torch.zeros(1, 4, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, 4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        instance = x.mean((2, 3), keepdim=True)
        spread = (x - instance).square().mean((2, 3), keepdim=True)
        square = spread + instance.square()
        layer, batch = instance.mean(1, keepdim=True), instance.mean(0, keepdim=True)
        of_layer = square.mean(1, keepdim=True) - layer.square()
        of_batch = square.mean(0, keepdim=True) - batch.square()
        m, v = torch.softmax(self.mean_share, 0), torch.softmax(self.variance_share, 0)
        mean = m[0] * instance + m[1] * layer + m[2] * batch
        variance = v[0] * spread + v[1] * of_layer + v[2] * of_batch
        return (x - mean) / torch.sqrt(variance + 0.001) * self.weight + self.bias


class SpatialAttention(nn.Module):
    """CBAM: attention over positions from the mean and the largest of all channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.gate = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        pooled = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
        return x * torch.sigmoid(self.gate(pooled))


def channels() -> Iterator[Case]:
    image = [real("x", 2, 3, 6, 6)]
    yield Case("squeeze_excite", SqueezeExcite, image, steps="momentum")
    yield Case("switchable_norm", SwitchableNorm, image)
    yield Case("spatial_attention", SpatialAttention, image)
