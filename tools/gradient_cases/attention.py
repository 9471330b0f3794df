"""Attention as exported."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from gradient_cases.framework import Case, Node, buffer, constant, data, exported, f32, graph, in_turn
from net import Net, net


def cases() -> Iterator[Case]:
    return in_turn(chains, modules)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-1, -2) * scale
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


def chains() -> Iterator[Case]:
    for name, q, k in (("matrix", (3, 4), (5, 4)), ("batch", (2, 3, 4), (2, 3, 4)),
                       ("heads", (2, 2, 3, 4), (2, 2, 5, 4))):
        order = list(range(len(q)))
        order[-1], order[-2] = order[-2], order[-1]
        head = [Node("Transpose", ["K"], ["T"], {"perm": order}), Node("MatMul", ["Q", "T"], ["S"])]
        tail = [Node("Softmax", ["M"], ["P"], {"axis": -1}), Node("MatMul", ["P", "V"], ["Y"])]
        operands = [data("Q", q), data("K", k), data("V", k)]
        score = (*q[:-1], k[-2])
        yield graph(f"attention_{name}", [*head, Node("Softmax", ["S"], ["P"], {"axis": -1}), tail[1]],
                    operands, lambda q, k, v: attention(q, k, v, 1.0))
        yield graph(f"attention_{name}_scaled", [*head, Node("Div", ["S", "root"], ["M"]), *tail],
                    [*operands, constant("root", 2.0)], lambda q, k, v, root: attention(q, k, v, 0.5))
        yield graph(f"attention_{name}_masked",
                    [*head, Node("Mul", ["scale", "S"], ["N"]), Node("Add", ["N", "mask"], ["M"]), *tail],
                    [*operands, constant("scale", 0.25), buffer("mask", score[-2:])],
                    lambda q, k, v, scale, mask: attention(q, k, v, 0.25, mask))
        causal = np.tril(np.ones(score[-2:], dtype=bool))
        yield graph(f"attention_{name}_causal",
                    [*head, Node("Div", ["S", "root"], ["N"]), Node("Where", ["keep", "N", "low"], ["M"]), *tail],
                    [*operands, constant("root", 2.0), constant("keep", causal), constant("low", -1e4)],
                    lambda q, k, v, root, keep, low: attention_where(q, k, v, keep, low))
        yield graph(f"attention_{name}_filled",
                    [*head, Node("Where", ["drop", "low", "S"], ["N"]), Node("Add", ["mask", "N"], ["M"]), *tail],
                    [*operands, constant("drop", ~causal), constant("low", -3.0),
                     buffer("mask", (1,) * (len(score) - 1) + score[-1:])],
                    lambda q, k, v, drop, low, mask: torch.softmax(
                        torch.where(drop, low, q @ k.transpose(-1, -2)) + mask, -1) @ v)
        yield graph(f"attention_{name}_filled_last",
                    [*head, Node("Add", ["S", "mask"], ["N"]), Node("Where", ["drop", "low", "N"], ["M"]), *tail],
                    [*operands, constant("drop", ~causal), constant("low", -3.0), buffer("mask", score)],
                    lambda q, k, v, drop, low, mask: torch.softmax(
                        torch.where(drop, low, q @ k.transpose(-1, -2) + mask), -1) @ v)
        yield graph(f"attention_{name}_trained_bias", [*head, Node("Add", ["S", "bias"], ["M"]), *tail],
                    [*operands, data("bias", score[-2:])], lambda q, k, v, bias: attention(q, k, v, 1.0, bias))


def attention_where(q: Tensor, k: Tensor, v: Tensor, keep: Tensor, low: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / 2.0
    return torch.softmax(torch.where(keep, scores, low), -1) @ v


@net(lambda width, heads: dict(heads=heads, inner=nn.Linear(width, 3 * width), outer=nn.Linear(width, width)))
def causal(m: Net, x: Tensor) -> Tensor:
    """GPT-2's attention."""
    batch, steps, width = x.shape
    parts = m.inner(x).split(width, dim=2)
    q, k, v = (part.view(batch, steps, m.heads, width // m.heads).transpose(1, 2) for part in parts)
    scores = q @ k.transpose(-2, -1) / math.sqrt(width // m.heads)
    keep = torch.tril(torch.ones(steps, steps)).bool().view(1, 1, steps, steps)
    scores = scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
    y = torch.softmax(scores, -1) @ v
    return m.outer(y.transpose(1, 2).reshape(batch, steps, width))


OFFSETS = torch.arange(4).view(1, 4) - torch.arange(4).view(4, 1) + 3


@net(lambda: dict(inner=nn.Linear(6, 18), table=nn.Parameter(torch.zeros(7, 2))))
def relative(m: Net, x: Tensor) -> Tensor:
    """Attention in a window with a learned bias (Swin)."""
    q, k, v = m.inner(x).reshape(3, 4, 3, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
    bias = m.table[OFFSETS.view(-1)].view(4, 4, 2).permute(2, 0, 1)
    scores = (q * f32(0.5)) @ k.transpose(-2, -1) + bias.unsqueeze(0)
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(3, 4, 6)


@net(lambda: dict(layer=nn.MultiheadAttention(4, 2, batch_first=True)))
def cross(m: Net, x: Tensor, y: Tensor) -> Tensor:
    """nn.MultiheadAttention of one sequence to another."""
    return m.layer(x, y, y, need_weights=False)[0]


@net(lambda: dict(q=nn.Linear(8, 8, bias=False), kv=nn.Linear(8, 8, bias=False)))
def grouped(m: Net, x: Tensor) -> Tensor:
    """Two query heads share one head of keys and values."""
    q = m.q(x).view(2, 3, 4, 2).transpose(1, 2)
    k, v = m.kv(x).view(2, 3, 2, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
    k, v = (t[:, :, None].expand(2, 2, 2, 3, 2).reshape(2, 4, 3, 2) for t in (k, v))
    y = torch.softmax(q @ k.transpose(-1, -2) * f32(0.7), -1) @ v
    return y.transpose(1, 2).reshape(2, 3, 8)


def modules() -> Iterator[Case]:
    x = data("input", (2, 4, 6))
    yield exported("exported_causal", causal(6, 2), [x])
    yield exported("exported_causal_one_head", causal(4, 1), [data("input", (1, 5, 4))])
    yield exported("exported_relative", relative(), [data("input", (3, 4, 6))])
    yield exported("exported_cross", cross(), [data("x", (2, 3, 4)), data("y", (2, 5, 4))])
    yield exported("exported_grouped", grouped(), [data("input", (2, 3, 8))])
    block = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    yield exported("exported_encoder", block, [data("input", (2, 3, 4))])
    block = nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0, batch_first=True, norm_first=True)
    yield exported("exported_decoder", block, [data("input", (2, 3, 4)), data("memory", (2, 5, 4))])
