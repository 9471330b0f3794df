"""Optimisers with the options that MONET's training files give them, as references.

Those of PyTorch 1.13 are PyTorch's. Lion, Adafactor, LAMB and Muon are written here in numpy from
their papers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

# The options as a training file has them.
OPTIONS: dict[str, dict] = {
    "sgd": {"type": "sgd", "learning_rate": 0.05},
    "momentum": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9},
    "nesterov_decay": {
        "type": "sgd",
        "learning_rate": 0.05,
        "momentum": 0.9,
        "nesterov": True,
        "weight_decay": 0.01,
    },
    "dampening": {
        "type": "sgd",
        "learning_rate": 0.05,
        "momentum": 0.8,
        "dampening": 0.25,
        "weight_decay": 0.01,
    },
    "adam": {"type": "adam", "learning_rate": 0.002, "epsilon": 1e-6},
    "adam_decay": {
        "type": "adam",
        "learning_rate": 0.002,
        "betas": [0.8, 0.95],
        "epsilon": 1e-6,
        "weight_decay": 0.01,
    },
    "adamw": {
        "type": "adamw",
        "learning_rate": 0.002,
        "betas": [0.9, 0.95],
        "epsilon": 1e-6,
        "weight_decay": 0.1,
    },
    "rmsprop": {"type": "rmsprop", "learning_rate": 0.001, "alpha": 0.9, "epsilon": 1e-6},
    "rmsprop_centered": {
        "type": "rmsprop",
        "learning_rate": 0.001,
        "alpha": 0.9,
        "epsilon": 1e-6,
        "momentum": 0.5,
        "centered": True,
        "weight_decay": 0.01,
    },
    "adagrad": {
        "type": "adagrad",
        "learning_rate": 0.01,
        "epsilon": 1e-6,
        "learning_rate_decay": 0.1,
        "initial_accumulator": 0.01,
        "weight_decay": 0.01,
    },
    "clipped_adamw": {
        "type": "adamw",
        "learning_rate": 0.002,
        "epsilon": 1e-6,
        "weight_decay": 0.01,
        "clip_global_norm": 0.5,
    },
    "lion": {
        "type": "lion",
        "learning_rate": 0.0005,
        "betas": [0.9, 0.99],
        "weight_decay": 0.1,
    },
    "adafactor": {"type": "adafactor", "learning_rate": 0.002},
    "lamb": {
        "type": "lamb",
        "learning_rate": 0.01,
        "betas": [0.9, 0.999],
        "epsilon": 1e-6,
        "weight_decay": 0.01,
    },
    "muon": {"type": "muon", "learning_rate": 0.01, "momentum": 0.95, "weight_decay": 0.1},
}


class PyTorchOptimizer:
    """states() names what the tests compare: PyTorch's state -> MONET's."""

    def __init__(
        self,
        parameters: dict[str, Tensor],
        optimizer: torch.optim.Optimizer,
        names: dict[str, str],
        clip: float | None,
    ) -> None:
        self._parameters = parameters
        self._optimizer = optimizer
        self._names = names
        self._clip = clip

    def step(self) -> None:
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), self._clip)
        self._optimizer.step()

    def states(self, key: str) -> dict[str, Tensor]:
        state = self._optimizer.state[self._parameters[key]]
        return {ours: state[theirs] for theirs, ours in self._names.items()}


def make_pytorch(options: dict, parameters: dict[str, Tensor]) -> PyTorchOptimizer:
    tensors = list(parameters.values())
    common = {
        "lr": options["learning_rate"],
        "weight_decay": options.get("weight_decay", 0.0),
    }
    adaptive = {"eps": options.get("epsilon", 1e-8)}
    kind = options["type"]
    names: dict[str, str] = {}
    made: torch.optim.Optimizer
    if kind == "sgd":
        made = torch.optim.SGD(
            tensors,
            **common,
            momentum=options.get("momentum", 0.0),
            dampening=options.get("dampening", 0.0),
            nesterov=options.get("nesterov", False),
        )
        if "momentum" in options:
            names = {"momentum_buffer": "momentum"}
    elif kind in ("adam", "adamw"):
        factory = torch.optim.Adam if kind == "adam" else torch.optim.AdamW
        betas = tuple(options.get("betas", (0.9, 0.999)))
        made = factory(tensors, **common, **adaptive, betas=betas)
        names = {"exp_avg": "first_moment", "exp_avg_sq": "second_moment"}
    elif kind == "rmsprop":
        made = torch.optim.RMSprop(
            tensors,
            **common,
            **adaptive,
            alpha=options["alpha"],
            momentum=options.get("momentum", 0.0),
            centered=options.get("centered", False),
        )
        names = {"square_avg": "second_moment"}
        if options.get("centered"):
            names["grad_avg"] = "mean"
        if options.get("momentum"):
            names["momentum_buffer"] = "momentum"
    else:
        made = torch.optim.Adagrad(
            tensors,
            **common,
            **adaptive,
            lr_decay=options["learning_rate_decay"],
            initial_accumulator_value=options["initial_accumulator"],
        )
        names = {"sum": "sum"}
    return PyTorchOptimizer(parameters, made, names, options.get("clip_global_norm"))


# --- From the papers -------------------------------------------------------------------------

State = dict[str, np.ndarray]
Update = Callable[[np.ndarray, np.ndarray, State, int], np.ndarray]


class PublishedOptimizer:
    """`update` returns the new weight and changes the states; steps are counted from 1."""

    def __init__(self, parameters: dict[str, Tensor], update: Update) -> None:
        self._parameters = parameters
        self._update = update
        self._states: dict[str, State] = {key: {} for key in parameters}
        self._step = 0

    def step(self) -> None:
        self._step += 1
        for key, parameter in self._parameters.items():
            weight = parameter.detach().numpy()
            new = self._update(weight, parameter.grad.numpy(), self._states[key], self._step)
            parameter.data.copy_(torch.from_numpy(new))

    def states(self, key: str) -> dict[str, Tensor]:
        return {name: torch.from_numpy(state) for name, state in self._states[key].items()}


def lion(options: dict) -> Update:
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2."""
    rate, decay = options["learning_rate"], options["weight_decay"]
    beta1, beta2 = options["betas"]

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, _: int) -> np.ndarray:
        momentum = state.get("momentum", np.zeros_like(weight))
        direction = np.sign(beta1 * momentum + (1.0 - beta1) * gradient)
        state["momentum"] = beta2 * momentum + (1.0 - beta2) * gradient
        return weight - rate * (direction + decay * weight)

    return update


