"""Who computes what is decided by the data: experts, capsules, slots, gates of channels."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, zeros


@net(
    lambda: dict(gate=nn.Linear(5, 3), experts=nn.ModuleList(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)) for _ in range(3)))
)
def soft_experts(m: Net, x: Tensor) -> Tensor:
    """All experts compute; their results are weighted."""
    share = torch.softmax(m.gate(x), -1)
    made = torch.stack([expert(x) for expert in m.experts], 1)
    return (share.unsqueeze(-1) * made).sum(1)


@net(lambda: dict(gate=nn.Linear(5, 3, bias=False), up=zeros(3, 5, 6), down=zeros(3, 6, 4)))
def batched_experts(m: Net, x: Tensor) -> Tensor:
    """Weights of all experts in one tensor, einsums over it."""
    share = torch.softmax(m.gate(x), -1)
    made = F.gelu(torch.einsum("td,edh->eth", x, m.up))
    return torch.einsum("eth,eho,te->to", made, m.down, share)


@net(lambda: dict(gate=nn.Linear(5, 4), up=zeros(4, 5, 6)))
def top_experts(m: Net, x: Tensor) -> Tensor:
    """The two best experts: the others' shares are made zero by comparing with the second best."""
    scores = m.gate(x)
    least = scores.topk(2, -1)[0][:, 1:]
    share = torch.softmax(scores.masked_fill(scores < least, float("-inf")), -1)
    return (torch.matmul(x, m.up) * share.t().unsqueeze(-1)).sum(0)


@net(lambda: dict(gate=nn.Linear(5, 3), up=zeros(3, 5, 6)))
def gathered_experts(m: Net, x: Tensor) -> Tensor:
    """The matrix of the best expert is picked for every token."""
    share, chosen = torch.softmax(m.gate(x), -1).max(-1, keepdim=True)
    return torch.bmm(x.unsqueeze(1), m.up[chosen.squeeze(-1)]).squeeze(1) * share


@net(lambda: dict(gate=nn.Linear(5, 4), experts=nn.ModuleList(nn.Linear(5, 3) for _ in range(4))))
def normalised_top(m: Net, x: Tensor) -> Tensor:
    """Shares of the two best, scattered back, as Mixtral has them."""
    scores = m.gate(x)
    best, chosen = scores.topk(2, -1)
    share = torch.zeros_like(scores).scatter(1, chosen, torch.softmax(best, -1))
    made = torch.stack([expert(x) for expert in m.experts], 1)
    return torch.bmm(share.unsqueeze(1), made).squeeze(1)


def squashed(x: Tensor) -> Tensor:
    square = x.square().sum(-1, keepdim=True)
    return x * square / ((1.0 + square) * torch.sqrt(square + 0.001))


@net(lambda: dict(weight=zeros(1, 4, 3, 5, 2)))
def capsules(m: Net, x: Tensor) -> Tensor:
    """Dynamic routing between capsules, three rounds."""
    votes = torch.matmul(m.weight, squashed(x)[:, :, None, :, None]).squeeze(-1)
    logits = x.new_zeros(x.shape[0], 4, 3)
    for i in range(3):
        made = squashed((torch.softmax(logits, -1).unsqueeze(-1) * votes).sum(1))
        if i < 2:
            logits = logits + (votes * made.unsqueeze(1)).sum(-1)
    return made.norm(dim=-1)


@net(lambda: dict(
    slots=zeros(1, 3, 4), inputs=nn.LayerNorm(5), norm=nn.LayerNorm(4), q=nn.Linear(4, 4, bias=False),
    k=nn.Linear(5, 4, bias=False), v=nn.Linear(5, 4, bias=False), cell=nn.GRUCell(4, 4),
))  # fmt: skip
def slot_attention(m: Net, x: Tensor) -> Tensor:
    """Slots compete for inputs and are updated by a cell."""
    x = m.inputs(x)
    k, v = m.k(x), m.v(x)
    slots = m.slots.expand(x.shape[0], 3, 4)
    for _ in range(2):
        scores = torch.softmax(torch.bmm(k, m.q(m.norm(slots)).transpose(1, 2)) * 0.5, -1) + 0.001
        weights = scores / scores.sum(1, keepdim=True)
        updates = torch.bmm(weights.transpose(1, 2), v)
        slots = m.cell(updates.reshape(-1, 4), slots.reshape(-1, 4)).view(-1, 3, 4)
    return slots


