"""BERT as it is fine-tuned: encoder, pooler and classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class BertShape:
    """The sizes that define one member of the BERT family."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int
    classes: int = 2


class BertLayer(nn.Module):
    """Self-attention and a network of two products by position, each added and then normalised."""

    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.divisor = math.sqrt(shape.width // shape.heads)
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(shape.width, shape.width)
        self.value = nn.Linear(shape.width, shape.width)
        self.output = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.widen = nn.Linear(shape.width, 4 * shape.width)
        self.act = nn.GELU()
        self.narrow = nn.Linear(4 * shape.width, shape.width)
        self.last_norm = nn.LayerNorm(shape.width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        batch, sequence, width = x.shape
        query, key, value = (part(x).view(batch, sequence, self.heads, width // self.heads).transpose(1, 2)
                             for part in (self.query, self.key, self.value))
        weights = torch.softmax(torch.matmul(query, key.transpose(2, 3)) / self.divisor, dim=-1)
        context = torch.matmul(weights, value).transpose(1, 2).reshape(batch, sequence, width)
        x = self.norm(x + self.output(context))
        return self.last_norm(x + self.narrow(self.act(self.widen(x))))


class Bert(nn.Module):
    """Devlin et al. 2019, without dropout, sentence embeddings and padding masks."""

    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.layer = nn.ModuleList(BertLayer(shape) for _ in range(shape.layers))
        self.pooler = nn.Linear(shape.width, shape.width)
        self.classifier = nn.Linear(shape.width, shape.classes)

    def forward(self, input_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.norm(self.words(input_ids) + self.positions(places))
        for layer in self.layer:
            x = layer(x)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))
