"""Reference optimisers with the options of MONET's training files.

PyTorch 1.13 provides some of them. Lion, Adafactor, LAMB and Muon are implemented here in numpy from
their papers.
"""

from collections.abc import Callable
from fnmatch import fnmatch

import numpy as np
import torch
from torch import Tensor

# Option names of a training file.
OPTIONS: dict[str, dict] = {
    "sgd": {"type": "sgd", "learning_rate": 0.05}, "momentum": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9},
    "nesterov_decay": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "dampening": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.8, "dampening": 0.25, "weight_decay": 0.01},
    "adam": {"type": "adam", "learning_rate": 0.002, "epsilon": 1e-6},
    "adam_decay": {"type": "adam", "learning_rate": 0.002, "betas": [0.8, 0.95], "epsilon": 1e-6,
                   "weight_decay": 0.01},
    "adamw": {"type": "adamw", "learning_rate": 0.002, "betas": [0.9, 0.95], "epsilon": 1e-6, "weight_decay": 0.1},
    "rmsprop": {"type": "rmsprop", "learning_rate": 0.001, "alpha": 0.9, "epsilon": 1e-6},
    "rmsprop_centered": {"type": "rmsprop", "learning_rate": 0.001, "alpha": 0.9, "epsilon": 1e-6, "momentum": 0.5,
                         "centered": True, "weight_decay": 0.01},
    "adagrad": {"type": "adagrad", "learning_rate": 0.01, "epsilon": 1e-6, "learning_rate_decay": 0.1,
                "initial_accumulator": 0.01, "weight_decay": 0.01},
    "clipped_adamw": {"type": "adamw", "learning_rate": 0.002, "epsilon": 1e-6, "weight_decay": 0.01,
                      "clip_global_norm": 0.5},
    "lion": {"type": "lion", "learning_rate": 0.0005, "betas": [0.9, 0.99], "weight_decay": 0.1},
    "adafactor": {"type": "adafactor", "learning_rate": 0.002},
    "lamb": {"type": "lamb", "learning_rate": 0.01, "betas": [0.9, 0.999], "epsilon": 1e-6, "weight_decay": 0.01},
    "muon": {"type": "muon", "learning_rate": 0.01, "momentum": 0.95, "weight_decay": 0.1}}



class Optimizer:
    """Runs the steps of all parameters, each with its options; gradients are clipped first."""

    def __init__(self, options: dict, parameters: dict[str, Tensor], *, clip_norm: float | None = None,
                 clip_value: float | None = None) -> None:
        self._parameters = parameters
        self._clip_norm, self._clip_value = clip_norm, clip_value
        self._rules = {key: make_rule(options_of(key, parameter, options), parameter)
                       for key, parameter in parameters.items()}

    def step(self) -> None:
        tensors = list(self._parameters.values())
        if self._clip_norm is not None:
            clip_norm(tensors, self._clip_norm)
        if self._clip_value is not None:
            torch.nn.utils.clip_grad_value_(tensors, self._clip_value)
        for rule in self._rules.values():
            rule.step()

    def states(self, key: str) -> dict[str, Tensor]:
        """Returns the states that the tests compare, by MONET's names."""
        return self._rules[key].states()


def clip_norm(tensors: list[Tensor], limit: float) -> None:
    for tensor in tensors:
        if tensor.grad.is_sparse:
            tensor.grad = tensor.grad.coalesce()
    norm = torch.nn.utils.clip_grad_norm_(tensors, limit)
    for tensor in tensors:
        if tensor.grad.is_sparse:
            tensor.grad *= min(1.0, limit / (norm + 1e-6))  # PyTorch 1.13 scales a detached copy


def options_of(key: str, parameter: Tensor, options: dict) -> dict:
    """Returns the options of a parameter: options of matching groups replace the common ones."""
    own = {name: value for name, value in options.items() if name not in ("groups", "no_decay", "clip_global_norm")}
    if "no_decay" in options and parameter.dim() < 2:
        own["weight_decay"] = 0.0
    for group in options.get("groups", ()):
        if fnmatch(key, group["match"]):
            own.update({name: value for name, value in group.items() if name != "match"})
    return own


# --- PyTorch's -------------------------------------------------------------------------------

PYTORCH = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad, "sparse_adam": torch.optim.SparseAdam}
ARGUMENTS = {"learning_rate": "lr", "epsilon": "eps", "learning_rate_decay": "lr_decay",
             "initial_accumulator": "initial_accumulator_value"}  # other options have equal names
STATES = {"exp_avg": "first_moment", "exp_avg_sq": "second_moment", "square_avg": "second_moment",
          "grad_avg": "mean", "momentum_buffer": "momentum", "sum": "sum"}


class PyTorchRule:
    """Omitted options have PyTorch's defaults."""

    def __init__(self, options: dict, parameter: Tensor) -> None:
        arguments = {ARGUMENTS.get(key, key): tuple(value) if isinstance(value, list) else value
                     for key, value in options.items() if key != "type"}
        if options["type"] == "sparse_adam":
            arguments.pop("weight_decay", None)
        self._parameter = parameter
        self._optimizer = PYTORCH[options["type"]]([parameter], **arguments)

    def step(self) -> None:
        self._optimizer.step()

    def states(self) -> dict[str, Tensor]:
        state = self._optimizer.state[self._parameter]
        return {ours: state[theirs] for theirs, ours in STATES.items() if state.get(theirs) is not None}


# --- From the papers -------------------------------------------------------------------------

State = dict[str, np.ndarray]
Update = Callable[[np.ndarray, np.ndarray, State, int], np.ndarray]


