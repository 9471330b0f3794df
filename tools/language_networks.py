"""Language transformers: GPT-2, and BERT for fine-tuning, with pooler and classifier."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from net import Net, net


@dataclass(frozen=True)
class Shape:
    """The sizes that define one member of a family."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int


class Gpt2Attention(nn.Module):
    """Multi-head self-attention; each position sees itself and its predecessors."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.divisor = math.sqrt(shape.width // shape.heads)
        self.c_attn = nn.Linear(shape.width, 3 * shape.width)
        self.c_proj = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, future: Tensor) -> Tensor:
        batch, sequence, width = x.shape
        head_width = width // self.heads
        query, key, value = (part.view(batch, sequence, self.heads, head_width).transpose(1, 2)
                             for part in self.c_attn(x).split(width, dim=2))
        scores = torch.matmul(query, key.transpose(2, 3)) / self.divisor
        weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
        context = torch.matmul(weights, value).transpose(1, 2)
        return self.c_proj(context.reshape(batch, sequence, width))


@net(lambda shape: dict(
    c_fc=nn.Linear(shape.width, 4 * shape.width), act=nn.GELU(approximate="tanh"),
    c_proj=nn.Linear(4 * shape.width, shape.width),
))  # fmt: skip
def gpt2_mlp(m: Net, x: Tensor) -> Tensor:
    """The position-wise network: widen four times, tanh-approximated GELU, narrow again."""
    return m.c_proj(m.act(m.c_fc(x)))


@net(lambda shape: dict(
    ln_1=nn.LayerNorm(shape.width, eps=1e-5), attn=Gpt2Attention(shape), ln_2=nn.LayerNorm(shape.width, eps=1e-5),
    mlp=gpt2_mlp(shape),
))  # fmt: skip
def gpt2_block(m: Net, x: Tensor, future: Tensor) -> Tensor:
    """One pre-normalised transformer layer with its two residual additions."""
    x = x + m.attn(m.ln_1(x), future)
    return x + m.mlp(m.ln_2(x))


@net(lambda shape: dict(
    wte=nn.Embedding(shape.vocabulary, shape.width), wpe=nn.Embedding(shape.positions, shape.width),
    h=nn.ModuleList(gpt2_block(shape) for _ in range(shape.layers)), ln_f=nn.LayerNorm(shape.width, eps=1e-5),
))  # fmt: skip
def gpt2(m: Net, input_ids: Tensor) -> Tensor:
    """GPT-2 language model without dropout; the output head reuses the token embedding."""
    positions = torch.arange(input_ids.shape[1], device=input_ids.device)
    # Computed from the positions, so that no quadratic constant enters the graph.
    future = positions.unsqueeze(0) > positions.unsqueeze(1)
    x = m.wte(input_ids) + m.wpe(positions)
    for block in m.h:
        x = block(x, future)
    return nn.functional.linear(m.ln_f(x), m.wte.weight)


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
    pooler=nn.Linear(shape.width, shape.width), classifier=nn.Linear(shape.width, 2),
))  # fmt: skip
def bert(m: Net, input_ids: Tensor) -> Tensor:
    """Devlin et al. 2019, without dropout, sentence embeddings and padding masks."""
    places = torch.arange(input_ids.shape[1], device=input_ids.device)
    x = m.norm(m.words(input_ids) + m.positions(places))
    for layer in m.layer:
        x = layer(x)
    return m.classifier(torch.tanh(m.pooler(x[:, 0])))
