"""Recurrent networks: PyTorch's layers, cells in loops, layers with attention."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, net, real, tokens, zeros

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


@net(lambda kind, **options: dict(layer=LAYERS[kind](4, 5, **options), head=nn.Linear(10 if options.get("bidirectional") else 5, 3)))
def recurrent(m: Net, x: Tensor) -> Tensor:
    """A recurrent layer and a classifier of all its outputs."""
    return m.head(m.layer(x)[0])


@net(lambda kind: dict(layer=LAYERS[kind](4, 5, batch_first=True), h0=zeros(1, 1, 5), **({"c0": zeros(1, 1, 5)} if kind == "lstm" else {})))
def trained_start(m: Net, x: Tensor) -> Tensor:
    """The first state is a parameter."""
    batch = x.shape[0]
    h0 = m.h0.expand(1, batch, 5).contiguous()
    return m.layer(x, (h0, m.c0.expand(1, batch, 5).contiguous()) if hasattr(m, "c0") else h0)[0]


@net(lambda: dict(layer=nn.LSTM(4, 5)))
def fed_start(m: Net, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
    """The state is fed in and its last value is returned."""
    _, (h, c) = m.layer(x, (h, c))
    return torch.cat([h, c], -1)


@net(lambda: dict(embed=nn.Embedding(9, 4), layer=nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), head=nn.Linear(6, 5)))
def tagger(m: Net, ids: Tensor) -> Tensor:
    """Embedding, a bidirectional layer, labels of every token."""
    return m.head(m.layer(m.embed(ids))[0])


@net(lambda kind: dict(layer=LAYERS[kind](4, 3, bidirectional=True, batch_first=True), head=nn.Linear(6, 4)))
def last_state(m: Net, x: Tensor) -> Tensor:
    """Classifies the last state of both directions."""
    state = m.layer(x)[1]
    state = state[0] if isinstance(state, tuple) else state
    return m.head(torch.cat([state[0], state[1]], -1))


@net(lambda cell: dict(cell=cell, head=nn.Linear(5, 3)))
def cell_loop(m: Net, x: Tensor) -> Tensor:
    state = None
    made = []
    for t in range(x.shape[1]):
        state = m.cell(x[:, t], state)
        made.append(m.head(state[0] if isinstance(state, tuple) else state))
    return torch.stack(made, 1)


@net(lambda: dict(gates=nn.Conv2d(2 + 3, 4 * 3, 3, padding=1), head=nn.Conv2d(3, 2, 1)))
def conv_lstm(m: Net, x: Tensor) -> Tensor:
    """Gates of one convolution of image and state."""
    h = c = x.new_zeros(x.shape[0], 3, *x.shape[3:])
    for t in range(x.shape[1]):
        i, f, o, g = m.gates(torch.cat([x[:, t], h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return m.head(h)


@net(lambda: dict(
    x=nn.ModuleList(nn.Linear(4, 5) for _ in range(4)), h=nn.ModuleList(nn.Linear(5, 5, bias=False) for _ in range(4)),
    peep=nn.ParameterList(zeros(5) for _ in range(3)),
))  # fmt: skip
def peephole_lstm(m: Net, x: Tensor) -> Tensor:
    """An LSTM written by hand, with peepholes and one matrix for each gate."""
    h = c = x.new_zeros(x.shape[0], 5)
    for t in range(x.shape[1]):
        i, f, g, o = (a(x[:, t]) + b(h) for a, b in zip(m.x, m.h))
        i, f = torch.sigmoid(i + m.peep[0] * c), torch.sigmoid(f + m.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + m.peep[2] * c) * torch.tanh(c)
    return h


@net(lambda: dict(
    embed=nn.Embedding(7, 4), encoder=nn.GRU(4, 5, batch_first=True), decoder=nn.GRU(4, 5, batch_first=True),
    join=nn.Linear(10, 5), head=nn.Linear(5, 7),
))  # fmt: skip
def seq2seq(m: Net, source: Tensor, target: Tensor) -> Tensor:
    """Encoder, and a decoder that looks at all its states (Luong)."""
    memory, state = m.encoder(m.embed(source))
    made, _ = m.decoder(m.embed(target), state)
    weights = torch.softmax(torch.bmm(made, memory.transpose(1, 2)), -1)
    context = torch.bmm(weights, memory)
    return m.head(torch.tanh(m.join(torch.cat([made, context], -1))))


@net(lambda: dict(
    cell=nn.GRUCell(4, 5), query=nn.Linear(5, 6, bias=False), key=nn.Linear(4, 6), score=nn.Linear(6, 1, bias=False),
    head=nn.Linear(5, 3),
))  # fmt: skip
def bahdanau(m: Net, memory: Tensor, state: Tensor) -> Tensor:
    """A decoder cell in a loop, with additive attention."""
    keys = m.key(memory)
    made = []
    for _ in range(3):
        scores = m.score(torch.tanh(m.query(state).unsqueeze(1) + keys)).squeeze(-1)
        context = (torch.softmax(scores, -1).unsqueeze(-1) * memory).sum(1)
        state = m.cell(context, state)
        made.append(m.head(state))
    return torch.stack(made, 1)


@net(lambda: dict(conv=nn.Conv1d(3, 4, 3, stride=2), norm=nn.BatchNorm1d(4), layer=nn.LSTM(4, 5, batch_first=True)))
def conv_then_lstm(m: Net, x: Tensor) -> Tensor:
    """Convolutions over time and a recurrent layer, as in speech recognition."""
    return m.layer(F.relu(m.norm(m.conv(x))).transpose(1, 2))[0]


def cases() -> Iterator[Case]:
    first, batch_first = [real("x", 4, 2, 4)], [real("x", 2, 4, 4)]
    options = {"batch_first": True}, {"bias": False}, {"num_layers": 2, "bidirectional": True}
    for kind in LAYERS:
        yield Case(kind, lambda kind=kind: beside(*(recurrent(kind, **some) for some in ({}, *options))), first)
        yield Case(f"{kind}_last_state", lambda kind=kind: last_state(kind), batch_first, "cross_entropy")
    yield Case("rnn_relu", lambda: recurrent("rnn", nonlinearity="relu"), first)
    for kind in ("lstm", "gru"):
        yield Case(f"{kind}_trained_start", lambda kind=kind: trained_start(kind), batch_first)
    start = [real("h", 1, 2, 5), real("c", 1, 2, 5)]
    yield Case("lstm_fed_start", fed_start, [*first, *start])
    yield Case("lstm_tagger", tagger, [tokens("ids", 2, 4, below=9)], loss="cross_entropy")
    x = [real("x", 2, 3, 4)]
    for kind, cell in (("lstm", nn.LSTMCell), ("gru", nn.GRUCell), ("rnn", nn.RNNCell)):
        yield Case(f"{kind}_cell_loop", lambda cell=cell: cell_loop(cell(4, 5)), x)
    yield Case("conv_lstm", conv_lstm, [real("x", 2, 3, 2, 4, 4)])
    yield Case("peephole_lstm", peephole_lstm, x)
    yield Case("seq2seq_attention", seq2seq, [tokens("source", 2, 4, below=7), tokens("target", 2, 3, below=7)], loss="cross_entropy")
    yield Case("bahdanau_decoder", bahdanau, [real("memory", 2, 4, 4), real("state", 2, 5)])
    yield Case("conv_then_lstm", conv_then_lstm, [real("x", 2, 3, 9)])
