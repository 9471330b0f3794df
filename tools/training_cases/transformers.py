"""Attention and what surrounds it: masks, positions, tables, biases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

TOKENS, WIDTH, HEADS = 6, 8, 2


def cases() -> Iterator[Case]:
    yield from masks()
    yield from positions()
    yield from modules()
    yield from mixers()


class Attention(nn.Module):
    """Self-attention with hooks for what differs."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def turned(self, x: Tensor) -> Tensor:
        return x

    def biased(self, scores: Tensor) -> Tensor:
        return scores

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        heads = (batch, count, HEADS, width // HEADS)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = self.turned(q) @ self.turned(k).transpose(-2, -1) * 0.5
        weights = torch.softmax(self.biased(scores), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, count, width))


class Block(nn.Module):
    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.first = nn.LayerNorm(WIDTH)
        self.attention = attention
        self.second = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x))))


# --- Masks -----------------------------------------------------------------------------------


class AddedMask(Attention):
    """Causal, by a buffer of numbers that is added."""

    def __init__(self, below: float) -> None:
        super().__init__()
        self.register_buffer("mask", torch.triu(torch.full((TOKENS, TOKENS), below), 1))

    def biased(self, scores: Tensor) -> Tensor:
        return scores + self.mask


class FilledMask(Attention):
    """Causal, by a buffer of ones as nanoGPT has it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(TOKENS, TOKENS)).view(1, 1, TOKENS, TOKENS))

    def biased(self, scores: Tensor) -> Tensor:
        count = scores.shape[-1]
        return scores.masked_fill(self.bias[:, :, :count, :count] == 0, float("-inf"))


class TimesMask(Attention):
    """Causal, by ones that are multiplied with and a large number taken off, as GPT-1."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.tril(torch.ones(TOKENS, TOKENS)).view(1, 1, TOKENS, TOKENS))

    def biased(self, scores: Tensor) -> Tensor:
        return scores * self.b - 1e4 * (1.0 - self.b)


class Alibi(Attention):
    """Slopes times distances, and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25]).view(HEADS, 1, 1))
        places = torch.arange(float(TOKENS))
        self.register_buffer("distance", places[None, :] - places[:, None])
        self.register_buffer("mask", torch.triu(torch.full((TOKENS, TOKENS), -1e9), 1))

    def biased(self, scores: Tensor) -> Tensor:
        return scores + self.slopes * self.distance + self.mask


class FedMask(nn.Module):
    """Padding, fed in as numbers: 1 for what counts."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()

    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        self.attention.biased = lambda scores: scores + (1.0 - kept)[:, None, None, :] * -8.0
        return self.attention(x)


def masks() -> Iterator[Case]:
    x = [real("x", 2, TOKENS, WIDTH)]
    tags = ["buffer", "mask"]
    yield Case("causal_mask_inf", lambda: Block(AddedMask(-math.inf)), x, tags=tags, steps="adam")
    yield Case("causal_mask_1e9", lambda: Block(AddedMask(-1e9)), x, tags=tags)
    yield Case("causal_mask_filled", lambda: Block(FilledMask()), x, tags=tags)
    yield Case("causal_mask_times", lambda: Block(TimesMask()), x, tags=tags)
    yield Case("alibi", lambda: Block(Alibi()), x, tags=tags)
    yield Case("padding_mask_fed_in", FedMask, [*x, real("kept", 2, TOKENS, offset=0.5, scale=0.5)])


# --- Positions -------------------------------------------------------------------------------


