"""Language models: decoders with their differences, encoders, encoder-decoders."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from net import Net, net

from .framework import Network, mlp, together, tokens

VOCABULARY = 500
LENGTH = 24


@net(lambda width: dict(weight=nn.Parameter(torch.ones(width))))
def rms_norm(m: Net, x: Tensor) -> Tensor:
    return m.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


@dataclass(frozen=True)
class Style:
    """The style of a decoder."""

    rms: bool = False  # RMSNorm, else LayerNorm
    positions: str = "learned"  # or rotary, alibi
    key_heads: int = 4  # of 4; fewer are shared
    parallel: bool = False  # attention and MLP read the same input
    mlp: str = "gelu"  # or relu, swiglu, experts
    window: int = 0  # preceding positions that a position sees; 0: all
    bias: bool = True
    tied: bool = True  # the head reads the embedding
    packed: bool = False  # query, key and value are one product
    after: bool = False  # norms after the residual


def rotate(x: Tensor, share: float = 1.0) -> Tensor:
    """Rotary positions on the first share of the width."""
    width = int(x.shape[-1] * share) // 2 * 2
    rates = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
    angles = torch.arange(x.shape[2], device=x.device)[:, None] * rates[None]
    angles = torch.cat([angles, angles], -1)
    turned, rest = x[..., :width], x[..., width:]
    first, second = turned.chunk(2, -1)
    turned = turned * angles.cos() + torch.cat([-second, first], -1) * angles.sin()
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


class DecoderAttention(nn.Module):
    """Causal attention of a style, with four heads."""

    def __init__(self, width: int, style: Style) -> None:
        super().__init__()
        self.style, self.size = style, width // 4
        self.widths = [width] + [style.key_heads * self.size] * 2
        if style.packed:
            self.qkv = nn.Linear(width, sum(self.widths), bias=style.bias)
        else:
            self.qkv = nn.ModuleList(nn.Linear(width, w, bias=style.bias) for w in self.widths)
        self.output = nn.Linear(width, width, bias=style.bias)

    def repeat(self, x: Tensor) -> Tensor:
        """Keys or values for all heads that share them, in one of two ways."""
        shared = 4 // self.style.key_heads
        if self.style.window:
            return x.repeat_interleave(shared, 1)
        return x.unsqueeze(2).expand(-1, -1, shared, -1, -1).flatten(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        style = self.style
        parts = self.qkv(x).split(self.widths, -1) if style.packed else [one(x) for one in self.qkv]
        query, key, value = (part.view(batch, length, -1, self.size).transpose(1, 2) for part in parts)
        if style.positions == "rotary":
            query, key = rotate(query, 0.5 if style.parallel else 1.0), rotate(key, 0.5 if style.parallel else 1.0)
        if 1 < style.key_heads < 4:
            key, value = (self.repeat(part) for part in (key, value))
        scores = query @ key.transpose(2, 3) / math.sqrt(self.size)
        places = torch.arange(length, device=x.device)
        distance = places[:, None] - places[None]
        if style.positions == "alibi":
            slopes = 2.0 ** -torch.arange(2, 10, 2, device=x.device)
            scores = scores - slopes[:, None, None] * distance
        hidden = distance < 0
        if style.window:
            hidden = hidden | (distance >= style.window)
        weights = scores.masked_fill(hidden, -10000.0).softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(batch, length, -1))


@net(lambda width, inner: dict(
    gate=nn.Linear(width, inner, bias=False), up=nn.Linear(width, inner, bias=False),
    down=nn.Linear(inner, width, bias=False),
))  # fmt: skip
def swiglu(m: Net, x: Tensor) -> Tensor:
    return m.down(F.silu(m.gate(x)) * m.up(x))


@net(lambda width, experts: dict(
    router=nn.Linear(width, experts, bias=False),
    experts=nn.ModuleList(swiglu(width, 2 * width) for _ in range(experts)),
))  # fmt: skip
def experts(m: Net, x: Tensor) -> Tensor:
    """Every expert runs; the two best are used (Mixtral, routed densely)."""
    chances = m.router(x).softmax(-1)
    best, places = chances.topk(2, -1)
    best = best / best.sum(-1, keepdim=True)
    shares = torch.zeros_like(chances).scatter(-1, places, best)
    outputs = torch.stack([expert(x) for expert in m.experts], -1)
    return (outputs * shares.unsqueeze(-2)).sum(-1)


def feed_forward(width: int, style: Style) -> nn.Module:
    if style.mlp == "swiglu":
        return swiglu(width, 3 * width)
    if style.mlp == "experts":
        return experts(width, 4)
    act = nn.ReLU if style.mlp == "relu" else nn.GELU
    return mlp(width, 4 * width, width, act=act)


class DecoderLayer(nn.Module):
    def __init__(self, width: int, style: Style) -> None:
        super().__init__()
        norm = rms_norm if style.rms else nn.LayerNorm
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        self.attention, self.mlp = DecoderAttention(width, style), feed_forward(width, style)
        self.style = style

    def forward(self, x: Tensor) -> Tensor:
        if self.style.parallel:
            return x + self.attention(self.norms[0](x)) + self.mlp(self.norms[1](x))
        if self.style.after:
            x = self.norms[0](x + self.attention(x))
            return self.norms[1](x + self.mlp(x))
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Decoder(nn.Module):
    """Predicts next tokens: two layers of a style."""

    def __init__(self, style: Style, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(128, width) if style.positions == "learned" else None
        self.layers = nn.ModuleList(DecoderLayer(width, style) for _ in range(layers))
        self.norm = rms_norm(width) if style.rms else nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        if style.tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Bert(nn.Module):
    """Words, positions and segments; layers with norms after the residual; masked words and the next sentence."""

    def __init__(self, width: int = 64, layers: int = 2, *, segments: bool, pooled: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width, padding_idx=0), nn.Embedding(64, width)
        self.segments = nn.Embedding(2, width) if segments else None
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.pool = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)) if pooled else None

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> list[Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        if self.segments is not None:
            x = x + self.segments(segments)
        x = self.layers(self.drop(self.norm(x)), src_key_padding_mask=mask == 0)
        outputs = [F.linear(self.transform(x), self.words.weight, self.bias)]
        return outputs if self.pool is None else [*outputs, self.pool(x[:, 0])]


@net(lambda width: dict(layers=nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))))
def t5_attention(m: Net, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
    """Attention without scale, with a bias by relative distance that all layers share."""
    query, key, value = (layer(y).view(y.shape[0], y.shape[1], 4, -1).transpose(1, 2) for layer, y in zip(
                             m.layers, (x, memory, memory)))
    scores = query @ key.transpose(2, 3)
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return m.layers[3]((weights @ value).transpose(1, 2).reshape(x.shape))


class T5(nn.Module):
    """Encoder and decoder with relative biases and RMS norms; one layer each."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.biases = nn.ModuleList(nn.Embedding(32, 4) for _ in range(2))
        self.attention = nn.ModuleList(t5_attention(width) for _ in range(3))
        self.mlps = nn.ModuleList(mlp(width, 128, width) for _ in range(2))
        self.norms = nn.ModuleList(rms_norm(width) for _ in range(7))

    def bias(self, length: int, *, causal: bool, like: Tensor) -> Tensor:
        places = torch.arange(length, device=like.device)
        distance = places[None] - places[:, None]
        bias = self.biases[causal](distance.clamp(-15, 16) + 15).permute(2, 0, 1)[None]
        return bias + (distance > 0) * -10000.0 if causal else bias

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.tokens(source), self.tokens(target)
        h = self.norms[0](x)
        x = x + self.attention[0](h, h, self.bias(source.shape[1], causal=False, like=source))
        x = self.norms[2](x + self.mlps[0](self.norms[1](x)))
        h = self.norms[3](y)
        y = y + self.attention[1](h, h, self.bias(target.shape[1], causal=True, like=target))
        y = y + self.attention[2](self.norms[4](y), x, None)
        y = self.norms[6](y + self.mlps[1](self.norms[5](y)))
        return F.linear(y * 64**-0.5, self.tokens.weight)


