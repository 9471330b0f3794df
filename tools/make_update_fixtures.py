#!/usr/bin/env python3
"""Writes the results of optimisers for given gradients, in double precision, to tests/fixtures/.

optimizers.json: parameters after steps of every optimiser. sparse_gradients.json: an embedding and a
dense parameter after steps on sparse gradients. sam.json: small networks after steps of
sharpness-aware minimisation. The name of a case is its training file.

    /usr/bin/python3 tools/make_update_fixtures.py
"""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from torch import Tensor
from torch.nn import Parameter

from gradient_cases.framework import Numbers
from optimizer_oracles import make_from_file

SEED = 7
FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"

Shape = tuple[int, ...]
Tensors = dict[str, Tensor]


def numbers(name: str, shape: Iterable[int]) -> Tensor:
    shape = tuple(shape)
    return torch.tensor(Numbers(name, SEED).uniform(math.prod(shape)).reshape(shape))


def flat(tensors: Tensors) -> dict[str, list[float]]:
    return {name: tensor.detach().reshape(-1).tolist() for name, tensor in tensors.items()}


def update(training: str, parameters: Tensors, steps: int, set_gradients: Callable[[int], None]) -> dict:
    """Returns the parameters after the steps, and their running averages if the file has `ema`."""
    read = yaml.safe_load(training)
    optimizer = make_from_file(read, parameters)
    ema = read.get("ema")
    share = ema["decay"] if isinstance(ema, dict) else ema
    means: Tensors = {}
    for step in range(1, steps + 1):
        set_gradients(step)
        optimizer.step()
        new = {name: tensor.detach().clone() for name, tensor in parameters.items()}
        if share is not None:
            means = {name: share * means[name] + (1 - share) * one for name, one in new.items()} if means else new
    return flat(parameters | {f"{name}.average": mean for name, mean in means.items()})


# --- Dense gradients -------------------------------------------------------------------------

OPTIMIZER_STEPS = 4
SHAPES = {"matrix": (3, 5), "tall": (6, 2), "vector": (4,)}
OPTIMIZERS = """
{optimizer: {type: sgd, learning_rate: 0.25}}
{optimizer: {type: sgd, learning_rate: 0.25, weight_decay: 0.125}}
{optimizer: {type: sgd, learning_rate: 0.25, momentum: 0.75}}
{optimizer: {type: sgd, learning_rate: 0.25, momentum: 0.75, dampening: 0.5, weight_decay: 0.5}}
{optimizer: {type: sgd, learning_rate: 0.25, momentum: 0.75, nesterov: true}}
{optimizer: {type: momentum, learning_rate: 0.25, momentum: 0.5}}
{optimizer: {type: adam}}
{optimizer: {type: adam, learning_rate: 0.25, betas: [0.5, 0.75], weight_decay: 0.5}}
{optimizer: {type: adam, learning_rate: 0.25, epsilon: 0.5}}
{optimizer: {type: adamw}}
{optimizer: {type: adamw, learning_rate: 0.25, weight_decay: 0.5}}
{optimizer: {type: adamw, learning_rate: 0.125, weight_decay: 0.25, no_decay: norms_and_biases}}
{optimizer: {type: sgd, learning_rate: 0.125, groups: [{match: 'mat*', learning_rate: 0.5, momentum: 0.5}]}}
{optimizer: {type: rmsprop}}
{optimizer: {type: rmsprop, centered: true, alpha: 0.75, weight_decay: 0.5}}
{optimizer: {type: rmsprop, momentum: 0.5, learning_rate: 0.125}}
{optimizer: {type: rmsprop, momentum: 0.5, centered: true}}
{optimizer: {type: adagrad}}
{optimizer: {type: adagrad, learning_rate: 0.5, learning_rate_decay: 0.25, initial_accumulator: 0.125, weight_decay: 0.5}}
{optimizer: {type: sgd, learning_rate: 0.5}, clip_global_norm: 0.5}
{optimizer: {type: adam}, clip_global_norm: 0.25}
{optimizer: {type: adam}, clip_global_norm: 100}
{optimizer: {type: adam, learning_rate: 0.25, betas: [0.5, 0.25], amsgrad: true}}
{optimizer: {type: adamw, weight_decay: 0.5, betas: [0.5, 0.25], amsgrad: true}}
{optimizer: {type: sgd, learning_rate: 0.5, weight_decay: 0.25}, clip_value: 0.25}
{optimizer: {type: adam}, clip_value: 0.5}
{optimizer: {type: adamw, learning_rate: 0.25}, ema: {decay: 0.75}}
{optimizer: {type: sgd, learning_rate: 0.5}, clip_global_norm: 0.5, ema: 0.875}
{optimizer: {type: lamb, learning_rate: 0.25}, clip_value: 0.25}
{optimizer: {type: adafactor, learning_rate: 0.25}, clip_value: 0.25}
{optimizer: {type: muon, learning_rate: 0.25}, clip_value: 0.25}
{optimizer: {type: lion, learning_rate: 0.25}}
{optimizer: {type: lion, learning_rate: 0.25, betas: [0.5, 0.75], weight_decay: 0.5}}
{optimizer: {type: lamb, learning_rate: 0.25}}
{optimizer: {type: lamb, learning_rate: 0.25, weight_decay: 0.5}}
{optimizer: {type: adafactor, learning_rate: 0.25}}
{optimizer: {type: adafactor, learning_rate: 0.25, beta1: 0.5, weight_decay: 0.5, scale_parameter: true}}
{optimizer: {type: adafactor, relative_step: true, scale_parameter: true}}
{optimizer: {type: muon, learning_rate: 0.25}}
{optimizer: {type: muon, learning_rate: 0.25, weight_decay: 0.5, nesterov: false}}
"""


