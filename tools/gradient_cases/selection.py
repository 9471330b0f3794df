"""Results selected by data."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from gradient_cases import movement
from gradient_cases.framework import Case, Node, constant, data, exported
from net import Net, net


def cases() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for largest in (0, 1):
            yield top_k(axis, largest)
    for batch, time in ((1, 0), (0, 1)):
        yield reverse_sequence(batch, time)
    yield exported("mixture_of_two", mixture_of_two(), [data("x", (5, 6))])
    yield exported("masked", masked(), [data("x", (5, 3))])


def top_k(axis: int, largest: int) -> Case:
    return Case(name=f"axis{axis}_{'largest' if largest else 'smallest'}",
                inputs=[data("X", (4, 5, 6)), constant("k", [3])],
                nodes=[Node("TopK", ["X", "k"], ["values", "places"], {"axis": axis, "largest": largest}),
                       Node("Mul", ["values", "values"], ["Y"])],
                torch=lambda x, k: torch.topk(x, 3, dim=axis, largest=bool(largest))[0] ** 2, counts_as="TopK")


def reverse_sequence(batch: int, time: int) -> Case:
    lengths = (1, 4, 2)
    shape = (3, 4, 2) if batch == 0 else (4, 3, 2)
    return Case(name=f"batch{batch}_time{time}", op_type="ReverseSequence",
                attributes={"batch_axis": batch, "time_axis": time},
                inputs=[data("X", shape), constant("lengths", np.array(lengths))],
                torch=lambda x, _: movement.reverse_sequence(x, lengths, time))


@net(lambda: dict(gate=nn.Linear(6, 4), experts=nn.ModuleList(nn.Linear(6, 3) for _ in range(4))))
def mixture_of_two(m: Net, x: Tensor) -> Tensor:
    """The two best of four experts, weighted by their gates."""
    gates = m.gate(x).softmax(-1)
    best, places = gates.topk(2)
    weights = torch.zeros_like(gates).scatter(1, places, best)
    parts = [weights[:, i : i + 1] * expert(x) for i, expert in enumerate(m.experts)]
    return sum(parts[1:], parts[0])


@net(lambda: dict(head=nn.Linear(3, 2)))
def masked(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns selected by a fixed mask."""
    rows = torch.tensor([True, False, True, True, False])
    pairs = torch.tensor([[False, True, True], [True, False, False]])
    return m.head(x[rows]), x[:2][pairs]
