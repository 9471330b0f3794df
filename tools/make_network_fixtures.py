#!/usr/bin/env python3
"""Write tests/fixtures/networks/*.json: training steps of whole networks as PyTorch runs them.

Double precision throughout. Weights, inputs and targets come from the generator that the tests have
too, so only results are stored: the loss, a summary of every gradient, and of every weight's change
and every optimiser state after three steps of each optimiser. The same library versions write the
same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

import export_models
import optimizer_oracles as oracles
from gradient_cases.framework import Numbers, f32, summary

REPOSITORY = Path(__file__).resolve().parent.parent
STEPS = 3
DIGITS = 12  # significant ones kept; the tests compare to 1e-8

# --- What is recorded ------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """A network, its data, and the optimisers it is trained with."""

    model: str  # the ONNX file, relative to the repository
    build: Callable[[], nn.Module]
    batch: int
    input_shape: tuple[int, ...]  # without the batch axis; the test writes it into the file
    loss: str = "cross_entropy"
    input_name: str = "input"
    vocabulary: int | None = None
    seed: int = 1
    pace: float = 1.0  # times the learning rate
    optimizers: list[str] = field(default_factory=list)


PYTORCH = ["sgd", "momentum", "nesterov_decay", "dampening", "adam", "adam_decay", "adamw", "rmsprop",
           "rmsprop_centered", "adagrad", "clipped_adamw"]
LARGE = ["sgd", "momentum", "nesterov_decay", "adam", "adamw", "rmsprop", "adagrad"]
# After the papers, in numpy.
PUBLISHED = ["lion", "adafactor", "lamb", "muon"]

RECORDINGS: dict[str, Recording] = {
    "resnet18_cifar": Recording(
        "data/workload/resnet18_cifar.onnx",
        export_models.make_resnet18_cifar,
        2,
        (3, 32, 32),
        pace=0.02,
        optimizers=LARGE,
    ),
    "mobilenet_v2": Recording(
        "data/workload/mobilenet_v2.onnx",
        torchvision.models.mobilenet_v2,
        4,
        (3, 64, 64),
        pace=0.05,
        optimizers=LARGE,
    ),
    "vit_tiny": Recording(
        "data/workload/vit_tiny.onnx",
        export_models.make_vit_tiny,
        1,
        (3, 224, 224),
        pace=0.05,
        optimizers=["momentum", "adam", "adamw", "rmsprop", "adagrad"],
    ),
    "vit_micro": Recording(
        "tests/fixtures/networks/vit_micro.onnx",
        export_models.small.make_vit_micro,
        2,
        (3, 32, 32),
        pace=0.2,
        optimizers=PYTORCH,
    ),
    "gpt2_nano": Recording(
        "data/workload/gpt2_nano.onnx",
        export_models.NETWORKS["gpt2_nano"].build,
        2,
        (64,),
        input_name="input_ids",
        vocabulary=256,
        # The gradient of the keys' biases is zero but for rounding, of which Lion takes the sign and
        # Adafactor the share.
        optimizers=PYTORCH + ["lamb", "muon"],
    ),
    "unet": Recording(
        "data/workload/unet.onnx",
        export_models.NETWORKS["unet"].build,
        2,
        (3, 32, 32),
        loss="bce_with_logits",
        optimizers=[*LARGE, "rmsprop_centered", "lion"],
    ),
    "lstm": Recording(
        "data/workload/lstm.onnx",
        export_models.NETWORKS["lstm"].build,
        3,
        (32,),
        input_name="input_ids",
        vocabulary=1000,
        optimizers=PYTORCH + PUBLISHED,
    ),
    "unet_bilinear": Recording(
        "tests/fixtures/networks/unet_bilinear.onnx",
        export_models.TEST_NETWORKS["unet_bilinear"].build,
        2,
        (3, 16, 16),
        optimizers=["momentum", "adam"],
    ),
    "diffusion": Recording(
        "tests/fixtures/networks/diffusion.onnx",
        export_models.TEST_NETWORKS["diffusion"].build,
        2,
        (3, 8, 8),
        loss="mse",
        optimizers=["momentum", "adamw"],
    ),
    "llama": Recording(
        "tests/fixtures/networks/llama.onnx",
        export_models.TEST_NETWORKS["llama"].build,
        2,
        (12,),
        input_name="input_ids",
        vocabulary=64,
        optimizers=["adamw", "lion", "adafactor", "muon"],
    ),
}

# --- The numbers -----------------------------------------------------------------------------


def fill_rule(name: str, tensor: Tensor) -> tuple[float, float]:
    """Offset and scale that keep activations of the order of one."""
    if "running_mean" in name:
        return 0.0, 0.25
    if "running_var" in name:
        return 1.0, 0.25
    if "embedding" in name or "wte" in name or "wpe" in name or "class_token" in name:
        return 0.0, 0.25
    if tensor.dim() == 1:
        return (1.0, 0.25) if name.endswith("weight") else (0.0, 0.25)
    fan_in = math.prod(tensor.shape[1:])
    return 0.0, float(f"{math.sqrt(4.5 / fan_in):.4g}")


def load_numbers(model: nn.Module, seed: int) -> list[dict]:
    """Every floating parameter and buffer from the generator; what was done."""
    rules = []
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if not tensor.is_floating_point():
            continue
        offset, scale = fill_rule(name, tensor)
        numbers = offset + scale * Numbers(name, seed).uniform(tensor.numel())
        tensor.data.copy_(torch.from_numpy(numbers.reshape(tensor.shape)))
        rules.append({"name": name, "offset": offset, "scale": scale})
    return rules


def as_in_the_file(model: nn.Module) -> nn.Module:
    """Settings and constants as the file holds them, in single precision; no dropout."""
    for module in model.modules():
        if isinstance(module, export_models.Gpt2Attention):
            module.divisor = f32(module.divisor)
        if isinstance(getattr(module, "eps", None), float):
            module.eps = f32(module.eps)
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0 - f32(1.0 - module.momentum)
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def make_model(recording: Recording) -> tuple[nn.Module, list[dict]]:
    model = as_in_the_file(recording.build()).double().train()
    return model, load_numbers(model, recording.seed)


def class_axis(output: Tensor) -> int:
    return 1 if output.dim() == 4 else output.dim() - 1


def make_loss(recording: Recording, output: Tensor) -> Tensor:
    """The loss of the options of that name; classes are the last axis, or axis 1 of images."""
    seed = recording.seed
    if recording.loss == "cross_entropy":
        axis = class_axis(output)
        classes = output.shape[axis]
        logits = output.movedim(axis, -1).reshape(-1, classes)
        labels = Numbers("labels", seed).below(logits.shape[0], classes)
        return F.cross_entropy(logits, torch.from_numpy(labels))
    uniform = torch.from_numpy(Numbers("targets", seed).uniform(output.numel()).reshape(output.shape))
    if recording.loss == "mse":
        return F.mse_loss(output, uniform)
    return F.binary_cross_entropy_with_logits(output, 0.5 + 0.5 * uniform)


def make_input(recording: Recording) -> Tensor:
    shape = (recording.batch, *recording.input_shape)
    numbers = Numbers(recording.input_name, recording.seed)
    if recording.vocabulary is None:
        return torch.from_numpy(numbers.uniform(math.prod(shape)).reshape(shape))
    return torch.from_numpy(numbers.below(math.prod(shape), recording.vocabulary).reshape(shape))


# --- Results ---------------------------------------------------------------------------------


def shortened(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shortened(part) for part in value]
    return value


def tensor_record(name: str, tensor: Tensor) -> dict:
    return {"name": name, **summary(tensor, name, whole=3, samples=4)}


def in_short(name: str, tensor: Tensor) -> list[float]:
    """Largest magnitude, norm and projection."""
    made = summary(tensor, name, whole=0, samples=2)
    return [made["max"], made["norm"], made["projection"]]


def buffers_record(model: nn.Module) -> list[dict]:
    return [tensor_record(name, buffer) for name, buffer in model.named_buffers() if buffer.is_floating_point()]


def first_step(recording: Recording) -> dict:
    model, rules = make_model(recording)
    output = model(make_input(recording))
    loss = make_loss(recording, output)
    loss.backward()
    return {"numbers": rules, "classes": output.shape[class_axis(output)], "loss": loss.item(),
            "gradients": [tensor_record(name, p.grad) for name, p in model.named_parameters()],
            "buffers": buffers_record(model)}


def not_only_rounding(parameters: dict[str, Tensor]) -> set[str]:
    """Parameters but those whose gradient is zero up to rounding, as of a bias before a batch norm."""
    size = {key: parameter.grad.abs().max().item() for key, parameter in parameters.items()}
    return {key for key in parameters if size[key] > 1e-10 * max(size.values())}


def train(recording: Recording, name: str) -> dict:
    """Three steps: losses, changes of weights and states in the parameters' order, statistics."""
    model, _ = make_model(recording)
    parameters = dict(model.named_parameters())
    before = {key: parameter.detach().clone() for key, parameter in parameters.items()}
    options, optimizer = oracles.make(name, parameters, recording.pace)
    losses = []
    moved: set[str] = set()
    for _ in range(STEPS):
        model.zero_grad()
        loss = make_loss(recording, model(make_input(recording)))
        loss.backward()
        moved = moved or not_only_rounding(parameters)
        optimizer.step()
        losses.append(loss.item())
    changes = []
    states: dict[str, list] = {}
    for i, (key, parameter) in enumerate(parameters.items()):
        if key not in moved:
            changes.append(None)
            continue
        changes.append(in_short(key, parameter.detach() - before[key]))
        for state, numbers in optimizer.states(key).items():
            rows = states.setdefault(state, [None] * len(parameters))
            rows[i] = in_short(f"{key}.{state}", numbers)
    return {"name": name, "options": options, "losses": losses, "changes": changes, "states": states,
            "buffers": [in_short(key, buffer) for key, buffer in model.named_buffers() if buffer.is_floating_point()]}