def rotated(x: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat([-right, left], -1)


def angles(width: int) -> tuple[Tensor, Tensor]:
    """Frequencies, and positions times frequencies, twice beside each other."""
    frequencies = 1.0 / 100.0 ** (torch.arange(0.0, width, 2) / width)
    made = torch.outer(torch.arange(float(TOKENS)), frequencies)
    return frequencies, torch.cat([made, made], -1)


class RotaryTables(Attention):
    def __init__(self) -> None:
        super().__init__()
        _, made = angles(WIDTH // HEADS)
        self.register_buffer("cos", made.cos())
        self.register_buffer("sin", made.sin())

    def turned(self, x: Tensor) -> Tensor:
        return x * self.cos + rotated(x) * self.sin


class RotaryFrequencies(Attention):
    """The tables are computed in the graph from `inv_freq`, as Llama's are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inv_freq", angles(WIDTH // HEADS)[0])

    def turned(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[-2], device=x.device, dtype=self.inv_freq.dtype)
        made = places[:, None] * self.inv_freq[None, :]
        made = torch.cat([made, made], -1)
        return x * made.cos() + rotated(x) * made.sin()


class RelativeBias(Attention):
    """A trained table, looked up by relative position, as Swin and T5 do."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(2 * TOKENS - 1, HEADS))
        places = torch.arange(TOKENS)
        self.register_buffer("index", (places[None, :] - places[:, None] + TOKENS - 1).view(-1))

    def biased(self, scores: Tensor) -> Tensor:
        bias = self.table[self.index].view(TOKENS, TOKENS, HEADS).permute(2, 0, 1)
        return scores + bias.unsqueeze(0)


class DenseBias(Attention):
    """A trained number for every pair and head."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, HEADS, TOKENS, TOKENS))

    def biased(self, scores: Tensor) -> Tensor:
        return scores + self.bias


class Language(nn.Module):
    """Embedding, positions of some kind, one block, head."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, WIDTH)
        if learned:
            self.position = nn.Parameter(torch.zeros(1, TOKENS, WIDTH))
        else:
            places = torch.arange(float(TOKENS)).unsqueeze(1)
            turns = torch.exp(torch.arange(0.0, WIDTH, 2) * (-math.log(100.0) / WIDTH))
            table = torch.stack([torch.sin(places * turns), torch.cos(places * turns)], -1)
            self.register_buffer("position", table.view(1, TOKENS, WIDTH))
        self.block = Block(AddedMask(-math.inf))
        self.head = nn.Linear(WIDTH, 11, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.position[:, : ids.shape[1]]
        return self.head(self.block(x))


class Timestep(nn.Module):
    """A diffusion model's embedding of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0.0, -3.0, 4)))
        self.net = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 12))
        self.conv = nn.Conv2d(3, 6, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        made = time[:, None] * self.frequencies[None]
        scale, shift = self.net(torch.cat([made.sin(), made.cos()], -1))[:, :, None, None].chunk(2, 1)
        return self.conv(x) * (1.0 + scale) + shift


def positions() -> Iterator[Case]:
    x = [real("x", 2, TOKENS, WIDTH)]
    ids = [tokens("ids", 2, TOKENS, below=11)]
    tags = ["buffer"]
    yield Case("rotary_tables", lambda: Block(RotaryTables()), x, tags=tags, steps="adam")
    yield Case("rotary_inv_freq", lambda: Block(RotaryFrequencies()), x, tags=tags)
    yield Case("relative_position_bias", lambda: Block(RelativeBias()), x)
    yield Case("dense_position_bias", lambda: Block(DenseBias()), x)
    yield Case("language_sinusoidal", lambda: Language(False), ids, loss="cross_entropy", tags=tags, steps="momentum")
    yield Case("language_learned", lambda: Language(True), ids, loss="cross_entropy", tags=tags)
    yield Case("diffusion_timestep", Timestep, [real("x", 2, 3, 4, 4), real("time", 2, offset=1.0)], tags=tags)


# --- PyTorch's modules -----------------------------------------------------------------------


class SelfAttention(nn.Module):
    def __init__(self, **options: object) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, kdim=5, vdim=7, batch_first=True, add_bias_kv=True)

    def forward(self, x: Tensor, key: Tensor, value: Tensor) -> Tensor:
        made, weights = self.attention(x, key, value)
        return torch.cat([made, weights], -1)


class Encoder(nn.Module):
    def __init__(self, first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 12, dropout=0.0, batch_first=True, norm_first=first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class Translator(nn.Module):
    """Encoder and decoder, with the causal mask as a float buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Transformer(WIDTH, HEADS, 1, 1, 12, dropout=0.0, batch_first=True)
        self.register_buffer("mask", torch.triu(torch.full((4, 4), -math.inf), 1))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.net(source, target, tgt_mask=self.mask)


class DroppedOut(nn.Module):
    """Dropout of scores and of activations."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 12, dropout=0.1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def modules() -> Iterator[Case]:
    x = [real("x", 2, TOKENS, WIDTH)]
    yield Case("multihead_attention", lambda: SelfAttention(batch_first=True), x, steps="adam")
    yield Case("multihead_attention_sequence_first", lambda: SelfAttention(bias=False), x)
    yield Case("cross_attention_bias_kv", CrossAttention, [*x, real("key", 2, 4, 5), real("value", 2, 4, 7)])
    yield Case("transformer_encoder", lambda: Encoder(False), x)
    yield Case("transformer_encoder_norm_first", lambda: Encoder(True), x)
    yield Case(
        "transformer", Translator, [real("source", 2, 5, WIDTH), real("target", 2, 4, WIDTH)], tags=["buffer", "mask"]
    )
    yield Case("transformer_dropout", DroppedOut, x, compare=False, tags=["random"])


# --- Mixers ----------------------------------------------------------------------------------


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LayerNorm(WIDTH)
        self.tokens = nn.Sequential(nn.Linear(TOKENS, 5), nn.GELU(), nn.Linear(5, TOKENS))
        self.second = nn.LayerNorm(WIDTH)
        self.channels = nn.Sequential(nn.Linear(WIDTH, 10), nn.GELU(), nn.Linear(10, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class GatedMlp(nn.Module):
    """gMLP: half of the channels gate the others, mixed over positions."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 12)
        self.norm = nn.LayerNorm(6)
        self.spatial = nn.Conv1d(TOKENS, TOKENS, 1)
        self.down = nn.Linear(6, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        left, right = F.gelu(self.up(x)).chunk(2, -1)
        return x + self.down(left * self.spatial(self.norm(right)))


class GatedUnits(nn.Module):
    """GLU, SwiGLU and a gate of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 12)
        self.gate = nn.Linear(6, 10)
        self.up = nn.Linear(6, 10)
        self.down = nn.Linear(10, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = F.glu(self.first(x), -1)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LinearAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1.0, F.elu(k) + 1.0
        kept = torch.einsum("bnd,bne->bde", k, v)
        scale = 1.0 / (torch.einsum("bnd,bd->bn", q, k.sum(1)) + 0.001)
        return torch.einsum("bnd,bde->bne", q, kept) * scale.unsqueeze(-1)


def mixers() -> Iterator[Case]:
    x = [real("x", 2, TOKENS, WIDTH)]
    yield Case("mlp_mixer", Mixer, x, steps="adam")
    yield Case("gated_mlp", GatedMlp, x)
    yield Case("gated_linear_units", GatedUnits, x)
    yield Case("linear_attention_einsum", LinearAttention, x, tags=["einsum"])
