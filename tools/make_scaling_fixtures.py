#!/usr/bin/env python3
"""Write tests/fixtures/fp8_scaling.json: maxima, histories and scales of fp8 training.

A perceptron with one hidden layer is trained for some steps by PyTorch in double precision. The
operands of its products are inputs, weights and gradients of results. The recipe of NVIDIA's Transformer Engine
(DelayedScaling and Float8CurrentScaling), implemented here from its definition, computes histories and
scales from their largest magnitudes.
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F

REPOSITORY = Path(__file__).resolve().parent.parent
LARGEST = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0}
FP32_MAX = torch.finfo(torch.float32).max
RATE = 0.5


def pattern(shape: tuple[int, ...], phase: float, scale: float) -> torch.Tensor:
    count = math.prod(shape)
    numbers = [scale * math.sin(1.7 * i + phase) for i in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def train(steps: int) -> list[dict[str, float]]:
    """Returns the largest magnitude of every operand of a product, by name and step."""
    x = pattern((4, 6), 0.1, 3.0)
    labels = torch.tensor([0, 2, 1, 2])
    parameters = {"w1": pattern((8, 6), 1.0, 0.8), "b1": pattern((8,), 2.0, 0.3), "w2": pattern((3, 8), 3.0, 1.2),
                  "b2": pattern((3,), 4.0, 0.3)}
    maxima = []
    for _ in range(steps):
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        hidden = F.linear(x, leaves["w1"], leaves["b1"])
        active = F.relu(hidden)
        logits = F.linear(active, leaves["w2"], leaves["b2"])
        hidden.retain_grad()
        logits.retain_grad()
        F.cross_entropy(logits, labels).backward()
        operands = {"x": x, "w1": leaves["w1"], "hidden": active, "w2": leaves["w2"], "hidden.grad": hidden.grad,
                    "logits.grad": logits.grad}
        maxima.append({name: t.abs().max().item() for name, t in operands.items()})
        parameters = {name: p.detach() - RATE * p.grad for name, p in leaves.items()}
    return maxima


def scale_of(amax: float, before: float, largest: float, margin: int) -> float:
    if not amax > 0.0 or not math.isfinite(amax):
        return before
    scale = largest / amax / 2.0**margin
    return FP32_MAX if math.isinf(scale) else scale


def delayed(maxima: list[float], length: int, recent: bool, margin: int, largest: float) -> dict:
    """Returns the states after the last step. The first place of the history receives the step's
    maximum; then all places move by one and the first is cleared."""
    history = torch.zeros(length, dtype=torch.float64)
    scale = 1.0
    for amax in maxima:
        history[0] = amax
        used = history[0].item() if recent else history.max().item()
        if length > 1:
            history = torch.roll(history, -1)
        history[0] = 0.0
        scale = scale_of(used, scale, largest, margin)
    return {"history": history.tolist(), "scale": scale}


def main() -> None:
    cases = []
    for steps, length, recent, margin, backward in [(1, 4, False, 0, "fp8_e5m2"), (3, 4, False, 0, "fp8_e5m2"),
                                                    (3, 2, False, 1, "fp8_e5m2"), (3, 4, True, 0, "fp8_e4m3"),
                                                    (3, 1, False, 0, "fp8_e5m2"), (4, 3, False, -1, "fp8_e4m3")]:
        maxima = train(steps)
        states = {}
        for name in maxima[0]:
            largest = LARGEST[backward if name.endswith(".grad") else "fp8_e4m3"]
            of_steps = [step[name] for step in maxima]
            states[name] = delayed(of_steps, length, recent, margin, largest)
            states[name]["amax"] = of_steps[-1]
            states[name]["current_scale"] = scale_of(of_steps[-1], 1.0, largest, 0)
        cases.append({"steps": steps, "amax_history": length, "amax_compute": "most_recent" if recent else "max",
                      "margin": margin, "backward": backward, "states": states})
    path = REPOSITORY / "tests/fixtures/fp8_scaling.json"
    path.write_text(json.dumps({"cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
