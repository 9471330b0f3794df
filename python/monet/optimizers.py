"""Optimisers as options of a training step: `net.training_step(optimizer=monet.Adam(lr=1e-3))`.

Each function returns the dict of a training file (docs/reference/optimizers.md). It accepts
PyTorch's short names as well: lr for learning_rate, eps for epsilon. Invalid options raise an error
when the step is created."""

from __future__ import annotations

from typing import Any

_LONG = {"lr": "learning_rate", "eps": "epsilon", "lr_decay": "learning_rate_decay"}


def _options(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {"type": kind}
    for name, value in settings.items():
        key = _LONG.get(name, name)
        if key in options:
            raise TypeError(f"{kind}: {name} is {key}, which is given, too")
        options[key] = list(value) if isinstance(value, tuple) else value
    return options


def SGD(**settings: Any) -> dict[str, Any]:  # noqa: N802 (as PyTorch calls them)
    """Options: lr, momentum, dampening, weight_decay, nesterov."""
    return _options("sgd", settings)


def Adam(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, betas, eps, weight_decay, amsgrad."""
    return _options("adam", settings)


def AdamW(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, betas, eps, weight_decay, amsgrad."""
    return _options("adamw", settings)


def RMSprop(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, alpha, eps, weight_decay, momentum, centered."""
    return _options("rmsprop", settings)


def Adagrad(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, lr_decay, weight_decay, initial_accumulator, eps."""
    return _options("adagrad", settings)


def Lion(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, betas, weight_decay."""
    return _options("lion", settings)


def Adafactor(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, decay_rate, clip_threshold, epsilon2, relative_step, scale_parameter,
    weight_decay."""
    return _options("adafactor", settings)


def LAMB(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, betas, eps, weight_decay."""
    return _options("lamb", settings)


def Muon(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Options: lr, momentum, nesterov, newton_schulz_steps, weight_decay."""
    return _options("muon", settings)
