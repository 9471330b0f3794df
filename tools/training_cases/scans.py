"""Recurrences written as loops over time, memories that are read and written, fixed points."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real

TIME, WIDTH = 4, 4


def cases() -> Iterator[Case]:
    yield from states()
    yield from memories()
    yield from iterations()


# --- State spaces ----------------------------------------------------------------------------


class SelectiveScan(nn.Module):
    """Mamba's block: a short convolution, steps that depend on the input, a gate."""

    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.size = size
        self.inner = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=WIDTH)
        self.select = nn.Linear(WIDTH, 1 + 2 * size, bias=False)
        self.step = nn.Linear(1, WIDTH)
        self.log_a = nn.Parameter(torch.zeros(WIDTH, size))
        self.skip = nn.Parameter(torch.zeros(WIDTH))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.inner(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[:, :, :TIME].transpose(1, 2))
        step, b, c = self.select(x).split([1, self.size, self.size], -1)
        step = F.softplus(self.step(step))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.log_a))
        driven = (step * x).unsqueeze(-1) * b.unsqueeze(2)
        state = x.new_zeros(x.shape[0], WIDTH, self.size)
        made = []
        for t in range(TIME):
            state = decay[:, t] * state + driven[:, t]
            made.append((state * c[:, t].unsqueeze(1)).sum(-1))
        return self.out((torch.stack(made, 1) + x * self.skip) * F.silu(gate))


class MinGru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 5)
        self.hidden = nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        gates, candidates = torch.sigmoid(self.gate(x)), self.hidden(x)
        state = torch.zeros_like(candidates[:, 0])
        made = []
        for t in range(TIME):
            state = (1.0 - gates[:, t]) * state + gates[:, t] * candidates[:, t]
            made.append(state)
        return torch.stack(made, 1)