def after_optimizer(training: str) -> dict:
    parameters = {name: Parameter(numbers(name, shape)) for name, shape in SHAPES.items()}

    def set_gradients(step: int) -> None:
        for name, parameter in parameters.items():
            parameter.grad = numbers(f"{name}.grad.{step}", SHAPES[name])

    return update(training, parameters, OPTIMIZER_STEPS, set_gradients)


def optimizers() -> dict:
    cases = [{"training": text, "after": after_optimizer(text)} for text in OPTIMIZERS.strip().splitlines()]
    return {"steps": OPTIMIZER_STEPS, "seed": SEED, "shapes": SHAPES, "cases": cases}


# --- Sparse gradients ------------------------------------------------------------------------

SPARSE_STEPS = 4
TABLE, DENSE = (9, 4), (5,)
LOOKUPS: dict[str, Shape] = {"first": (2, 3), "second": (4,)}
SPARSE = """
{sparse_gradients: true, optimizer: {type: sgd, learning_rate: 0.25}}
{sparse_gradients: true, optimizer: {type: sgd, learning_rate: 0.25}, clip_global_norm: 0.5}
{sparse_gradients: true, optimizer: {type: adagrad, learning_rate: 0.25}}
{sparse_gradients: true, optimizer: {type: adagrad, learning_rate: 0.5, learning_rate_decay: 0.25, initial_accumulator: 0.125}}
{sparse_gradients: true, optimizer: {type: adamw, learning_rate: 0.25, weight_decay: 0, groups: [{match: table, type: sparse_adam}]}}
{sparse_gradients: true, optimizer: {type: adamw, learning_rate: 0.25, betas: [0.5, 0.75], epsilon: 0.125, weight_decay: 0.5, groups: [{match: table, type: sparse_adam}]}, clip_global_norm: 0.5, ema: 0.75}
"""


def sparse_indices() -> list[dict[str, list[int]]]:
    """Row 8 is never read; some rows occur twice in one look-up, some in both look-ups."""
    draw = np.random.default_rng(3)
    steps = []
    for _ in range(SPARSE_STEPS):
        step = {name: draw.integers(0, TABLE[0] - 1, math.prod(shape)) for name, shape in LOOKUPS.items()}
        step["first"][3] = step["second"][1] = step["first"][0]
        steps.append({name: chosen.tolist() for name, chosen in step.items()})
    return steps


def after_sparse(training: str) -> dict:
    table, dense = Parameter(numbers("table", TABLE)), Parameter(numbers("dense", DENSE))
    indices = sparse_indices()

    def set_gradients(step: int) -> None:
        table.grad = None
        for name, shape in LOOKUPS.items():
            at = torch.tensor(indices[step - 1][name]).reshape(shape)
            out = F.embedding(at, table, sparse=True)
            out.backward(numbers(f"{name}.grad.{step}", (*shape, TABLE[1])))
        dense.grad = numbers(f"dense.grad.{step}", DENSE)

    return update(training, {"table": table, "dense": dense}, SPARSE_STEPS, set_gradients)


