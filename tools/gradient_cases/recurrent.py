"""Recurrent layers as torch.onnx writes them, and ONNX's own forms."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradient_cases.framework import Case, constant, data, exported, in_turn, integer, op
from net import Net, net


def cases() -> Iterator[Case]:
    return in_turn(layers, within, plain)


def layers() -> Iterator[Case]:
    sequence = [data("input", (5, 2, 3))]
    batched = [data("input", (2, 4, 3))]
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        name = kind.__name__.lower()
        yield exported(f"exported_{name}", kind(3, 4), sequence)
        yield exported(f"exported_{name}_batch_first", kind(3, 4, batch_first=True), batched)
        yield exported(f"exported_{name}_both_ways", kind(3, 4, bidirectional=True), sequence)
        yield exported(f"exported_{name}_no_bias", kind(3, 2, bias=False), sequence)
        yield exported(f"exported_{name}_stacked", kind(3, 4, num_layers=2), sequence)
        yield exported(f"exported_{name}_stacked_both_ways",
                       kind(3, 2, num_layers=2, bidirectional=True, batch_first=True), batched)
        yield exported(f"exported_{name}_one_step", kind(3, 4), [data("input", (1, 2, 3))])
        yield exported(f"exported_{name}_one_sample", kind(3, 1), [data("input", (4, 1, 3))])
    yield exported("exported_rnn_relu", nn.RNN(3, 4, nonlinearity="relu"), sequence)


@net(lambda layer: dict(layer=layer))
def started(m: Net, x: Tensor, h: Tensor) -> tuple:
    """A layer with given initial states."""
    return m.layer(x, h)


@net(lambda layer: dict(layer=layer))
def started_cells(m: Net, x: Tensor, h: Tensor, c: Tensor) -> tuple:
    return m.layer(x, (h, c))


@net(lambda kind: dict(embedding=nn.Embedding(7, 3), layer=kind(3, 4, batch_first=True), head=nn.Linear(4, 5)))
def embedded(m: Net, x: Tensor) -> Tensor:
    """Tokens to a class: only the last state is used."""
    return m.head(m.layer(m.embedding(x))[0][:, -1])


@net(lambda layer: dict(layer=layer))
def unbatched(m: Net, x: Tensor) -> Tensor:
    return m.layer(x.unsqueeze(1))[0].squeeze(1)


def within() -> Iterator[Case]:
    x = data("input", (4, 2, 3))
    h, c = data("h0", (1, 2, 4)), data("c0", (1, 2, 4))
    yield exported("exported_lstm_started", started_cells(nn.LSTM(3, 4)), [x, h, c])
    yield exported("exported_gru_started", started(nn.GRU(3, 4)), [x, h])
    yield exported("exported_rnn_started", started(nn.RNN(3, 4)), [x, h])
    both = [data("h0", (2, 2, 4)), data("c0", (2, 2, 4))]
    yield exported("exported_lstm_started_both_ways", started_cells(nn.LSTM(3, 4, bidirectional=True)), [x, *both])
    yield exported("exported_lstm_embedded", embedded(nn.LSTM), [integer("input", (2, 4), 7)])
    yield exported("exported_gru_embedded", embedded(nn.GRU), [integer("input", (2, 4), 7)])
    yield exported("exported_lstm_unbatched", unbatched(nn.LSTM(3, 4)), [data("input", (4, 3))])


SIZE = 3


def weights(gates: int, directions: int = 1) -> list:
    return [data("X", (4, 2, 2)), data("W", (directions, gates * SIZE, 2)),
            data("R", (directions, gates * SIZE, SIZE), scale=0.5), data("B", (directions, 2 * gates * SIZE))]


def gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor, late: bool, reverse: bool = False) -> tuple:
    """ONNX's equations, gates in the order z r h."""
    w, r, b = w[0], r[0], b[0]
    wb, rb = b[: 3 * SIZE], b[3 * SIZE :]
    h = torch.zeros(x.shape[1], SIZE, dtype=x.dtype)
    states = [None] * x.shape[0]
    order = range(x.shape[0])
    for t in reversed(order) if reverse else order:
        gx = x[t] @ w.T + wb
        gh = h @ r.T + rb
        z = torch.sigmoid(gx[:, :SIZE] + gh[:, :SIZE])
        reset = torch.sigmoid(gx[:, SIZE : 2 * SIZE] + gh[:, SIZE : 2 * SIZE])
        if late:
            inner = reset * gh[:, 2 * SIZE :]
        else:
            inner = (reset * h) @ r[2 * SIZE :].T + rb[2 * SIZE :]
        n = torch.tanh(gx[:, 2 * SIZE :] + inner)
        h = (1 - z) * n + z * h
        states[t] = h
    return torch.stack(states).unsqueeze(1), h.unsqueeze(0)


def plain() -> Iterator[Case]:
    for late in (0, 1):
        for direction in ("forward", "reverse"):
            yield op(f"gru_{direction}_{'late' if late else 'early'}", "GRU", weights(3),
                     lambda x, w, r, b: gru(x, w, r, b, bool(late), direction == "reverse"), hidden_size=SIZE,
                     linear_before_reset=late, direction=direction, outputs=2)
    # All sequences have the maximum length.
    inputs = weights(3)
    yield op("gru_full_lengths", "GRU", [*inputs, constant("lengths", [4, 4], "int32")],
             lambda x, w, r, b, lengths: gru(x, w, r, b, False), hidden_size=SIZE, outputs=2)

    def batch_first(x: Tensor, w: Tensor, r: Tensor, b: Tensor) -> tuple:
        y, h = gru(x.transpose(0, 1), w, r, b, False)
        return y.permute(2, 0, 1, 3), h.transpose(0, 1)

    yield op("gru_layout", "GRU", [data("X", (2, 4, 2)), *weights(3)[1:]], batch_first, hidden_size=SIZE,
             layout=1, outputs=2)