class LinearRecurrence(nn.Module):
    """Linear attention as a recurrence over outer products, with a decay (RetNet)."""

    def __init__(self, decay: bool) -> None:
        super().__init__()
        self.decay = decay
        self.q = nn.Linear(WIDTH, 3, bias=False)
        self.k = nn.Linear(WIDTH, 3, bias=False)
        self.v = nn.Linear(WIDTH, 5, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        state = x.new_zeros(x.shape[0], 3, 5)
        made = []
        for t in range(TIME):
            state = state * 0.9 if self.decay else state
            state = state + k[:, t].unsqueeze(2) * v[:, t].unsqueeze(1)
            made.append(torch.matmul(q[:, t].unsqueeze(1), state).squeeze(1))
        return torch.stack(made, 1)


class StateSpace(nn.Module):
    """A time-invariant system: x' = A x + B u, y = C x + D u."""

    def __init__(self, diagonal: bool) -> None:
        super().__init__()
        self.diagonal = diagonal
        self.a = nn.Parameter(torch.zeros(5) if diagonal else torch.zeros(5, 5))
        self.b = nn.Parameter(torch.zeros(5, WIDTH))
        self.c = nn.Parameter(torch.zeros(3, 5))
        self.d = nn.Parameter(torch.zeros(3, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[0], 5)
        a = torch.tanh(self.a) if self.diagonal else self.a
        made = []
        for t in range(TIME):
            u = x[:, t]
            moved = state * a if self.diagonal else F.linear(state, a)
            state = moved + F.linear(u, self.b)
            made.append(F.linear(state, self.c) + F.linear(u, self.d))
        return torch.stack(made, 1)


class Rwkv(nn.Module):
    """Time mixing of RWKV: shifted tokens, a decaying sum of exponentials."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.decay = nn.Parameter(torch.zeros(WIDTH))
        self.first = nn.Parameter(torch.zeros(WIDTH))
        self.kvr = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        shifted = F.pad(x, (0, 0, 1, -1))
        k, v, r = self.kvr(x * self.mix + shifted * (1.0 - self.mix)).chunk(3, -1)
        k = torch.exp(k)
        over = under = x.new_zeros(x.shape[0], WIDTH)
        decay, first = torch.exp(-torch.exp(self.decay)), torch.exp(self.first)
        made = []
        for t in range(TIME):
            now = first * k[:, t]
            made.append((over + now * v[:, t]) / (under + now))
            if t + 1 < TIME:  # nobody reads the last state
                over, under = decay * over + k[:, t] * v[:, t], decay * under + k[:, t]
        return torch.sigmoid(r) * torch.stack(made, 1)


class CumulativeMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 5)
        self.second = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.cumsum(torch.relu(self.first(x)), 1) * 0.25)


def states() -> Iterator[Case]:
    x = [real("x", 2, TIME, WIDTH)]
    tags = ["scan"]
    yield Case("selective_scan", SelectiveScan, x, tags=tags, steps="adam")
    yield Case("min_gru", MinGru, x, tags=tags, steps="momentum")
    yield Case("linear_recurrence", lambda: LinearRecurrence(False), x, tags=tags)
    yield Case("retention_recurrence", lambda: LinearRecurrence(True), x, tags=tags)
    yield Case("state_space_diagonal", lambda: StateSpace(True), x, tags=tags)
    yield Case("state_space_dense", lambda: StateSpace(False), x, tags=tags)
    yield Case("rwkv_time_mixing", Rwkv, x, tags=tags)
    yield Case("cumulative_sum", CumulativeMean, x, tags=tags)


# --- Memories --------------------------------------------------------------------------------


def similarity(memory: Tensor, key: Tensor) -> Tensor:
    """Cosines of one key and every row."""
    return F.cosine_similarity(memory, key.unsqueeze(1), dim=-1, eps=1e-6)


class TuringMachine(nn.Module):
    """A memory that is read and written by content."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.zeros(5, 3))
        self.control = nn.Linear(WIDTH + 3, 6)
        self.key = nn.Linear(6, 3)
        self.strength = nn.Linear(6, 1)
        self.erase = nn.Linear(6, 3)
        self.add = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        memory = self.memory.unsqueeze(0).expand(batch, 5, 3)
        read = x.new_zeros(batch, 3)
        made = []
        for t in range(3):
            state = torch.tanh(self.control(torch.cat([x[:, t], read], -1)))
            weights = torch.softmax(F.softplus(self.strength(state)) * similarity(memory, self.key(state)), -1)
            read = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            made.append(read)
            if t == 2:
                break  # nobody reads what would be written
            erase, add = torch.sigmoid(self.erase(state)), torch.tanh(self.add(state))
            memory = memory * (1.0 - weights.unsqueeze(-1) * erase.unsqueeze(1))
            memory = memory + weights.unsqueeze(-1) * add.unsqueeze(1)
        return torch.stack(made, 1)


class NeuralComputer(nn.Module):
    """A DNC without allocation: links in time between what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.control = nn.GRUCell(WIDTH + 3, 6)
        self.interface = nn.Linear(6, 3 + 3 + 1 + 2)
        self.head = nn.Linear(6 + 3, 3)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows = x.shape[0], 4
        memory = x.new_full((batch, rows, 3), 0.125)
        link = x.new_zeros(batch, rows, rows)
        precedence = x.new_zeros(batch, rows)
        state, read = x.new_zeros(batch, 6), x.new_zeros(batch, 3)
        weights = x.new_full((batch, rows), 0.25)
        made = []
        for t in range(3):
            state = self.control(torch.cat([x[:, t], read], -1), state)
            key, value, gate, modes = self.interface(state).split([3, 3, 1, 2], -1)
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
            made.append(self.head(torch.cat([state, read], -1)))
        return torch.stack(made, 1)


class MemoryNetwork(nn.Module):
    """Facts are looked up in several hops (end-to-end memory network)."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = nn.Linear(WIDTH, 5)
        self.keys = nn.Linear(WIDTH, 5, bias=False)
        self.values = nn.Linear(WIDTH, 5, bias=False)

    def forward(self, facts: Tensor, question: Tensor) -> Tensor:
        state = self.ask(question)
        keys, values = self.keys(facts), self.values(facts)
        for _ in range(3):
            weights = torch.softmax((keys * state.unsqueeze(1)).sum(-1), -1)
            state = state + (weights.unsqueeze(-1) * values).sum(1)
        return state


def memories() -> Iterator[Case]:
    x = [real("x", 2, 3, WIDTH)]
    tags = ["scan", "memory"]
    yield Case("neural_turing_machine", TuringMachine, x, tags=tags)
    yield Case("differentiable_computer", NeuralComputer, x, tags=tags)
    asked = [real("facts", 2, 5, WIDTH), real("question", 2, WIDTH)]
    yield Case("memory_network", MemoryNetwork, asked, tags=tags, steps="adam")


# --- Iterations ------------------------------------------------------------------------------


class NeuralOde(nn.Module):
    """Euler steps, or the classical method of Runge and Kutta, of one vector field."""

    def __init__(self, euler: bool) -> None:
        super().__init__()
        self.euler = euler
        self.first = nn.Linear(WIDTH, 6)
        self.second = nn.Linear(6, WIDTH)

    def slope(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        if self.euler:
            for _ in range(4):
                x = x + 0.25 * self.slope(x)
            return x
        a = self.slope(x)
        b = self.slope(x + 0.5 * a)
        c = self.slope(x + 0.5 * b)
        d = self.slope(x + c)
        return x + (a + 2.0 * b + 2.0 * c + d) * 0.125


class Equilibrium(nn.Module):
    """A fixed number of iterations towards z = tanh(W z + U x)."""

    def __init__(self) -> None:
        super().__init__()
        self.inject = nn.Linear(WIDTH, 5)
        self.layer = nn.Linear(5, 5, bias=False)
        self.norm = nn.LayerNorm(5)

    def forward(self, x: Tensor) -> Tensor:
        injected = self.inject(x)
        z = torch.zeros_like(injected)
        for _ in range(4):
            z = self.norm(torch.tanh(self.layer(z) + injected))
        return z


class Unrolled(nn.Module):
    """ISTA with trained steps and thresholds (LISTA)."""

    def __init__(self) -> None:
        super().__init__()
        self.dictionary = nn.Parameter(torch.zeros(WIDTH, 6))
        self.steps = nn.Parameter(torch.zeros(3))
        self.threshold = nn.Parameter(torch.zeros(3, 6))

    def forward(self, x: Tensor) -> Tensor:
        z = x.new_zeros(x.shape[0], 6)
        for i in range(3):
            z = z - self.steps[i] * F.linear(F.linear(z, self.dictionary) - x, self.dictionary.t())
            z = torch.sign(z) * torch.relu(z.abs() - self.threshold[i].abs() * 0.125)
        return z


def iterations() -> Iterator[Case]:
    x = [real("x", 3, WIDTH)]
    yield Case("neural_ode_euler", lambda: NeuralOde(True), x, tags=["scan"], steps="adam")
    yield Case("neural_ode_runge_kutta", lambda: NeuralOde(False), x, tags=["scan"])
    yield Case("equilibrium_iterations", Equilibrium, x, tags=["scan"])
    yield Case("unrolled_ista", Unrolled, x, tags=["scan"])
