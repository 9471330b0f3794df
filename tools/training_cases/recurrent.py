"""Recurrent networks: PyTorch's layers, cells in loops, attention beside them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def cases() -> Iterator[Case]:
    yield from layers()
    yield from cells()
    yield from sequences()


# --- Layers ----------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """A recurrent layer and a classifier of everything it returns."""

    def __init__(self, kind: str, **options: object) -> None:
        super().__init__()
        self.layer = LAYERS[kind](4, 5, **options)
        self.head = nn.Linear(10 if options.get("bidirectional") else 5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0])


class TrainedStart(nn.Module):
    """The first state is a parameter."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.layer = LAYERS[kind](4, 5, batch_first=True)
        self.h0 = nn.Parameter(torch.zeros(1, 1, 5))
        self.c0 = nn.Parameter(torch.zeros(1, 1, 5))
        if kind != "lstm":
            del self.c0

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        h0 = self.h0.expand(1, batch, 5).contiguous()
        state = (h0, self.c0.expand(1, batch, 5).contiguous()) if self.kind == "lstm" else h0
        return self.layer(x, state)[0]


class FedStart(nn.Module):
    """The state is fed in and its last value is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 5)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        _, (h, c) = self.layer(x, (h, c))
        return torch.cat([h, c], -1)


class Tagger(nn.Module):
    """Embedding, a bidirectional layer, labels of every token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.layer = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(6, 5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layer(self.embed(ids))[0])


class LastState(nn.Module):
    """Classifies the last state of both directions."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer = LAYERS[kind](4, 3, bidirectional=True, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = self.layer(x)[1]
        state = state[0] if isinstance(state, tuple) else state
        return self.head(torch.cat([state[0], state[1]], -1))


def layers() -> Iterator[Case]:
    first, batch_first = [real("x", 4, 2, 4)], [real("x", 2, 4, 4)]
    tags = ["recurrent"]
    for kind in LAYERS:
        made = {
            "": ({}, first),
            "_batch_first": ({"batch_first": True}, batch_first),
            "_no_bias": ({"bias": False}, first),
            "_two_layers_bidirectional": ({"num_layers": 2, "bidirectional": True}, first),
        }
        for suffix, (options, inputs) in made.items():
            yield Case(
                f"{kind}{suffix}",
                lambda kind=kind, options=options: Recurrent(kind, **options),
                inputs,
                tags=tags,
                steps="adam" if suffix == "_batch_first" else "",
            )
        yield Case(
            f"{kind}_last_state", lambda kind=kind: LastState(kind), batch_first, "cross_entropy", tags=tags
        )
    yield Case("rnn_relu", lambda: Recurrent("rnn", nonlinearity="relu"), first, tags=tags)
    for kind in ("lstm", "gru"):
        yield Case(f"{kind}_trained_start", lambda kind=kind: TrainedStart(kind), batch_first, tags=tags)
    start = [real("h", 1, 2, 5), real("c", 1, 2, 5)]
    yield Case("lstm_fed_start", FedStart, [*first, *start], tags=tags)
    yield Case("lstm_tagger", Tagger, [tokens("ids", 2, 4, below=9)], loss="cross_entropy", tags=tags, steps="momentum")


# --- Cells -----------------------------------------------------------------------------------


class CellLoop(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        made = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            made.append(self.head(state[0] if isinstance(state, tuple) else state))
        return torch.stack(made, 1)


class ConvLstm(nn.Module):
    """Gates of one convolution of image and state."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(2 + 3, 4 * 3, 3, padding=1)
        self.head = nn.Conv2d(3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], 3, *x.shape[3:])
        for t in range(x.shape[1]):
            i, f, o, g = self.gates(torch.cat([x[:, t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


class PeepholeLstm(nn.Module):
    """Written by hand, with peepholes and one matrix for each gate."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.ModuleList(nn.Linear(4, 5) for _ in range(4))
        self.h = nn.ModuleList(nn.Linear(5, 5, bias=False) for _ in range(4))
        self.peep = nn.ParameterList(nn.Parameter(torch.zeros(5)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], 5)
        for t in range(x.shape[1]):
            i, f, g, o = (a(x[:, t]) + b(h) for a, b in zip(self.x, self.h))
            i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c)
            c = f * c + i * torch.tanh(g)
            h = torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c)
        return h


def cells() -> Iterator[Case]:
    x = [real("x", 2, 3, 4)]
    tags = ["recurrent"]
    yield Case("lstm_cell_loop", lambda: CellLoop(nn.LSTMCell(4, 5)), x, tags=tags, steps="adam")
    yield Case("gru_cell_loop", lambda: CellLoop(nn.GRUCell(4, 5)), x, tags=tags, steps="momentum")
    yield Case("rnn_cell_loop", lambda: CellLoop(nn.RNNCell(4, 5)), x, tags=tags)
    yield Case("conv_lstm", ConvLstm, [real("x", 2, 3, 2, 4, 4)], tags=tags)
    yield Case("peephole_lstm", PeepholeLstm, x, tags=tags)


# --- Sequences -------------------------------------------------------------------------------


class Seq2Seq(nn.Module):
    """Encoder, and a decoder that looks at all its states (Luong)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.encoder = nn.GRU(4, 5, batch_first=True)
        self.decoder = nn.GRU(4, 5, batch_first=True)
        self.join = nn.Linear(10, 5)
        self.head = nn.Linear(5, 7)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encoder(self.embed(source))
        made, _ = self.decoder(self.embed(target), state)
        weights = torch.softmax(torch.bmm(made, memory.transpose(1, 2)), -1)
        context = torch.bmm(weights, memory)
        return self.head(torch.tanh(self.join(torch.cat([made, context], -1))))


class Bahdanau(nn.Module):
    """A decoder cell in a loop, with additive attention."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 5)
        self.query = nn.Linear(5, 6, bias=False)
        self.key = nn.Linear(4, 6)
        self.score = nn.Linear(6, 1, bias=False)
        self.head = nn.Linear(5, 3)

    def forward(self, memory: Tensor, state: Tensor) -> Tensor:
        keys = self.key(memory)
        made = []
        for _ in range(3):
            scores = self.score(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(-1)
            context = (torch.softmax(scores, -1).unsqueeze(-1) * memory).sum(1)
            state = self.cell(context, state)
            made.append(self.head(state))
        return torch.stack(made, 1)


class ConvThenLstm(nn.Module):
    """Convolutions over time, then a recurrent layer, as in speech."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, stride=2)
        self.norm = nn.BatchNorm1d(4)
        self.layer = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(F.relu(self.norm(self.conv(x))).transpose(1, 2))[0]


def sequences() -> Iterator[Case]:
    tags = ["recurrent"]
    yield Case(
        "seq2seq_attention",
        Seq2Seq,
        [tokens("source", 2, 4, below=7), tokens("target", 2, 3, below=7)],
        loss="cross_entropy",
        tags=tags,
    )
    yield Case("bahdanau_decoder", Bahdanau, [real("memory", 2, 4, 4), real("state", 2, 5)], tags=tags)
    yield Case("conv_then_lstm", ConvThenLstm, [real("x", 2, 3, 9)], tags=tags)
