"""Recurrences written as loops over time, memories that are read and written, fixed points."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, zeros

TIME, WIDTH = 4, 4


@net(lambda size=3: dict(
    size=size, inner=nn.Linear(WIDTH, 2 * WIDTH, bias=False), conv=nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=WIDTH),
    select=nn.Linear(WIDTH, 1 + 2 * size, bias=False), step=nn.Linear(1, WIDTH), log_a=zeros(WIDTH, size), skip=zeros(WIDTH),
    out=nn.Linear(WIDTH, WIDTH, bias=False),
))  # fmt: skip
def selective_scan(m: Net, x: Tensor) -> Tensor:
    """Mamba's block: a short convolution, steps that depend on the input, a gate."""
    x, gate = m.inner(x).chunk(2, -1)
    x = F.silu(m.conv(x.transpose(1, 2))[:, :, :TIME].transpose(1, 2))
    step, b, c = m.select(x).split([1, m.size, m.size], -1)
    step = F.softplus(m.step(step))
    decay = torch.exp(step.unsqueeze(-1) * -torch.exp(m.log_a))
    driven = (step * x).unsqueeze(-1) * b.unsqueeze(2)
    state = x.new_zeros(x.shape[0], WIDTH, m.size)
    made = []
    for t in range(TIME):
        state = decay[:, t] * state + driven[:, t]
        made.append((state * c[:, t].unsqueeze(1)).sum(-1))
    return m.out((torch.stack(made, 1) + x * m.skip) * F.silu(gate))


@net(lambda: dict(gate=nn.Linear(WIDTH, 5), hidden=nn.Linear(WIDTH, 5)))
def min_gru(m: Net, x: Tensor) -> Tensor:
    gates, candidates = torch.sigmoid(m.gate(x)), m.hidden(x)
    state = torch.zeros_like(candidates[:, 0])
    made = []
    for t in range(TIME):
        state = (1.0 - gates[:, t]) * state + gates[:, t] * candidates[:, t]
        made.append(state)
    return torch.stack(made, 1)


@net(
    lambda decay: dict(decay=decay, q=nn.Linear(WIDTH, 3, bias=False), k=nn.Linear(WIDTH, 3, bias=False), v=nn.Linear(WIDTH, 5, bias=False))
)
def linear_recurrence(m: Net, x: Tensor) -> Tensor:
    """Linear attention as a recurrence over outer products, with a decay (RetNet)."""
    q, k, v = m.q(x), m.k(x), m.v(x)
    state = x.new_zeros(x.shape[0], 3, 5)
    made = []
    for t in range(TIME):
        state = state * 0.9 if m.decay else state
        state = state + k[:, t].unsqueeze(2) * v[:, t].unsqueeze(1)
        made.append(torch.matmul(q[:, t].unsqueeze(1), state).squeeze(1))
    return torch.stack(made, 1)


@net(lambda diagonal: dict(
    diagonal=diagonal, a=nn.Parameter(torch.zeros(5) if diagonal else torch.zeros(5, 5)), b=zeros(5, WIDTH), c=zeros(3, 5),
    d=zeros(3, WIDTH),
))  # fmt: skip
def state_space(m: Net, x: Tensor) -> Tensor:
    """A time-invariant system: x' = A x + B u, y = C x + D u."""
    state = x.new_zeros(x.shape[0], 5)
    a = torch.tanh(m.a) if m.diagonal else m.a
    made = []
    for t in range(TIME):
        u = x[:, t]
        moved = state * a if m.diagonal else F.linear(state, a)
        state = moved + F.linear(u, m.b)
        made.append(F.linear(state, m.c) + F.linear(u, m.d))
    return torch.stack(made, 1)


