#!/usr/bin/env python3
"""Writes tests/fixtures/sparse_gradients.json: an embedding after steps on sparse gradients.

Two look-ups into one table, with indices that come twice and rows that nobody reads, and a dense
parameter beside it; PyTorch's nn.functional.embedding(sparse=True). Double precision.

    /usr/bin/python3 tools/make_sparse_gradient_fixtures.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gradient_cases.framework import Numbers

STEPS = 4
ROWS, WIDTH = 9, 4
DENSE = (5,)
LOOKUPS = {"first": (2, 3), "second": (4,)}
OUT = Path(__file__).parent.parent / "tests" / "fixtures" / "sparse_gradients.json"

Arrays = dict[str, np.ndarray]


def numbers(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(Numbers(name, 7).uniform(int(np.prod(shape))).reshape(shape))


def indices() -> list[dict[str, list[int]]]:
    """Row 8 is never read, rows come twice in a look-up and in both."""
    draw = np.random.default_rng(3)
    steps = []
    for _ in range(STEPS):
        step = {n: draw.integers(0, ROWS - 1, int(np.prod(s))) for n, s in LOOKUPS.items()}
        step["first"][3] = step["first"][0]
        step["second"][1] = step["first"][0]
        steps.append({name: chosen.tolist() for name, chosen in step.items()})
    return steps


def train(
    make: Callable, clip: float | None = None, ema: float | None = None
) -> dict[str, list[float]]:
    """`make` gives optimisers for (table, dense)."""
    table = torch.nn.Parameter(numbers("table", (ROWS, WIDTH)))
    dense = torch.nn.Parameter(numbers("dense", DENSE))
    optimizers = make(table, dense)
    means: list[torch.Tensor] = []
    for number, chosen in enumerate(indices(), 1):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for name, shape in LOOKUPS.items():
            at = torch.tensor(chosen[name]).reshape(shape)
            out = torch.nn.functional.embedding(at, table, sparse=True)
            out.backward(numbers(f"{name}.grad.{number}", (*shape, WIDTH)))
        dense.grad = numbers(f"dense.grad.{number}", DENSE)
        assert table.grad.is_sparse
        if clip:
            table.grad = table.grad.coalesce()
            norm = torch.nn.utils.clip_grad_norm_([table, dense], clip)
            table.grad *= min(1.0, clip / (norm + 1e-6))  # of which 1.13 scales a detached copy
        for optimizer in optimizers:
            optimizer.step()
        new = [table.detach().clone(), dense.detach().clone()]
        means = [ema * m + (1 - ema) * n for m, n in zip(means, new)] if means and ema else new
    after = {"table": table, "dense": dense}
    if ema:
        after |= {"table.average": means[0], "dense.average": means[1]}
    return {name: tensor.detach().reshape(-1).tolist() for name, tensor in after.items()}


def cases() -> dict[str, dict[str, list[float]]]:
    """By the training file."""
    o = torch.optim

    def both(kind: Callable, **settings: object) -> Callable:
        return lambda table, dense: [kind([table, dense], **settings)]

    def lazy(rate: float, **settings: object) -> Callable:
        def make(table: torch.Tensor, dense: torch.Tensor) -> list:
            sparse = {key: value for key, value in settings.items() if key != "weight_decay"}
            return [
                o.SparseAdam([table], lr=rate, **sparse),
                o.AdamW([dense], lr=rate, **({"weight_decay": 0.0} | settings)),
            ]

        return make

    def text(optimizer: str, more: str = "") -> str:
        return "{sparse_gradients: true, optimizer: {" + optimizer + "}" + more + "}"

    sparse_adam = "groups: [{match: table, type: sparse_adam}]"
    return {
        text("type: sgd, learning_rate: 0.25"): train(both(o.SGD, lr=0.25)),
        text("type: sgd, learning_rate: 0.25", ", clip_global_norm: 0.5"): train(
            both(o.SGD, lr=0.25), clip=0.5
        ),
        text("type: adagrad, learning_rate: 0.25"): train(both(o.Adagrad, lr=0.25)),
        text(
            "type: adagrad, learning_rate: 0.5, learning_rate_decay: 0.25, "
            "initial_accumulator: 0.125"
        ): train(both(o.Adagrad, lr=0.5, lr_decay=0.25, initial_accumulator_value=0.125)),
        text("type: adamw, learning_rate: 0.25, weight_decay: 0, " + sparse_adam): train(
            lazy(0.25)
        ),
        text(
            "type: adamw, learning_rate: 0.25, betas: [0.5, 0.75], epsilon: 0.125, "
            "weight_decay: 0.5, " + sparse_adam,
            ", clip_global_norm: 0.5, ema: 0.75",
        ): train(
            lazy(0.25, betas=(0.5, 0.75), eps=0.125, weight_decay=0.5), clip=0.5, ema=0.75
        ),
    }


def main() -> None:
    fixture = {
        "seed": 7,
        "table": [ROWS, WIDTH],
        "dense": list(DENSE),
        "lookups": {name: list(shape) for name, shape in LOOKUPS.items()},
        "indices": indices(),
        "cases": [{"training": text, "after": after} for text, after in cases().items()],
    }
    OUT.write_text(json.dumps(fixture, indent=1) + "\n")
    print(f"{len(fixture['cases'])} cases after {STEPS} steps in {OUT}")


if __name__ == "__main__":
    main()
