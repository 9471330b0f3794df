#!/usr/bin/env python3
"""Writes tests/fixtures/optimizers.json: parameters after steps of every optimiser.

PyTorch takes the steps of the optimisers that it has; the others follow the published code, in
numpy, from the pseudo-code cited at each. Double precision throughout.

    /usr/bin/python3 tools/make_optimizer_fixtures.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gradient_cases.framework import Numbers
from torch.optim.swa_utils import AveragedModel

STEPS = 4
SHAPES = {"matrix": (3, 5), "tall": (6, 2), "vector": (4,)}
OUT = Path(__file__).parent.parent / "tests" / "fixtures" / "optimizers.json"

Arrays = dict[str, np.ndarray]


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return Numbers(name, 7).uniform(int(np.prod(shape))).reshape(shape)


def gradients(step: int) -> Arrays:
    return {name: numbers(f"{name}.grad.{step}", shape) for name, shape in SHAPES.items()}


def with_torch(
    make: Callable,
    clip: float | None = None,
    clip_value: float | None = None,
    ema: float | None = None,
) -> Arrays:
    weights = torch.nn.ParameterDict(
        {n: torch.nn.Parameter(torch.tensor(numbers(n, s))) for n, s in SHAPES.items()}
    )
    optimizer = make(weights)
    averaged = AveragedModel(weights, avg_fn=lambda mean, new, _: ema * mean + (1 - ema) * new)
    for step in range(1, STEPS + 1):
        for name, gradient in gradients(step).items():
            weights[name].grad = torch.tensor(gradient)
        if clip:
            torch.nn.utils.clip_grad_norm_(list(weights.values()), clip)
        if clip_value:
            torch.nn.utils.clip_grad_value_(list(weights.values()), clip_value)
        optimizer.step()
        if ema is not None:
            averaged.update_parameters(weights)
    after = {name: weight.detach().numpy() for name, weight in weights.items()}
    if ema is not None:
        means = dict(averaged.module.items())
        after |= {f"{name}.average": mean.detach().numpy() for name, mean in means.items()}
    return after


def with_numpy(update: Callable, clip_value: float = np.inf) -> Arrays:
    weights = {n: numbers(n, s) for n, s in SHAPES.items()}
    states: dict[str, dict] = {name: {} for name in SHAPES}
    for step in range(1, STEPS + 1):
        for name, gradient in gradients(step).items():
            clipped = np.clip(gradient, -clip_value, clip_value)
            weights[name] = update(weights[name], clipped, states[name], step)
    return weights


def moments(g: np.ndarray, s: dict, b1: float, b2: float) -> tuple[np.ndarray, np.ndarray]:
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
    return s["m"], s["v"]


def lion(lr: float, b1: float, b2: float, decay: float) -> Callable:
    """Chen et al. 2023, algorithm 2."""

    def update(w: np.ndarray, g: np.ndarray, s: dict, step: int) -> np.ndarray:
        m = s.get("m", np.zeros_like(w))
        move = np.sign(b1 * m + (1 - b1) * g) + decay * w
        s["m"] = b2 * m + (1 - b2) * g
        return w - lr * move

    return update


def lamb(lr: float, decay: float, eps: float = 1e-6) -> Callable:
    """You et al. 2020, algorithm 2, with the identity as phi."""
    b1, b2 = 0.9, 0.999

    def update(w: np.ndarray, g: np.ndarray, s: dict, step: int) -> np.ndarray:
        m, v = moments(g, s, b1, b2)
        move = (m / (1 - b1**step)) / (np.sqrt(v / (1 - b2**step)) + eps) + decay * w
        norm, of_move = np.linalg.norm(w), np.linalg.norm(move)
        ratio = norm / of_move if norm > 0 and of_move > 0 else 1.0
        return w - lr * ratio * move

    return update


def adafactor(
    lr: float, b1: float = 0.0, decay: float = 0.0, relative: bool = False, scale: bool = False
) -> Callable:
    """Shazeer and Stern 2018, algorithms 4 and 5, without warm-up."""

    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean(x * x)))

    def update(w: np.ndarray, g: np.ndarray, s: dict, step: int) -> np.ndarray:
        share = 1 - step**-0.8
        squares = g * g + 1e-30
        rate = min(1e-2, 1 / np.sqrt(step)) if relative else lr
        rate = rate * max(1e-3, rms(w)) if scale else rate
        if w.ndim >= 2:
            s["r"] = share * s.get("r", 0.0) + (1 - share) * squares.mean(-1)
            s["c"] = share * s.get("c", 0.0) + (1 - share) * squares.mean(-2)
            v = np.outer(s["r"], s["c"]) / s["r"].mean()
        else:
            v = s["v"] = share * s.get("v", 0.0) + (1 - share) * squares
        move = g / np.sqrt(v)
        move = rate * move / max(1.0, rms(move))
        if b1 > 0:
            move = s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * move
        return w - decay * rate * w - move

    return update


def muon(lr: float, decay: float, nesterov: bool = True) -> Callable:
    """Jordan et al. 2024: zeropower_via_newtonschulz5; vectors by AdamW."""
    mu, b1, b2 = 0.95, 0.9, 0.999

    def orthogonal(x: np.ndarray) -> np.ndarray:
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / max(np.linalg.norm(x), 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
        return x.T if tall else x

    def update(w: np.ndarray, g: np.ndarray, s: dict, step: int) -> np.ndarray:
        w = w * (1 - lr * decay)
        if w.ndim < 2:
            m, v = moments(g, s, b1, b2)
            divisor = np.sqrt(v) / np.sqrt(1 - b2**step) + 1e-8
            return w - lr / (1 - b1**step) * m / divisor
        s["m"] = mu * s.get("m", 0.0) + g
        move = g + mu * s["m"] if nesterov else s["m"]
        scale = max(1.0, w.shape[0] / w.shape[1]) ** 0.5
        return w - lr * scale * orthogonal(move)

    return update


def cases() -> dict[str, Arrays]:
    """By the training file that asks for the optimiser."""
    o = torch.optim

    def every(kind: Callable, **settings: object) -> Callable:
        return lambda weights: kind(list(weights.values()), **settings)

    def no_decay(weights: dict) -> torch.optim.Optimizer:
        groups = [
            {"params": [weights["matrix"], weights["tall"]]},
            {"params": [weights["vector"]], "weight_decay": 0.0},
        ]
        return o.AdamW(groups, lr=0.125, weight_decay=0.25)

    def two_rates(weights: dict) -> torch.optim.Optimizer:
        groups = [
            {"params": [weights["tall"], weights["vector"]]},
            {"params": [weights["matrix"]], "lr": 0.5, "momentum": 0.5},
        ]
        return o.SGD(groups, lr=0.125)

    def opt(text: str) -> str:
        return "{optimizer: {" + text + "}}"

    return {
        opt("type: sgd, learning_rate: 0.25"): with_torch(every(o.SGD, lr=0.25)),
        opt("type: sgd, learning_rate: 0.25, weight_decay: 0.125"): with_torch(
            every(o.SGD, lr=0.25, weight_decay=0.125)
        ),
        opt("type: sgd, learning_rate: 0.25, momentum: 0.75"): with_torch(
            every(o.SGD, lr=0.25, momentum=0.75)
        ),
        opt(
            "type: sgd, learning_rate: 0.25, momentum: 0.75, dampening: 0.5, weight_decay: 0.5"
        ): with_torch(every(o.SGD, lr=0.25, momentum=0.75, dampening=0.5, weight_decay=0.5)),
        opt("type: sgd, learning_rate: 0.25, momentum: 0.75, nesterov: true"): with_torch(
            every(o.SGD, lr=0.25, momentum=0.75, nesterov=True)
        ),
        opt("type: momentum, learning_rate: 0.25, momentum: 0.5"): with_torch(
            every(o.SGD, lr=0.25, momentum=0.5)
        ),
        opt("type: adam"): with_torch(every(o.Adam)),
        opt("type: adam, learning_rate: 0.25, betas: [0.5, 0.75], weight_decay: 0.5"): with_torch(
            every(o.Adam, lr=0.25, betas=(0.5, 0.75), weight_decay=0.5)
        ),
        opt("type: adam, learning_rate: 0.25, epsilon: 0.5"): with_torch(
            every(o.Adam, lr=0.25, eps=0.5)
        ),
        opt("type: adamw"): with_torch(every(o.AdamW)),
        opt("type: adamw, learning_rate: 0.25, weight_decay: 0.5"): with_torch(
            every(o.AdamW, lr=0.25, weight_decay=0.5)
        ),
        opt(
            "type: adamw, learning_rate: 0.125, weight_decay: 0.25, no_decay: norms_and_biases"
        ): with_torch(no_decay),
        opt(
            "type: sgd, learning_rate: 0.125, "
            "groups: [{match: 'mat*', learning_rate: 0.5, momentum: 0.5}]"
        ): with_torch(two_rates),
        opt("type: rmsprop"): with_torch(every(o.RMSprop)),
        opt("type: rmsprop, centered: true, alpha: 0.75, weight_decay: 0.5"): with_torch(
            every(o.RMSprop, centered=True, alpha=0.75, weight_decay=0.5)
        ),
        opt("type: rmsprop, momentum: 0.5, learning_rate: 0.125"): with_torch(
            every(o.RMSprop, momentum=0.5, lr=0.125)
        ),
        opt("type: rmsprop, momentum: 0.5, centered: true"): with_torch(
            every(o.RMSprop, momentum=0.5, centered=True)
        ),
        opt("type: adagrad"): with_torch(every(o.Adagrad)),
        opt(
            "type: adagrad, learning_rate: 0.5, learning_rate_decay: 0.25, "
            "initial_accumulator: 0.125, weight_decay: 0.5"
        ): with_torch(
            every(
                o.Adagrad,
                lr=0.5,
                lr_decay=0.25,
                initial_accumulator_value=0.125,
                weight_decay=0.5,
            )
        ),
        "{optimizer: {type: sgd, learning_rate: 0.5}, clip_global_norm: 0.5}": with_torch(
            every(o.SGD, lr=0.5), clip=0.5
        ),
        "{optimizer: {type: adam}, clip_global_norm: 0.25}": with_torch(every(o.Adam), clip=0.25),
        "{optimizer: {type: adam}, clip_global_norm: 100}": with_torch(every(o.Adam), clip=100),
        opt("type: adam, learning_rate: 0.25, betas: [0.5, 0.25], amsgrad: true"): with_torch(
            every(o.Adam, lr=0.25, betas=(0.5, 0.25), amsgrad=True)
        ),
        opt("type: adamw, weight_decay: 0.5, betas: [0.5, 0.25], amsgrad: true"): with_torch(
            every(o.AdamW, weight_decay=0.5, betas=(0.5, 0.25), amsgrad=True)
        ),
        "{optimizer: {type: sgd, learning_rate: 0.5, weight_decay: 0.25}, clip_value: 0.25}": (
            with_torch(every(o.SGD, lr=0.5, weight_decay=0.25), clip_value=0.25)
        ),
        "{optimizer: {type: adam}, clip_value: 0.5}": with_torch(every(o.Adam), clip_value=0.5),
        "{optimizer: {type: adamw, learning_rate: 0.25}, ema: {decay: 0.75}}": with_torch(
            every(o.AdamW, lr=0.25), ema=0.75
        ),
        "{optimizer: {type: sgd, learning_rate: 0.5}, clip_global_norm: 0.5, ema: 0.875}": (
            with_torch(every(o.SGD, lr=0.5), clip=0.5, ema=0.875)
        ),
        "{optimizer: {type: lamb, learning_rate: 0.25}, clip_value: 0.25}": with_numpy(
            lamb(0.25, 0.0), clip_value=0.25
        ),
        "{optimizer: {type: adafactor, learning_rate: 0.25}, clip_value: 0.25}": with_numpy(
            adafactor(0.25), clip_value=0.25
        ),
        "{optimizer: {type: muon, learning_rate: 0.25}, clip_value: 0.25}": with_numpy(
            muon(0.25, 0.0), clip_value=0.25
        ),
        opt("type: lion, learning_rate: 0.25"): with_numpy(lion(0.25, 0.9, 0.99, 0)),
        opt("type: lion, learning_rate: 0.25, betas: [0.5, 0.75], weight_decay: 0.5"): with_numpy(
            lion(0.25, 0.5, 0.75, 0.5)
        ),
        opt("type: lamb, learning_rate: 0.25"): with_numpy(lamb(0.25, 0.0)),
        opt("type: lamb, learning_rate: 0.25, weight_decay: 0.5"): with_numpy(lamb(0.25, 0.5)),
        opt("type: adafactor, learning_rate: 0.25"): with_numpy(adafactor(0.25)),
        opt(
            "type: adafactor, learning_rate: 0.25, beta1: 0.5, weight_decay: 0.5, "
            "scale_parameter: true"
        ): with_numpy(adafactor(0.25, b1=0.5, decay=0.5, scale=True)),
        opt("type: adafactor, relative_step: true, scale_parameter: true"): with_numpy(
            adafactor(0.0, relative=True, scale=True)
        ),
        opt("type: muon, learning_rate: 0.25"): with_numpy(muon(0.25, 0.0)),
        opt("type: muon, learning_rate: 0.25, weight_decay: 0.5, nesterov: false"): with_numpy(
            muon(0.25, 0.5, nesterov=False)
        ),
    }


def main() -> None:
    rows = [
        {"training": text, "after": {name: array.reshape(-1).tolist() for name, array in made.items()}}
        for text, made in cases().items()
    ]
    shapes = {name: list(shape) for name, shape in SHAPES.items()}
    fixture = {"steps": STEPS, "seed": 7, "shapes": shapes, "cases": rows}
    OUT.write_text(json.dumps(fixture, indent=1) + "\n")
    print(f"{len(rows)} optimisers after {STEPS} steps in {OUT}")


if __name__ == "__main__":
    main()
