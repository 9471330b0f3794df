#!/usr/bin/env python3
"""Write tests/fixtures/networks/*.json: training steps of whole networks as PyTorch runs them.

All computations are in double precision. Weights, inputs and targets are from a generator that the tests
also have, so only results are stored: the loss, a summary of every gradient, and of every weight's change
and every optimiser state after three steps of each optimiser. The same library versions write the
same bytes.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import export_models
import optimizer_oracles as oracles
from gradient_cases.framework import Numbers, f32, summary
from language_networks import Gpt2Attention

REPOSITORY = Path(__file__).resolve().parent.parent
SEED = 1
STEPS = 3
DIGITS = 12  # significant digits kept; the tests compare to 1e-8

# --- Recorded networks -----------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """A network of export_models.py, its data, and the optimisers it is trained with."""

    name: str
    batch: int
    optimizers: list[str]
    pace: float = 1.0  # factor of the learning rate
    loss: str = "cross_entropy"
    resized: tuple[int, ...] = ()  # shape of an input that differs from the network's; the test writes it into the file

    @property
    def network(self) -> export_models.Network:
        return (export_models.NETWORKS | export_models.TEST_NETWORKS)[self.name]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of an input, without the batch axis."""
        return self.resized or self.network.input_shape

    @property
    def model(self) -> str:
        """The ONNX file, relative to the repository."""
        folder = "data/workload" if self.name in export_models.NETWORKS else "tests/fixtures/networks"
        return f"{folder}/{self.name}.onnx"


PYTORCH = ["sgd", "momentum", "nesterov_decay", "dampening", "adam", "adam_decay", "adamw", "rmsprop",
           "rmsprop_centered", "adagrad", "clipped_adamw"]
LARGE = ["sgd", "momentum", "nesterov_decay", "adam", "adamw", "rmsprop", "adagrad"]
# Optimisers written in numpy from their papers.
PUBLISHED = ["lion", "adafactor", "lamb", "muon"]

RECORDINGS = {one.name: one for one in (
    Recording("resnet18_cifar", 2, LARGE, 0.02),
    Recording("mobilenet_v2", 4, LARGE, 0.05, resized=(3, 64, 64)),
    Recording("vit_tiny", 1, ["momentum", "adam", "adamw", "rmsprop", "adagrad"], 0.05),
    Recording("vit_micro", 2, PYTORCH, 0.2),
    # The gradient of the keys' biases is zero except for rounding. Lion uses its sign and
    # Adafactor its share.
    Recording("gpt2_nano", 2, PYTORCH + ["lamb", "muon"]),
    Recording("unet", 2, [*LARGE, "rmsprop_centered", "lion"], loss="bce_with_logits", resized=(3, 32, 32)),
    Recording("lstm", 3, PYTORCH + PUBLISHED),
    Recording("unet_bilinear", 2, ["momentum", "adam"]),
    Recording("diffusion", 2, ["momentum", "adamw"], loss="mse"),
    Recording("llama", 2, ["adamw", "lion", "adafactor", "muon"]),
)}  # fmt: skip

# --- Numbers ---------------------------------------------------------------------------------


def fill_rule(name: str, tensor: Tensor) -> tuple[float, float]:
    """Returns offset and scale that keep activations of the order of one."""
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


def load_numbers(model: nn.Module) -> list[dict]:
    """Fills every floating parameter and buffer from the generator and returns the settings used."""
    rules = []
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if not tensor.is_floating_point():
            continue
        offset, scale = fill_rule(name, tensor)
        numbers = offset + scale * Numbers(name, SEED).uniform(tensor.numel())
        tensor.data.copy_(torch.from_numpy(numbers.reshape(tensor.shape)))
        rules.append({"name": name, "offset": offset, "scale": scale})
    return rules


def as_in_the_file(model: nn.Module) -> nn.Module:
    """Rounds settings and constants to single precision, as in the file, and disables dropout."""
    for module in model.modules():
        if isinstance(module, Gpt2Attention):
            module.divisor = f32(module.divisor)
        if isinstance(getattr(module, "eps", None), float):
            module.eps = f32(module.eps)
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0 - f32(1.0 - module.momentum)
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def make_model(recording: Recording) -> tuple[nn.Module, list[dict]]:
    model = as_in_the_file(recording.network.build()).double().train()
    return model, load_numbers(model)


def class_axis(output: Tensor) -> int:
    return 1 if output.dim() == 4 else output.dim() - 1


def make_loss(recording: Recording, output: Tensor) -> Tensor:
    """Returns the loss for the options of that name; classes are the last axis, or axis 1 of images."""
    if recording.loss == "cross_entropy":
        axis = class_axis(output)
        classes = output.shape[axis]
        logits = output.movedim(axis, -1).reshape(-1, classes)
        labels = Numbers("labels", SEED).below(logits.shape[0], classes)
        return F.cross_entropy(logits, torch.from_numpy(labels))
    uniform = torch.from_numpy(Numbers("targets", SEED).uniform(output.numel()).reshape(output.shape))
    if recording.loss == "mse":
        return F.mse_loss(output, uniform)
    return F.binary_cross_entropy_with_logits(output, 0.5 + 0.5 * uniform)


def make_input(recording: Recording) -> Tensor:
    shape = (recording.batch, *recording.input_shape)
    numbers = Numbers(recording.network.input_name, SEED)
    if recording.network.vocabulary is None:
        return torch.from_numpy(numbers.uniform(math.prod(shape)).reshape(shape))
    return torch.from_numpy(numbers.below(math.prod(shape), recording.network.vocabulary).reshape(shape))


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
    """Returns largest magnitude, norm and projection."""
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
    """Returns the parameters, except those whose gradient is zero up to rounding (a bias before a batch norm)."""
    size = {key: parameter.grad.abs().max().item() for key, parameter in parameters.items()}
    return {key for key in parameters if size[key] > 1e-10 * max(size.values())}


def train(recording: Recording, name: str) -> dict:
    """Runs three steps. Returns losses, changes of weights and states in the parameters' order, and statistics."""
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
            "input": {"name": recording.network.input_name, "shape": list(recording.input_shape),
                      **({"range": recording.network.vocabulary} if recording.network.vocabulary else {})},
            "seed": SEED, "loss_kind": recording.loss, **first_step(recording),
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
