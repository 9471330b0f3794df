"""Attention with masks, positions, tables and biases."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros

TOKENS, WIDTH, HEADS = 6, 8, 2


@net(lambda turned=lambda m, x: x, biased=lambda m, scores: scores, **parts: dict(
    turned=turned, biased=biased, qkv=nn.Linear(WIDTH, 3 * WIDTH), out=nn.Linear(WIDTH, WIDTH), **parts
))  # fmt: skip
def attention(m: Net, x: Tensor) -> Tensor:
    """Self-attention with functions for its variants: of queries and keys, and of scores."""
    batch, count, width = x.shape
    heads = (batch, count, HEADS, width // HEADS)
    q, k, v = (part.view(heads).transpose(1, 2) for part in m.qkv(x).chunk(3, -1))
    scores = m.turned(m, q) @ m.turned(m, k).transpose(-2, -1) * 0.5
    weights = torch.softmax(m.biased(m, scores), -1)
    return m.out((weights @ v).transpose(1, 2).reshape(batch, count, width))


@net(lambda attention: dict(
    first=nn.LayerNorm(WIDTH), attention=attention, second=nn.LayerNorm(WIDTH), up=nn.Linear(WIDTH, 2 * WIDTH),
    down=nn.Linear(2 * WIDTH, WIDTH),
))  # fmt: skip
def block(m: Net, x: Tensor) -> Tensor:
    x = x + m.attention(m.first(x))
    return x + m.down(F.gelu(m.up(m.second(x))))


def causal(below: float) -> Tensor:
    return torch.triu(torch.full((TOKENS, TOKENS), below), 1)


def ones_below() -> Tensor:
    return torch.tril(torch.ones(TOKENS, TOKENS)).view(1, 1, TOKENS, TOKENS)


def distances() -> Tensor:
    places = torch.arange(float(TOKENS))
    return places[None, :] - places[:, None]


def added_mask(below: float) -> Net:
    """Causal, by an added buffer of numbers."""
    return attention(biased=lambda m, scores: scores + m.mask, mask=causal(below))


def filled_mask() -> Net:
    """Causal, by a buffer of ones (nanoGPT)."""

    def biased(m: Net, scores: Tensor) -> Tensor:
        count = scores.shape[-1]
        return scores.masked_fill(m.bias[:, :, :count, :count] == 0, float("-inf"))

    return attention(biased=biased, bias=ones_below())


def times_mask() -> Net:
    """Causal, by multiplying with ones and subtracting a large number (GPT-1)."""
    return attention(biased=lambda m, scores: scores * m.b - 1e4 * (1.0 - m.b), b=ones_below())


def alibi() -> Net:
    """Slopes times distances, and a causal mask."""
    slopes = torch.tensor([0.5, 0.25]).view(HEADS, 1, 1)
    return attention(
        biased=lambda m, scores: scores + m.slopes * m.distance + m.mask, slopes=slopes, distance=distances(), mask=causal(-1e9)
    )


@net(lambda: dict(attention=attention()))
def fed_mask(m: Net, x: Tensor, kept: Tensor) -> Tensor:
    """Padding as an input of numbers, with 1 for valid tokens."""
    m.attention.biased = lambda _, scores: scores + (1.0 - kept)[:, None, None, :] * -8.0
    return m.attention(x)


def rotated(x: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat([-right, left], -1)


def angles(width: int) -> tuple[Tensor, Tensor]:
    """Frequencies, and positions times frequencies, concatenated twice."""
    frequencies = 1.0 / 100.0 ** (torch.arange(0.0, width, 2) / width)
    made = torch.outer(torch.arange(float(TOKENS)), frequencies)
    return frequencies, torch.cat([made, made], -1)


def rotary_tables() -> Net:
    _, made = angles(WIDTH // HEADS)
    return attention(lambda m, x: x * m.cos + rotated(x) * m.sin, cos=made.cos(), sin=made.sin())


def rotary_frequencies() -> Net:
    """The tables are computed in the graph from `inv_freq`, as Llama's are."""

    def turned(m: Net, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[-2], device=x.device, dtype=m.inv_freq.dtype)
        made = places[:, None] * m.inv_freq[None, :]
        made = torch.cat([made, made], -1)
        return x * made.cos() + rotated(x) * made.sin()

    return attention(turned, inv_freq=angles(WIDTH // HEADS)[0])


def relative_bias() -> Net:
    """A trained table, looked up by relative position, as Swin and T5 do."""

    def biased(m: Net, scores: Tensor) -> Tensor:
        bias = m.table[m.index].view(TOKENS, TOKENS, HEADS).permute(2, 0, 1)
        return scores + bias.unsqueeze(0)

    index = distances().long() + TOKENS - 1
    return attention(biased=biased, table=zeros(2 * TOKENS - 1, HEADS), index=index.view(-1))


def dense_bias() -> Net:
    """A trained number for every pair and head."""
    return attention(biased=lambda m, scores: scores + m.bias, bias=zeros(1, HEADS, TOKENS, TOKENS))


def sinusoids() -> Tensor:
    places = torch.arange(float(TOKENS)).unsqueeze(1)
    turns = torch.exp(torch.arange(0.0, WIDTH, 2) * (-math.log(100.0) / WIDTH))
    return torch.stack([torch.sin(places * turns), torch.cos(places * turns)], -1).view(1, TOKENS, WIDTH)


@net(lambda position: dict(
    embed=nn.Embedding(11, WIDTH), position=position, block=block(added_mask(-math.inf)), head=nn.Linear(WIDTH, 11, bias=False)
))  # fmt: skip
def language(m: Net, ids: Tensor) -> Tensor:
    """Embedding, positions of some kind, one block, head."""
    x = m.embed(ids) + m.position[:, : ids.shape[1]]
    return m.head(m.block(x))


@net(lambda: dict(
    frequencies=torch.exp(torch.linspace(0.0, -3.0, 4)), net=nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 12)),
    conv=nn.Conv2d(3, 6, 3, padding=1),
))  # fmt: skip
def timestep(m: Net, x: Tensor, time: Tensor) -> Tensor:
    """A diffusion model's embedding of the time."""
    made = time[:, None] * m.frequencies[None]
    scale, shift = m.net(torch.cat([made.sin(), made.cos()], -1))[:, :, None, None].chunk(2, 1)
    return m.conv(x) * (1.0 + scale) + shift