class Translator(nn.Module):
    """nn.Transformer between two languages (Vaswani et al. 2017)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, width), nn.Embedding(VOCABULARY, width)
        self.body = nn.Transformer(width, 4, 2, 2, 128, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)
        places = torch.arange(64)[:, None] * torch.exp(torch.arange(0, width, 2) * -0.1)
        table = torch.stack([places.sin(), places.cos()], -1).flatten(1)
        self.register_buffer("table", table)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x = self.source(source) * 8 + self.table[: source.shape[1]]
        y = self.target(target) * 8 + self.table[: target.shape[1]]
        places = torch.arange(target.shape[1], device=target.device)
        return self.head(self.body(x, y, tgt_mask=places[None] > places[:, None]))


STYLES: dict[str, Style] = {
    "gpt1": Style(after=True), "gpt2": Style(packed=True), "opt": Style(mlp="relu"),
    "gpt_neox": Style(positions="rotary", parallel=True, packed=True, tied=False),
    "llama": Style(rms=True, positions="rotary", mlp="swiglu", bias=False, tied=False),
    "llama_gqa": Style(rms=True, positions="rotary", key_heads=2, mlp="swiglu", bias=False),
    "mistral_window": Style(rms=True, positions="rotary", key_heads=2, mlp="swiglu", window=8, bias=False, tied=False),
    "bloom_alibi": Style(positions="alibi", packed=True),
    "falcon_multi_query": Style(positions="rotary", key_heads=1, parallel=True, bias=False, packed=True),
    "mixtral_experts": Style(rms=True, positions="rotary", key_heads=2, mlp="experts", bias=False)}
NETWORKS: dict[str, Network] = {
    **{name: Network(lambda style=style: Decoder(style),
                     tokens(VOCABULARY, LENGTH)) for name, style in STYLES.items()},
    "gpt2_opset_17": Network(lambda: Decoder(Style(packed=True), 128, 4), tokens(VOCABULARY, LENGTH), opset=17),
    "bert": Network(lambda: Bert(segments=True, pooled=True),
                    together(tokens(VOCABULARY, LENGTH), tokens(2, LENGTH, LENGTH)), "none"),
    "distilbert": Network(lambda: Bert(segments=False, pooled=False),
                          together(tokens(VOCABULARY, LENGTH), tokens(2, LENGTH))),
    "roberta_classifier": Network(lambda: Bert(layers=3, segments=False, pooled=True),
                                  together(tokens(VOCABULARY, LENGTH), tokens(2, LENGTH)), "none", opset=17),
    "t5": Network(T5, tokens(VOCABULARY, LENGTH, 12)),
    "transformer_translation": Network(Translator, tokens(VOCABULARY, LENGTH, 12))}