@net(lambda: dict(assign=nn.Conv2d(4, 3, 1), centres=zeros(3, 4)))
def net_vlad(m: Net, x: Tensor) -> Tensor:
    """Residuals from trained centres, by soft assignment."""
    batch, channels = x.shape[:2]
    x = F.normalize(x, dim=1)
    share = torch.softmax(m.assign(x).view(batch, 3, -1), 1)
    flat = x.view(batch, channels, -1)
    residual = flat.unsqueeze(1) - m.centres.unsqueeze(0).unsqueeze(-1)
    made = (residual * share.unsqueeze(2)).sum(-1)
    return F.normalize(F.normalize(made, dim=2).view(batch, -1), dim=1)


@net(lambda: dict(conv=nn.Conv2d(3, 6, 3), down=nn.Conv2d(6, 2, 1), up=nn.Conv2d(2, 6, 1)))
def squeeze_excite(m: Net, x: Tensor) -> Tensor:
    x = F.silu(m.conv(x))
    gate = torch.sigmoid(m.up(F.silu(m.down(F.adaptive_avg_pool2d(x, 1)))))
    return x * gate


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), mean_share=zeros(3), variance_share=zeros(3), weight=zeros(1, 4, 1, 1), bias=zeros(1, 4, 1, 1)))
def switchable_norm(net_: Net, x: Tensor) -> Tensor:
    """A mixture of the statistics of instances, layers and the batch."""
    x = net_.conv(x)
    instance = x.mean((2, 3), keepdim=True)
    spread = (x - instance).square().mean((2, 3), keepdim=True)
    square = spread + instance.square()
    layer, batch = instance.mean(1, keepdim=True), instance.mean(0, keepdim=True)
    of_layer = square.mean(1, keepdim=True) - layer.square()
    of_batch = square.mean(0, keepdim=True) - batch.square()
    m, v = torch.softmax(net_.mean_share, 0), torch.softmax(net_.variance_share, 0)
    mean = m[0] * instance + m[1] * layer + m[2] * batch
    variance = v[0] * spread + v[1] * of_layer + v[2] * of_batch
    return (x - mean) / torch.sqrt(variance + 0.001) * net_.weight + net_.bias


@net(lambda: dict(first=nn.Conv2d(3, 4, 3, padding=1), gate=nn.Conv2d(2, 1, 3, padding=1)))
def spatial_attention(m: Net, x: Tensor) -> Tensor:
    """CBAM: attention over positions from the mean and the largest of all channels."""
    x = m.first(x)
    pooled = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
    return x * torch.sigmoid(m.gate(pooled))


def cases() -> Iterator[Case]:
    x = [real("x", 4, 5)]
    yield Case("experts_soft", soft_experts, x)
    yield Case("experts_batched", batched_experts, x)
    yield Case("experts_top_two", top_experts, x)
    yield Case("experts_gathered", gathered_experts, x)
    yield Case("experts_scattered", normalised_top, x)
    yield Case("capsule_routing", capsules, [real("x", 2, 4, 2)])
    yield Case("slot_attention", slot_attention, [real("x", 2, 5, 5)])
    yield Case("net_vlad", net_vlad, [real("x", 2, 4, 3, 3)])
    image = [real("x", 2, 3, 6, 6)]
    yield Case("squeeze_excite", squeeze_excite, image)
    yield Case("switchable_norm", switchable_norm, image)
    yield Case("spatial_attention", spatial_attention, image)