@net(lambda: dict(mix=zeros(1, 1, WIDTH), decay=zeros(WIDTH), first=zeros(WIDTH), kvr=nn.Linear(WIDTH, 3 * WIDTH, bias=False)))
def rwkv(m: Net, x: Tensor) -> Tensor:
    """Time mixing of RWKV: shifted tokens, a decaying sum of exponentials."""
    shifted = F.pad(x, (0, 0, 1, -1))
    k, v, r = m.kvr(x * m.mix + shifted * (1.0 - m.mix)).chunk(3, -1)
    k = torch.exp(k)
    over = under = x.new_zeros(x.shape[0], WIDTH)
    decay, first = torch.exp(-torch.exp(m.decay)), torch.exp(m.first)
    made = []
    for t in range(TIME):
        now = first * k[:, t]
        made.append((over + now * v[:, t]) / (under + now))
        if t + 1 < TIME:  # the last state has no reader
            over, under = decay * over + k[:, t] * v[:, t], decay * under + k[:, t]
    return torch.sigmoid(r) * torch.stack(made, 1)


@net(lambda: dict(first=nn.Linear(WIDTH, 5), second=nn.Linear(5, 3)))
def cumulative_mean(m: Net, x: Tensor) -> Tensor:
    return m.second(torch.cumsum(torch.relu(m.first(x)), 1) * 0.25)


def similarity(memory: Tensor, key: Tensor) -> Tensor:
    """Cosines of one key and every row."""
    return F.cosine_similarity(memory, key.unsqueeze(1), dim=-1, eps=1e-6)


@net(lambda: dict(
    memory=zeros(5, 3), control=nn.Linear(WIDTH + 3, 6), key=nn.Linear(6, 3), strength=nn.Linear(6, 1), erase=nn.Linear(6, 3),
    add=nn.Linear(6, 3),
))  # fmt: skip
def turing_machine(m: Net, x: Tensor) -> Tensor:
    """A memory that is read and written by content."""
    batch = x.shape[0]
    memory = m.memory.unsqueeze(0).expand(batch, 5, 3)
    read = x.new_zeros(batch, 3)
    made = []
    for t in range(3):
        state = torch.tanh(m.control(torch.cat([x[:, t], read], -1)))
        weights = torch.softmax(F.softplus(m.strength(state)) * similarity(memory, m.key(state)), -1)
        read = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        made.append(read)
        if t == 2:
            break  # the last write has no reader
        erase, add = torch.sigmoid(m.erase(state)), torch.tanh(m.add(state))
        memory = memory * (1.0 - weights.unsqueeze(-1) * erase.unsqueeze(1))
        memory = memory + weights.unsqueeze(-1) * add.unsqueeze(1)
    return torch.stack(made, 1)


@net(lambda: dict(control=nn.GRUCell(WIDTH + 3, 6), interface=nn.Linear(6, 3 + 3 + 1 + 2), head=nn.Linear(6 + 3, 3)))
def neural_computer(m: Net, x: Tensor) -> Tensor:
    """A DNC without allocation: temporal links between writes."""
    batch, rows = x.shape[0], 4
    memory = x.new_full((batch, rows, 3), 0.125)
    link = x.new_zeros(batch, rows, rows)
    precedence = x.new_zeros(batch, rows)
    state, read = x.new_zeros(batch, 6), x.new_zeros(batch, 3)
    weights = x.new_full((batch, rows), 0.25)
    made = []
    for t in range(3):
        state = m.control(torch.cat([x[:, t], read], -1), state)
        key, value, gate, modes = m.interface(state).split([3, 3, 1, 2], -1)
        write = torch.sigmoid(gate) * torch.softmax(similarity(memory, key), -1)
        memory = memory + write.unsqueeze(2) * value.unsqueeze(1)
        joint = write.unsqueeze(2) + write.unsqueeze(1)
        link = (1.0 - joint) * link + write.unsqueeze(2) * precedence.unsqueeze(1)
        precedence = (1.0 - write.sum(-1, keepdim=True)) * precedence + write
        forward = torch.bmm(link, weights.unsqueeze(2)).squeeze(2)
        modes = torch.softmax(modes, -1)
        content = torch.softmax(similarity(memory, key), -1)
        weights = modes[:, :1] * forward + modes[:, 1:] * content
        read = (weights.unsqueeze(2) * memory).sum(1)
        made.append(m.head(torch.cat([state, read], -1)))
    return torch.stack(made, 1)