class PublishedRule:
    """`update` returns the new weight and changes the states; steps are counted from 1."""

    def __init__(self, update: Update, parameter: Tensor) -> None:
        self._parameter, self._update = parameter, update
        self._states: State = {}
        self._step = 0

    def step(self) -> None:
        self._step += 1
        weight, gradient = self._parameter.detach().numpy(), self._parameter.grad.numpy()
        self._parameter.data.copy_(torch.from_numpy(self._update(weight, gradient, self._states, self._step)))

    def states(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(state) for name, state in self._states.items()}


def moments(gradient: np.ndarray, state: State, beta1: float, beta2: float) -> tuple[np.ndarray, np.ndarray]:
    first = beta1 * state.get("first_moment", 0.0) + (1.0 - beta1) * gradient
    second = beta2 * state.get("second_moment", 0.0) + (1.0 - beta2) * gradient * gradient
    state["first_moment"], state["second_moment"] = first, second
    return first, second


def lion(learning_rate: float, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> Update:
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2."""
    beta1, beta2 = betas

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, _: int) -> np.ndarray:
        momentum = state.get("momentum", np.zeros_like(weight))
        direction = np.sign(beta1 * momentum + (1.0 - beta1) * gradient) + weight_decay * weight
        state["momentum"] = beta2 * momentum + (1.0 - beta2) * gradient
        return weight - learning_rate * direction

    return update


def lamb(learning_rate: float, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-6,
         weight_decay: float = 0.0) -> Update:
    """You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2, phi(x) = x."""
    beta1, beta2 = betas

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        first, second = moments(gradient, state, beta1, beta2)
        ratio = (first / (1.0 - beta1**step)) / (np.sqrt(second / (1.0 - beta2**step)) + epsilon)
        direction = ratio + weight_decay * weight
        size, length = np.linalg.norm(weight), np.linalg.norm(direction)
        trust = size / length if length > 0.0 and size > 0.0 else 1.0
        return weight - learning_rate * trust * direction

    return update


def adafactor(learning_rate: float = 0.0, beta1: float = 0.0, weight_decay: float = 0.0,
              relative_step: bool = False, scale_parameter: bool = False) -> Update:
    """Shazeer and Stern 2018, "Adafactor", algorithms 4 (matrices) and 5 (vectors), section 6's
    decay 1 - t^-0.8 and clipping at 1, without warm-up."""

    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean(x * x)))

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        share = 1.0 - step**-0.8
        squares = gradient * gradient + 1e-30
        rate = min(1e-2, 1.0 / np.sqrt(step)) if relative_step else learning_rate
        rate = rate * max(1e-3, rms(weight)) if scale_parameter else rate
        if weight.ndim >= 2:
            rows = state["rows"] = share * state.get("rows", 0.0) + (1.0 - share) * squares.mean(-1)
            columns = state["columns"] = share * state.get("columns", 0.0) + (1.0 - share) * squares.mean(-2)
            second = rows[..., :, None] * columns[..., None, :] / rows.mean(-1)[..., None, None]
        else:
            second = share * state.get("second_moment", 0.0) + (1.0 - share) * squares
            state["second_moment"] = second
        move = gradient / np.sqrt(second)
        move = rate * move / max(1.0, rms(move))
        if beta1 > 0.0:
            move = state["momentum"] = beta1 * state.get("momentum", 0.0) + (1.0 - beta1) * move
        return weight - weight_decay * rate * weight - move

    return update


def orthogonalised(matrix: np.ndarray) -> np.ndarray:
    """Five Newton-Schulz iterations, Jordan et al. 2024, "Muon" (zeropower_via_newtonschulz5)."""
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * (gram @ gram)) @ x
    return x.T if is_tall else x


def muon(learning_rate: float, momentum: float = 0.95, weight_decay: float = 0.0, nesterov: bool = True) -> Update:
    """Jordan et al. 2024: momentum, orthogonalised; AdamW for all but matrices.

    Decay and the guard against zero as in torch.optim.Muon of PyTorch 2.9.
    """
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def update(weight: np.ndarray, gradient: np.ndarray, state: State, step: int) -> np.ndarray:
        weight = weight * (1.0 - learning_rate * weight_decay)
        if weight.ndim != 2:
            first, second = moments(gradient, state, beta1, beta2)
            size = np.sqrt(second) / np.sqrt(1.0 - beta2**step) + epsilon
            return weight - learning_rate / (1.0 - beta1**step) * first / size
        state["momentum"] = momentum * state.get("momentum", 0.0) + gradient
        move = gradient + momentum * state["momentum"] if nesterov else state["momentum"]
        scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
        return weight - learning_rate * scale * orthogonalised(move)

    return update


PUBLISHED = {"lion": lion, "lamb": lamb, "adafactor": adafactor, "muon": muon}


def make_rule(options: dict, parameter: Tensor) -> PyTorchRule | PublishedRule:
    if options["type"] in PYTORCH:
        return PyTorchRule(options, parameter)
    arguments = {key: value for key, value in options.items() if key != "type"}
    return PublishedRule(PUBLISHED[options["type"]](**arguments), parameter)


def make(name: str, parameters: dict[str, Tensor], pace: float = 1.0) -> tuple[dict, Optimizer]:
    """The options, their learning rate times `pace`, and an optimiser of them."""
    options = dict(OPTIONS[name])
    options["learning_rate"] = float(f"{options['learning_rate'] * pace:.6g}")
    return options, Optimizer(options, parameters, clip_norm=options.get("clip_global_norm"))


def make_from_file(training: dict, parameters: dict[str, Tensor]) -> Optimizer:
    """The optimiser of a training file."""
    return Optimizer(training["optimizer"], parameters, clip_norm=training.get("clip_global_norm"),
                     clip_value=training.get("clip_value"))