@net(lambda **options: dict(attention=nn.MultiheadAttention(WIDTH, HEADS, **options)))
def self_attention(m: Net, x: Tensor) -> Tensor:
    return m.attention(x, x, x, need_weights=False)[0]


@net(lambda: dict(attention=nn.MultiheadAttention(WIDTH, HEADS, kdim=5, vdim=7, batch_first=True, add_bias_kv=True)))
def cross_attention(m: Net, x: Tensor, key: Tensor, value: Tensor) -> Tensor:
    made, weights = m.attention(x, key, value)
    return torch.cat([made, weights], -1)


@net(lambda first: dict(encoder=nn.TransformerEncoder(
    nn.TransformerEncoderLayer(WIDTH, HEADS, 12, dropout=0.0, batch_first=True, norm_first=first), 2, enable_nested_tensor=False
)))  # fmt: skip
def encoder(m: Net, x: Tensor) -> Tensor:
    return m.encoder(x)


@net(lambda: dict(
    net=nn.Transformer(WIDTH, HEADS, 1, 1, 12, dropout=0.0, batch_first=True), mask=torch.triu(torch.full((4, 4), -math.inf), 1),
))  # fmt: skip
def translator(m: Net, source: Tensor, target: Tensor) -> Tensor:
    """Encoder and decoder, with the causal mask as a float buffer."""
    return m.net(source, target, tgt_mask=m.mask)


@net(lambda: dict(layer=nn.TransformerEncoderLayer(WIDTH, HEADS, 12, dropout=0.1, batch_first=True)))
def dropped_out(m: Net, x: Tensor) -> Tensor:
    """Dropout of scores and of activations."""
    return m.layer(x)


@net(lambda: dict(
    first=nn.LayerNorm(WIDTH), tokens=nn.Sequential(nn.Linear(TOKENS, 5), nn.GELU(), nn.Linear(5, TOKENS)),
    second=nn.LayerNorm(WIDTH), channels=nn.Sequential(nn.Linear(WIDTH, 10), nn.GELU(), nn.Linear(10, WIDTH)),
))  # fmt: skip
def mixer(m: Net, x: Tensor) -> Tensor:
    x = x + m.tokens(m.first(x).transpose(1, 2)).transpose(1, 2)
    return x + m.channels(m.second(x))