def record(name: str) -> dict:
    recording = RECORDINGS[name]
    return {"network": name, "model": recording.model, "batch": recording.batch,
            "input": {"name": recording.input_name, "shape": list(recording.input_shape),
                      **({"range": recording.vocabulary} if recording.vocabulary else {})},
            "seed": recording.seed, "loss_kind": recording.loss, **first_step(recording),
            "optimizers": [train(recording, optimizer) for optimizer in recording.optimizers]}


def write(name: str, directory: Path) -> None:
    made = shortened(record(name))
    lists = ("numbers", "gradients", "buffers", "optimizers", "changes", "states")
    text = json.dumps(made, separators=(",", ":"))
    for key in lists:  # one line for each list
        text = text.replace(f'"{key}":[', f'\n"{key}":[')
    (directory / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    losses = {part["name"]: [f"{loss:.4f}" for loss in part["losses"]] for part in made["optimizers"]}
    print(f"{name}: {len(text)} bytes, losses {losses}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NETWORK", action="append", choices=sorted(RECORDINGS))
    parser.add_argument("--output", metavar="DIR", type=Path, default=REPOSITORY / "tests" / "fixtures" / "networks",
                        help="where the files go (default: tests/fixtures/networks)")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in arguments.only or sorted(RECORDINGS):
        write(name, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
