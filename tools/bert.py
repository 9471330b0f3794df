"""BERT as it is fine-tuned: encoder, pooler and classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from net import Net, net


@dataclass(frozen=True)
class BertShape:
    """The sizes that define one member of the BERT family."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int
    classes: int = 2


@net(lambda shape: dict(
    heads=shape.heads, divisor=math.sqrt(shape.width // shape.heads),
    query=nn.Linear(shape.width, shape.width), key=nn.Linear(shape.width, shape.width),
    value=nn.Linear(shape.width, shape.width), output=nn.Linear(shape.width, shape.width),
    norm=nn.LayerNorm(shape.width, eps=1e-12), widen=nn.Linear(shape.width, 4 * shape.width), act=nn.GELU(),
    narrow=nn.Linear(4 * shape.width, shape.width), last_norm=nn.LayerNorm(shape.width, eps=1e-12),
))  # fmt: skip
def bert_layer(m: Net, x: Tensor) -> Tensor:
    """Self-attention and a network of two products by position, each added and then normalised."""
    batch, sequence, width = x.shape
    query, key, value = (part(x).view(batch, sequence, m.heads, width // m.heads).transpose(1, 2)
                         for part in (m.query, m.key, m.value))
    weights = torch.softmax(torch.matmul(query, key.transpose(2, 3)) / m.divisor, dim=-1)
    context = torch.matmul(weights, value).transpose(1, 2).reshape(batch, sequence, width)
    x = m.norm(x + m.output(context))
    return m.last_norm(x + m.narrow(m.act(m.widen(x))))


@net(lambda shape: dict(
    words=nn.Embedding(shape.vocabulary, shape.width), positions=nn.Embedding(shape.positions, shape.width),
    norm=nn.LayerNorm(shape.width, eps=1e-12), layer=nn.ModuleList(bert_layer(shape) for _ in range(shape.layers)),
    pooler=nn.Linear(shape.width, shape.width), classifier=nn.Linear(shape.width, shape.classes),
))  # fmt: skip
def bert(m: Net, input_ids: Tensor) -> Tensor:
    """Devlin et al. 2019, without dropout, sentence embeddings and padding masks."""
    places = torch.arange(input_ids.shape[1], device=input_ids.device)
    x = m.norm(m.words(input_ids) + m.positions(places))
    for layer in m.layer:
        x = layer(x)
    return m.classifier(torch.tanh(m.pooler(x[:, 0])))