def lamb(options: dict) -> Update:
    """You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2, phi(x) = x."""
    rate, decay, epsilon = options["learning_rate"], options["weight_decay"], options["epsilon"]
    beta1, beta2 = options["betas"]

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        zeros = np.zeros_like(weight)
        first = beta1 * state.get("first_moment", zeros) + (1.0 - beta1) * gradient
        second = beta2 * state.get("second_moment", zeros) + (1.0 - beta2) * gradient**2
        state["first_moment"], state["second_moment"] = first, second
        unbiased = first / (1.0 - beta1**step)
        ratio = unbiased / (np.sqrt(second / (1.0 - beta2**step)) + epsilon)
        direction = ratio + decay * weight
        length, size = np.linalg.norm(direction), np.linalg.norm(weight)
        trust = size / length if length > 0.0 and size > 0.0 else 1.0
        return weight - rate * trust * direction

    return update


def adafactor(options: dict) -> Update:
    """Shazeer and Stern 2018, "Adafactor", algorithms 4 (matrices) and 5 (vectors), section 6's
    decay 1 - t^-0.8 and clipping at 1; the given learning rate, no momentum, no relative step."""
    rate = options["learning_rate"]
    tiny = 1e-30

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        decay = 1.0 - step**-0.8
        squares = gradient**2 + tiny
        if weight.ndim >= 2:
            rows = squares.mean(axis=-1)
            columns = squares.mean(axis=-2)
            rows = decay * state.get("rows", 0.0 * rows) + (1.0 - decay) * rows
            columns = decay * state.get("columns", 0.0 * columns) + (1.0 - decay) * columns
            state["rows"], state["columns"] = rows, columns
            mean = rows.mean(axis=-1)[..., None, None]
            second = rows[..., :, None] * columns[..., None, :] / mean
        else:
            second = decay * state.get("second_moment", 0.0 * squares) + (1.0 - decay) * squares
            state["second_moment"] = second
        direction = gradient / np.sqrt(second)
        size = np.sqrt(np.mean(direction**2))
        return weight - rate * direction / max(1.0, size)

    return update


def orthogonalised(matrix: np.ndarray) -> np.ndarray:
    """Five Newton-Schulz iterations, Jordan et al. 2024, "Muon"."""
    a, b, c = 3.4445, -4.7750, 2.0315
    transposed = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if transposed else matrix
    x = x / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if transposed else x


def muon(options: dict) -> Update:
    """Jordan et al. 2024: Nesterov momentum, orthogonalised; AdamW for all but matrices.

    Decay and the guard against zero as in torch.optim.Muon of PyTorch 2.9.
    """
    rate, momentum = options["learning_rate"], options["momentum"]
    decay = options["weight_decay"]
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def adamw(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        zeros = np.zeros_like(weight)
        first = beta1 * state.get("first_moment", zeros) + (1.0 - beta1) * gradient
        second = beta2 * state.get("second_moment", zeros) + (1.0 - beta2) * gradient**2
        state["first_moment"], state["second_moment"] = first, second
        size = np.sqrt(second / (1.0 - beta2**step)) + epsilon
        return (1.0 - rate * decay) * weight - rate * first / (1.0 - beta1**step) / size

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        if weight.ndim != 2:
            return adamw(weight, gradient, state, step)
        buffer = momentum * state.get("momentum", np.zeros_like(weight)) + gradient
        state["momentum"] = buffer
        rows, columns = weight.shape
        direction = orthogonalised(gradient + momentum * buffer)
        return (1.0 - rate * decay) * weight - rate * max(1.0, rows / columns) ** 0.5 * direction

    return update


PUBLISHED = {"lion": lion, "lamb": lamb, "adafactor": adafactor, "muon": muon}


def make(name: str, parameters: dict[str, Tensor], pace: float = 1.0) -> tuple[dict, object]:
    """The options, their learning rate times `pace`, and an optimiser of them."""
    options = dict(OPTIONS[name])
    options["learning_rate"] = float(f"{options['learning_rate'] * pace:.6g}")
    if options["type"] not in PUBLISHED:
        return options, make_pytorch(options, parameters)
    return options, PublishedOptimizer(parameters, PUBLISHED[options["type"]](options))