def sparse_gradients() -> dict:
    cases = [{"training": text, "after": after_sparse(text)} for text in SPARSE.strip().splitlines()]
    return {"seed": SEED, "table": TABLE, "dense": DENSE, "lookups": LOOKUPS, "indices": sparse_indices(),
            "cases": cases}


# --- Sharpness-aware minimisation ------------------------------------------------------------

SAM_STEPS = 3
SAM = """
{optimizer: {type: sgd, learning_rate: 0.25, momentum: 0.75}, sam: {rho: 0.05}}
{optimizer: {type: adam, learning_rate: 0.125}, sam: 0.5}
{optimizer: {type: adamw, learning_rate: 0.125, weight_decay: 0.25}, sam: 0.25, clip_global_norm: 0.125}
"""
FROZEN = "{optimizer: {type: sgd, learning_rate: 0.25}, sam: 0.25, trainable: {freeze: [c2, b]}}"


def mlp(t: Tensors, x: Tensor) -> Tensor:
    return F.linear(torch.tanh(F.linear(x, t["w1"], t["b1"])), t["w2"], t["b2"])


def conv(t: Tensors, x: Tensor) -> Tensor:
    x = F.conv2d(x, t["c1"], padding=1)  # a bias would have a gradient of rounding errors only
    x = F.batch_norm(x, t["mean"], t["var"], t["scale"], t["shift"], True, 0.1, 1e-5)
    x = F.conv2d(torch.relu(x), t["c2"], t["c2b"], stride=2)
    return F.linear(x.mean((2, 3)), t["w"], t["b"])


NETWORKS: dict[str, dict] = {
    "mlp": {"input": [4, 3], "labels": [0, 1, 1, 0],
            "parameters": {"w1": [5, 3], "b1": [5], "w2": [2, 5], "b2": [2]}, "buffers": {}},
    "conv": {"input": [2, 3, 6, 6], "labels": [2, 0],
             "parameters": {"c1": [4, 3, 3, 3], "scale": [4], "shift": [4], "c2": [5, 4, 3, 3], "c2b": [5],
                            "w": [3, 5], "b": [3]}, "buffers": {"mean": [4], "var": [4]}}}


def after_sam(network: str, training: str) -> dict:
    """Runs the step of Foret et al. 2021, algorithm 1: gradients at w, w moved by rho along them, gradients
    there, the optimiser's step from w with these. Both passes update running statistics."""
    read, facts = yaml.safe_load(training), NETWORKS[network]
    rho = read["sam"]["rho"] if isinstance(read["sam"], dict) else read["sam"]
    frozen = read.get("trainable", {}).get("freeze", ())
    tensors: Tensors = {name: Parameter(numbers(name, shape), name not in frozen)
                        for name, shape in facts["parameters"].items()}
    trained = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    tensors.update({name: numbers(name, shape).abs() for name, shape in facts["buffers"].items()})
    optimizer = make_from_file(read, trained)
    forward = {"mlp": mlp, "conv": conv}[network]
    losses = []

    def take_gradients(x: Tensor) -> float:
        loss = F.cross_entropy(forward(tensors, x), torch.tensor(facts["labels"]))
        for weight in trained.values():
            weight.grad = None
        loss.backward()
        return loss.item()

    for step in range(1, SAM_STEPS + 1):
        x = numbers(f"x.{step}", facts["input"])
        losses.append(take_gradients(x))
        norm = torch.sqrt(sum((weight.grad**2).sum() for weight in trained.values()))
        before = {name: weight.detach().clone() for name, weight in trained.items()}
        with torch.no_grad():
            for weight in trained.values():
                weight += rho / (norm + 1e-12) * weight.grad
        take_gradients(x)
        with torch.no_grad():
            for name, weight in trained.items():
                weight.copy_(before[name])
        optimizer.step()
    return {"network": network, "training": training, "losses": losses, "after": flat(tensors)}


def sam() -> dict:
    cases = [after_sam(network, text) for network in NETWORKS for text in SAM.strip().splitlines()]
    return {"seed": SEED, "steps": SAM_STEPS, "networks": NETWORKS, "cases": [*cases, after_sam("conv", FROZEN)]}


def main() -> None:
    for make in (optimizers, sparse_gradients, sam):
        made = make()
        (FIXTURES / f"{make.__name__}.json").write_text(json.dumps(made, indent=1) + "\n")
        print(f"{make.__name__}: {len(made['cases'])} cases")


if __name__ == "__main__":
    main()