@net(lambda: dict(up=nn.Linear(WIDTH, 12), norm=nn.LayerNorm(6), spatial=nn.Conv1d(TOKENS, TOKENS, 1), down=nn.Linear(6, WIDTH)))
def gated_mlp(m: Net, x: Tensor) -> Tensor:
    """GMLP: half of the channels gate the others, mixed over positions."""
    left, right = F.gelu(m.up(x)).chunk(2, -1)
    return x + m.down(left * m.spatial(m.norm(right)))


@net(lambda: dict(first=nn.Linear(WIDTH, 12), gate=nn.Linear(6, 10), up=nn.Linear(6, 10), down=nn.Linear(10, WIDTH)))
def gated_units(m: Net, x: Tensor) -> Tensor:
    """GLU, SwiGLU and a separate gate."""
    x = F.glu(m.first(x), -1)
    return m.down(F.silu(m.gate(x)) * m.up(x))


@net(lambda: dict(qkv=nn.Linear(WIDTH, 3 * WIDTH)))
def linear_attention(m: Net, x: Tensor) -> Tensor:
    q, k, v = m.qkv(x).chunk(3, -1)
    q, k = F.elu(q) + 1.0, F.elu(k) + 1.0
    kept = torch.einsum("bnd,bne->bde", k, v)
    scale = 1.0 / (torch.einsum("bnd,bd->bn", q, k.sum(1)) + 0.001)
    return torch.einsum("bnd,bde->bne", q, kept) * scale.unsqueeze(-1)


def cases() -> Iterator[Case]:
    x = [real("x", 2, TOKENS, WIDTH)]
    yield Case("causal_mask_inf", lambda: block(added_mask(-math.inf)), x)
    yield Case("causal_mask_1e9", lambda: block(added_mask(-1e9)), x)
    yield Case("causal_mask_filled", lambda: block(filled_mask()), x)
    yield Case("causal_mask_times", lambda: block(times_mask()), x)
    yield Case("alibi", lambda: block(alibi()), x)
    yield Case("padding_mask_fed_in", fed_mask, [*x, real("kept", 2, TOKENS, offset=0.5, scale=0.5)])
    x = [real("x", 2, TOKENS, WIDTH)]
    ids = [tokens("ids", 2, TOKENS, below=11)]
    yield Case("rotary_tables", lambda: block(rotary_tables()), x)
    yield Case("rotary_inv_freq", lambda: block(rotary_frequencies()), x)
    yield Case("relative_position_bias", lambda: block(relative_bias()), x)
    yield Case("dense_position_bias", lambda: block(dense_bias()), x)
    yield Case("language_sinusoidal", lambda: language(sinusoids()), ids, loss="cross_entropy")
    yield Case("language_learned", lambda: language(zeros(1, TOKENS, WIDTH)), ids, loss="cross_entropy")
    yield Case("diffusion_timestep", timestep, [real("x", 2, 3, 4, 4), real("time", 2, offset=1.0)])
    x = [real("x", 2, TOKENS, WIDTH)]
    yield Case("multihead_attention", lambda: self_attention(batch_first=True), x)
    yield Case("multihead_attention_sequence_first", lambda: self_attention(bias=False), x)
    yield Case("cross_attention_bias_kv", cross_attention, [*x, real("key", 2, 4, 5), real("value", 2, 4, 7)])
    yield Case("transformer_encoder", lambda: encoder(False), x)
    yield Case("transformer_encoder_norm_first", lambda: encoder(True), x)
    yield Case("transformer", translator, [real("source", 2, 5, WIDTH), real("target", 2, 4, WIDTH)])
    yield Case("transformer_dropout", dropped_out, x, compare=False)
    x = [real("x", 2, TOKENS, WIDTH)]
    yield Case("mlp_mixer", mixer, x)
    yield Case("gated_mlp", gated_mlp, x)
    yield Case("gated_linear_units", gated_units, x)
    yield Case("linear_attention_einsum", linear_attention, x)
