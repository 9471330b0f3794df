"""Sequences of words or frames: recurrent networks, state spaces, convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Network, floats, tokens

VOCABULARY = 300
TEXT = tokens(VOCABULARY, 16)


class RecurrentModel(nn.Module):
    """Tokens, a recurrent module, the next tokens or a tag for each."""

    def __init__(self, kind: type[nn.Module], width: int = 48, **options: object) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(VOCABULARY, width), nn.Dropout(0.2)
        self.body = kind(width, width, batch_first=True, **options)
        both = 2 if options.get("bidirectional") else 1
        self.head = nn.Linear(both * width, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.drop(self.body(self.embedding(ids))[0]))


class AttentiveTranslator(nn.Module):
    """Encoder and decoder with additive attention (Bahdanau et al. 2015), step by step."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, width), nn.Embedding(VOCABULARY, width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(3 * width, width)
        self.of_memory, self.of_state = nn.Linear(2 * width, width), nn.Linear(width, width, bias=False)
        self.weigh, self.head = nn.Linear(width, 1, bias=False), nn.Linear(3 * width, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.source(source))
        keys, state, outputs = self.of_memory(memory), last[0], []
        for word in self.target(target).unbind(1):
            scores = self.weigh(torch.tanh(keys + self.of_state(state).unsqueeze(1)))
            context = (scores.softmax(1) * memory).sum(1)
            state = self.cell(torch.cat([word, context], -1), state)
            outputs.append(self.head(torch.cat([state, context], -1)))
        return torch.stack(outputs, 1)


class ConvLstm(nn.Module):
    """An LSTM whose products are convolutions (Shi et al. 2015), upon four frames."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.gates, self.head = nn.Conv2d(1 + width, 4 * width, 3, padding=1), nn.Conv2d(width, 1, 1)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        state = cell = torch.zeros_like(x[:, 0]).repeat(1, self.width, 1, 1)
        for frame in x.unbind(1):
            enter, forget, leave, new = self.gates(torch.cat([frame, state], 1)).chunk(4, 1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            state = leave.sigmoid() * cell.tanh()
        return self.head(state)


class SelectiveState(nn.Module):
    """Mamba's block (Gu and Dao 2023), its scan written out."""

    def __init__(self, width: int = 32, states: int = 8) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.conv = nn.Conv1d(2 * width, 2 * width, 4, padding=3, groups=2 * width)
        self.choose, self.step = nn.Linear(2 * width, 2 * states + 2, bias=False), nn.Linear(2, 2 * width)
        self.decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(2 * width, 1))
        self.skip, self.norm = nn.Parameter(torch.ones(2 * width)), nn.LayerNorm(width)
        self.states = states

    def forward(self, x: Tensor) -> Tensor:
        y, gate = self.enter(self.norm(x)).chunk(2, -1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, read, write = self.choose(y).split([2, self.states, self.states], -1)
        step = F.softplus(self.step(step)).unsqueeze(-1)
        kept = torch.exp(-step * self.decay.exp())
        added = step * read.unsqueeze(2) * y.unsqueeze(-1)
        state, outputs = torch.zeros_like(kept[:, 0]), []
        for i in range(x.shape[1]):
            state = kept[:, i] * state + added[:, i]
            outputs.append((state @ write[:, i].unsqueeze(-1)).squeeze(-1))
        y = torch.stack(outputs, 1) + self.skip * y
        return x + self.leave(y * F.silu(gate))


class Rwkv(nn.Module):
    """Time and channel mixing (Peng et al. 2023), the recurrence written out."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mixes = nn.Parameter(torch.full((5, width), 0.5))
        self.key, self.value, self.accept, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
        self.accept_channel = nn.Linear(width, width, bias=False)
        self.decay, self.first = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

    def mixed(self, x: Tensor, i: int) -> Tensor:
        before = F.pad(x, (0, 0, 1, 0))[:, : x.shape[1]]
        return x * self.mixes[i] + before * (1 - self.mixes[i])

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        key, value = self.key(self.mixed(y, 0)).clamp(max=30).exp(), self.value(self.mixed(y, 1))
        top = bottom = torch.zeros_like(key[:, 0])
        outputs, decay, first = [], torch.exp(-self.decay.exp()), self.first.exp()
        for i in range(x.shape[1]):
            now = key[:, i] * value[:, i]
            outputs.append((top + first * now) / (bottom + first * key[:, i]))
            top, bottom = decay * top + now, decay * bottom + key[:, i]
        accept = torch.sigmoid(self.accept(self.mixed(y, 2)))
        x = x + self.output(accept * torch.stack(outputs, 1))
        y = self.norms[1](x)
        channel = self.narrow(F.relu(self.wide(self.mixed(y, 3))).square())
        return x + torch.sigmoid(self.accept_channel(self.mixed(y, 4))) * channel


class Retention(nn.Module):
    """RetNet's parallel form (Sun et al. 2023): scores decay, no softmax, groups normalised."""

    def __init__(self, width: int = 32, heads: int = 4, length: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(5))
        self.norm, self.groups, self.heads = nn.LayerNorm(width), nn.GroupNorm(heads, width), heads
        rates = torch.log(1 - 2.0 ** (-5 - torch.arange(heads)))[:, None, None]
        distance = torch.arange(length)[:, None] - torch.arange(length)
        self.register_buffer("decay", torch.exp(rates * distance) * (distance >= 0))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        y = self.norm(x)
        query, key, value = (layer(y).view(batch, length, self.heads,
                                           -1).transpose(1, 2) for layer in self.layers[:3])
        kept = (query @ key.transpose(2, 3) * self.decay) @ value
        kept = self.groups(kept.transpose(1, 2).reshape(batch * length, width, 1)).view(x.shape)
        return x + self.layers[4](F.silu(self.layers[3](y)) * kept)


def language_model(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Embedding(VOCABULARY, 32), *layers, nn.LayerNorm(32), nn.Linear(32, VOCABULARY))


class TextCnn(nn.Module):
    """Convolutions of several lengths, maxima over time (Kim 2014)."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 32)
        self.convs = nn.ModuleList(nn.Conv1d(32, 16, size) for size in (3, 4, 5))
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(48, 5))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(conv(x)).max(-1).values for conv in self.convs], 1))


NETWORKS: dict[str, Network] = {"lstm_language_model": Network(lambda: RecurrentModel(nn.LSTM, num_layers=2), TEXT),
                                "gru_language_model": Network(lambda: RecurrentModel(nn.GRU), TEXT),
                                "elman_language_model": Network(lambda: RecurrentModel(nn.RNN), TEXT),
                                "bilstm_tagger": Network(lambda: RecurrentModel(nn.LSTM, bidirectional=True), TEXT),
                                "seq2seq_attention": Network(AttentiveTranslator, tokens(VOCABULARY, 10, 6)),
                                "conv_lstm": Network(ConvLstm, floats((4, 1, 16, 16)), "mse"),
                                "mamba_unrolled": Network(lambda: language_model(SelectiveState(),
                                                                                 SelectiveState()), TEXT),
                                "rwkv_unrolled": Network(lambda: language_model(Rwkv(), Rwkv()), TEXT),
                                "retnet": Network(lambda: language_model(Retention(), Retention()), TEXT),
                                "text_cnn": Network(TextCnn, tokens(VOCABULARY, 30))}