@net(lambda: dict(ask=nn.Linear(WIDTH, 5), keys=nn.Linear(WIDTH, 5, bias=False), values=nn.Linear(WIDTH, 5, bias=False)))
def memory_network(m: Net, facts: Tensor, question: Tensor) -> Tensor:
    """Facts are looked up in several hops (end-to-end memory network)."""
    state = m.ask(question)
    keys, values = m.keys(facts), m.values(facts)
    for _ in range(3):
        weights = torch.softmax((keys * state.unsqueeze(1)).sum(-1), -1)
        state = state + (weights.unsqueeze(-1) * values).sum(1)
    return state


@net(lambda euler: dict(euler=euler, first=nn.Linear(WIDTH, 6), second=nn.Linear(6, WIDTH)))
def neural_ode(m: Net, x: Tensor) -> Tensor:
    """Euler steps, or the classical method of Runge and Kutta, of one vector field."""

    def slope(x: Tensor) -> Tensor:
        return m.second(torch.tanh(m.first(x)))

    if m.euler:
        for _ in range(4):
            x = x + 0.25 * slope(x)
        return x
    a = slope(x)
    b = slope(x + 0.5 * a)
    c = slope(x + 0.5 * b)
    d = slope(x + c)
    return x + (a + 2.0 * b + 2.0 * c + d) * 0.125


@net(lambda: dict(inject=nn.Linear(WIDTH, 5), layer=nn.Linear(5, 5, bias=False), norm=nn.LayerNorm(5)))
def equilibrium(m: Net, x: Tensor) -> Tensor:
    """A fixed number of iterations towards z = tanh(W z + U x)."""
    injected = m.inject(x)
    z = torch.zeros_like(injected)
    for _ in range(4):
        z = m.norm(torch.tanh(m.layer(z) + injected))
    return z


@net(lambda: dict(dictionary=zeros(WIDTH, 6), steps=zeros(3), threshold=zeros(3, 6)))
def unrolled(m: Net, x: Tensor) -> Tensor:
    """ISTA with trained steps and thresholds (LISTA)."""
    z = x.new_zeros(x.shape[0], 6)
    for i in range(3):
        z = z - m.steps[i] * F.linear(F.linear(z, m.dictionary) - x, m.dictionary.t())
        z = torch.sign(z) * torch.relu(z.abs() - m.threshold[i].abs() * 0.125)
    return z


def cases() -> Iterator[Case]:
    x = [real("x", 2, TIME, WIDTH)]
    yield Case("selective_scan", selective_scan, x)
    yield Case("min_gru", min_gru, x)
    yield Case("linear_recurrence", lambda: linear_recurrence(False), x)
    yield Case("retention_recurrence", lambda: linear_recurrence(True), x)
    yield Case("state_space_diagonal", lambda: state_space(True), x)
    yield Case("state_space_dense", lambda: state_space(False), x)
    yield Case("rwkv_time_mixing", rwkv, x)
    yield Case("cumulative_sum", cumulative_mean, x)
    x = [real("x", 2, 3, WIDTH)]
    yield Case("neural_turing_machine", turing_machine, x)
    yield Case("differentiable_computer", neural_computer, x)
    asked = [real("facts", 2, 5, WIDTH), real("question", 2, WIDTH)]
    yield Case("memory_network", memory_network, asked)
    x = [real("x", 3, WIDTH)]
    yield Case("neural_ode_euler", lambda: neural_ode(True), x)
    yield Case("neural_ode_runge_kutta", lambda: neural_ode(False), x)
    yield Case("equilibrium_iterations", equilibrium, x)
    yield Case("unrolled_ista", unrolled, x)
