#!/usr/bin/env python3
"""Writes tests/fixtures/sam.json: small networks after steps of sharpness-aware minimisation.

The step is written by hand after Foret et al. 2021, algorithm 1: gradients at w, w moved by rho
along them, gradients there, the optimiser's step from w with these. Running statistics of batch
normalisations follow both passes. PyTorch in double precision.

    /usr/bin/python3 tools/make_sam_fixtures.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gradient_cases.framework import Numbers

STEPS = 3
OUT = Path(__file__).parent.parent / "tests" / "fixtures" / "sam.json"

Tensors = dict[str, torch.Tensor]
Network = Callable[[Tensors, torch.Tensor], torch.Tensor]


def numbers(name: str, shape: list[int]) -> torch.Tensor:
    return torch.tensor(Numbers(name, 7).uniform(int(np.prod(shape))).reshape(shape))


def mlp(t: Tensors, x: torch.Tensor) -> torch.Tensor:
    return F.linear(torch.tanh(F.linear(x, t["w1"], t["b1"])), t["w2"], t["b2"])


def conv(t: Tensors, x: torch.Tensor) -> torch.Tensor:
    x = F.conv2d(x, t["c1"], padding=1)  # a bias would have a gradient of rounding errors alone
    x = F.batch_norm(x, t["mean"], t["var"], t["scale"], t["shift"], True, 0.1, 1e-5)
    x = F.conv2d(torch.relu(x), t["c2"], t["c2b"], stride=2)
    return F.linear(x.mean((2, 3)), t["w"], t["b"])


NETWORKS: dict[str, dict] = {
    "mlp": {
        "forward": mlp,
        "input": [4, 3],
        "labels": [0, 1, 1, 0],
        "parameters": {"w1": [5, 3], "b1": [5], "w2": [2, 5], "b2": [2]},
        "buffers": {},
    },
    "conv": {
        "forward": conv,
        "input": [2, 3, 6, 6],
        "labels": [2, 0],
        "parameters": {
            "c1": [4, 3, 3, 3],
            "scale": [4],
            "shift": [4],
            "c2": [5, 4, 3, 3],
            "c2b": [5],
            "w": [3, 5],
            "b": [3],
        },
        "buffers": {"mean": [4], "var": [4]},
    },
}


def train(
    network: str,
    rho: float,
    make: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer],
    clip: float | None = None,
    frozen: tuple[str, ...] = (),
) -> dict[str, list]:
    facts = NETWORKS[network]
    tensors: Tensors = {}
    for name, shape in facts["parameters"].items():
        tensors[name] = torch.nn.Parameter(numbers(name, shape), name not in frozen)
    trained = [w for w in tensors.values() if w.requires_grad]
    for name, shape in facts["buffers"].items():
        tensors[name] = numbers(name, shape).abs()
    labels = torch.tensor(facts["labels"])
    optimizer = make(trained)
    losses = []

    def gradients(x: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(facts["forward"](tensors, x), labels)
        optimizer.zero_grad()
        loss.backward()
        return loss

    for step in range(1, STEPS + 1):
        x = numbers(f"x.{step}", facts["input"])
        losses.append(gradients(x).item())
        norm = torch.sqrt(sum((w.grad**2).sum() for w in trained))
        before = [w.detach().clone() for w in trained]
        with torch.no_grad():
            for weight in trained:
                weight += rho / (norm + 1e-12) * weight.grad
        gradients(x)
        with torch.no_grad():
            for weight, old in zip(trained, before):
                weight.copy_(old)
        if clip:
            torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()
    after = {name: tensor.detach().reshape(-1).tolist() for name, tensor in tensors.items()}
    return {"losses": losses, "after": after}


def cases() -> list[dict]:
    o = torch.optim

    def case(network: str, training: str, *args: object, **settings: object) -> dict:
        made = train(network, *args, **settings)
        return {"network": network, "training": "{" + training + "}", **made}

    rows = []
    for network in NETWORKS:
        rows += [
            case(
                network,
                "optimizer: {type: sgd, learning_rate: 0.25, momentum: 0.75}, sam: {rho: 0.05}",
                0.05,
                lambda w: o.SGD(w, lr=0.25, momentum=0.75),
            ),
            case(
                network,
                "optimizer: {type: adam, learning_rate: 0.125}, sam: 0.5",
                0.5,
                lambda w: o.Adam(w, lr=0.125),
            ),
            case(
                network,
                "optimizer: {type: adamw, learning_rate: 0.125, weight_decay: 0.25}, sam: 0.25, "
                "clip_global_norm: 0.125",
                0.25,
                lambda w: o.AdamW(w, lr=0.125, weight_decay=0.25),
                clip=0.125,
            ),
        ]
    rows.append(
        case(
            "conv",
            "optimizer: {type: sgd, learning_rate: 0.25}, sam: 0.25, trainable: {freeze: [c2, b]}",
            0.25,
            lambda w: o.SGD(w, lr=0.25),
            frozen=("c2", "b"),
        )
    )
    return rows


def main() -> None:
    networks = {
        name: {key: value for key, value in facts.items() if key != "forward"}
        for name, facts in NETWORKS.items()
    }
    fixture = {"seed": 7, "steps": STEPS, "networks": networks, "cases": cases()}
    OUT.write_text(json.dumps(fixture, indent=1) + "\n")
    print(f"{len(fixture['cases'])} cases after {STEPS} steps in {OUT}")


if __name__ == "__main__":
    main()
