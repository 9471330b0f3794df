"""Small networks whose training step MONET and PyTorch must agree on.

A family is a file in this folder with a function `cases()` that yields Case objects: a module as users
write it, its inputs, and its loss. The module is exported in single precision, as users
export theirs, with the numbers of its parameters and buffers in the file; PyTorch then computes in
double precision with the same (rounded) numbers. oracle.py computes the expected step.

Parameters get generated numbers (class Numbers of gradient_cases/framework.py), rounded to single
precision; running statistics too; every other buffer keeps the values that the module gave it: a
buffer is a mask, a table or a filter, and is never trained.

Constants that a forward function multiplies with are single precision in the file: write short
decimals, or f32(...).
"""

import contextlib
import fnmatch
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import Input, Numbers, buffer, integer
from net import Net, exported_model, net, restore_statistics

SEED = 1
MAX_PARAMETERS = 20_000


@dataclass(frozen=True)
class Case:
    """One network, its data and its loss.

    `loss` is one of the training file (`mse`, or a map with its settings, or a list of them), taken
    of the first output or one of `outputs`, or `in_graph`: the only output is the loss.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Sequence[Input]
    loss: str | dict | list = "mse"
    options: dict = field(default_factory=dict)  # further options of the training file
    opset: int = 17
    fills: dict[str, tuple[float, float]] = field(default_factory=dict)  # pattern: offset, scale
    compare: bool = True  # compares numbers; False for networks that draw random masks
    outputs: Sequence[str] = ("output",)


def real(name: str, *shape: int, offset: float = 0.0, scale: float = 1.0) -> Input:
    """An input of real numbers."""
    return buffer(name, shape, offset=offset, scale=scale)


def tokens(name: str, *shape: int, below: int) -> Input:
    """An input of int64 indices."""
    return integer(name, shape, below)


@net(lambda *nets: dict(nets=nn.ModuleList(nets)))
def beside(m: Net, *inputs: Tensor) -> Tensor:
    """Joins several networks of the same inputs and concatenates their outputs."""
    return torch.cat([one(*inputs).flatten(1) for one in m.nets], 1)


def zeros(*shape: int | Sequence[int]) -> nn.Parameter:
    """Makes a parameter, which is filled later."""
    return nn.Parameter(torch.zeros(*(shape or [()])))


_casting = True  # False while PyTorch computes the numbers, because MONET does not round them either


@contextlib.contextmanager
def without_casts() -> Iterator[None]:
    """Context in which modules stay in double precision, whatever type they request."""
    global _casting
    _casting = False
    try:
        yield
    finally:
        _casting = True


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if _casting else x


def lowered(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Converts the parameters of a module to another element type."""
    return module.to(dtype) if _casting else module


def fill_rule(name: str, tensor: Tensor) -> tuple[float, float]:
    """Returns offset and scale that keep activations of the order of one."""
    if "running_mean" in name:
        return 0.0, 0.25
    if "running_var" in name:
        return 1.0, 0.25
    if tensor.numel() == 1:
        return 0.5, 0.25
    leaf = name.rpartition(".")[2]
    if "embed" in name or "position" in name:
        return 0.0, 0.5
    if tensor.dim() == 1:
        return (1.0, 0.25) if leaf.endswith(("weight", "scale", "weight_g")) else (0.0, 0.25)
    fan_in = math.prod(tensor.shape[1:])
    return 0.0, float(f"{math.sqrt(3.0 / max(1, fan_in)):.4g}")


def is_generated(model: nn.Module, name: str, tensor: Tensor) -> bool:
    if not tensor.is_floating_point():
        return False
    return isinstance(tensor, nn.Parameter) or "running_" in name


def states(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def fill(case: Case, model: nn.Module) -> None:
    """Returns generated numbers, rounded to single precision."""
    for name, tensor in states(model):
        if not is_generated(model, name, tensor):
            continue
        rules = [rule for pattern, rule in case.fills.items() if fnmatch.fnmatch(name, pattern)]
        offset, scale = rules[0] if rules else fill_rule(name, tensor)
        numbers = offset + scale * Numbers(name, SEED).uniform(tensor.numel())
        rounded = torch.from_numpy(numbers.astype(np.float32).reshape(tensor.shape))
        tensor.data.copy_(rounded)


@contextlib.contextmanager
def default_type(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def single_model(case: Case) -> nn.Module:
    """Builds the module in single precision, as users do."""
    torch.manual_seed(0)
    with default_type(torch.float32):
        model = case.build().train()
    fill(case, model)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > MAX_PARAMETERS:
        raise ValueError(f"{case.name}: {count} parameters are too many")
    return model


def double_model(case: Case) -> nn.Module:
    """Builds the module in double precision with the numbers of single_model(); run it in without_casts()."""
    source = dict(states(single_model(case)))
    torch.manual_seed(0)
    with without_casts(), default_type(torch.float64):
        model = case.build().double().train()
    for name, tensor in states(model):
        tensor.data.copy_(source[name].data)
    return with_file_settings(model)


def with_file_settings(model: nn.Module) -> nn.Module:
    """Momenta are kept as 1 - momentum, in single precision."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.momentum == 0.1:
            module.momentum = 1.0 - 0.9
    return model


def input_tensors(case: Case, dtype: torch.dtype) -> list[Tensor]:
    made = []
    for given in case.inputs:
        numbers = torch.from_numpy(np.array(given.numbers(SEED)))
        made.append(numbers if given.kind == "integer" else numbers.to(dtype))
    return made


def first_output(result: object) -> Tensor:
    return result if isinstance(result, Tensor) else first_output(result[0])


def class_axis(output: Tensor) -> int:
    """Returns the class axis, as found by cross_entropy of the training file."""
    return output.dim() - 1 if output.dim() == 3 else 1


@dataclass(frozen=True)
class Term:
    """One loss of a training file."""

    kind: str
    settings: dict
    output: str  # "" is the first one
    scale: float
    suffix: str  # of its target's name

    @property
    def of_classes(self) -> bool:
        return self.kind in ("cross_entropy", "nll", "ctc")

    def prediction(self, case: Case, result: object) -> Tensor:
        if not self.output:
            return first_output(result)
        return result[case.outputs.index(self.output)]

    def classes(self, prediction: Tensor) -> int:
        """Returns the number of classes that labels can have. For ctc the last class is the blank, which is not a label."""
        count = prediction.shape[class_axis(prediction)]
        return count - 1 if self.kind == "ctc" else count

    def target_fill(self) -> tuple[float, float]:
        """Returns offset and scale of the loss's targets."""
        if self.kind in ("bce", "bce_with_logits", "kl_div"):
            return (-1.0, 0.5) if self.settings.get("log_target") else (0.5, 0.5)
        return 0.0, 1.0

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        settings = {key: value for key, value in self.settings.items() if key != "class_axis"}
        for key in ("weight", "pos_weight"):
            if key in settings:
                settings[key] = torch.tensor(settings[key], dtype=prediction.dtype)
        if self.kind == "ctc":
            count, batch, _ = prediction.shape
            lengths = torch.full((batch,), count), torch.full((batch,), settings.pop("target_length"))
            return F.ctc_loss(prediction, target, *lengths, **settings)
        if self.of_classes:
            if class_axis(prediction) == prediction.dim() - 1:
                prediction, target = prediction.reshape(-1, prediction.shape[-1]), target.reshape(-1)
            function = F.cross_entropy if self.kind == "cross_entropy" else F.nll_loss
            return function(prediction, target, **settings)
        functions = {
            "mse": F.mse_loss,
            "l1": F.l1_loss,
            "smooth_l1": F.smooth_l1_loss,
            "huber": F.huber_loss,
            "bce": F.binary_cross_entropy,
            "bce_with_logits": F.binary_cross_entropy_with_logits,
            "kl_div": F.kl_div,
        }
        return functions[self.kind](prediction, target.to(prediction.dtype), **settings)


def terms(case: Case) -> list[Term]:
    if case.loss == "in_graph":
        return []
    several = isinstance(case.loss, list)
    made = []
    for i, given in enumerate(case.loss if several else [case.loss]):
        settings = dict(given) if isinstance(given, dict) else {"type": given}
        kind, output, scale = settings.pop("type"), settings.pop("output", ""), settings.pop("scale", 1.0)
        suffix = f".{i + 1}" if several and len(case.loss) > 1 else ""
        made.append(Term(kind, settings, output, scale, suffix))
    return made


def targets(case: Case, result: object) -> dict[str, np.ndarray]:
    """Returns the targets of the losses, by their names in the step."""
    made = {}
    for term in terms(case):
        output = term.prediction(case, result)
        if term.of_classes:
            axis = class_axis(output)
            name = f"labels{term.suffix}"
            shape = [extent for i, extent in enumerate(output.shape) if i != axis]
            if term.kind == "ctc":
                shape = [output.shape[1], term.settings["target_length"]]
            numbers = Numbers(name, SEED).below(math.prod(shape), term.classes(output))
        else:
            offset, scale = term.target_fill()
            name, shape = f"targets{term.suffix}", output.shape
            numbers = offset + scale * Numbers(name, SEED).uniform(output.numel())
        made[name] = numbers.reshape(shape)
    return made


def make_loss(case: Case, result: object) -> Tensor:
    if case.loss == "in_graph":
        return first_output(result)
    total = None
    for term, numbers in zip(terms(case), targets(case, result).values()):
        part = term.loss(term.prediction(case, result), torch.from_numpy(numbers))
        part = part if term.scale == 1.0 else part * term.scale
        total = part if total is None else total + part
    return total


def export(case: Case) -> onnx.ModelProto:
    """Exports the module for training with torch.onnx, numbers included."""
    names = ["loss_value"] if case.loss == "in_graph" else list(case.outputs)
    exported = exported_model(single_model(case), input_tensors(case, torch.float32), case.opset,
                              input_names=[given.name for given in case.inputs], output_names=names)
    graph = exported.graph
    graph.name = case.name
    graph.doc_string = exported.doc_string = ""
    del graph.value_info[:]
    restore_statistics(exported, single_model(case))
    return exported


def file_names(exported: onnx.ModelProto, model: nn.Module) -> dict[str, str]:
    """The initialiser of every parameter and buffer that the file has, by its first name.

    A tensor with two names is in the file under one of them.
    """
    present = {initializer.name for initializer in exported.graph.initializer}
    owners = {id(tensor): name for name, tensor in states(model)}
    names = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        first = owners.get(id(tensor))
        if first is not None and name in present:
            names.setdefault(first, name)
    return names


def updated_statistics(exported: onnx.ModelProto) -> dict[str, str]:
    """Finds the last output that is the new value of a running statistic."""
    found = {}
    for node in exported.graph.node:
        if node.op_type == "BatchNormalization" and len(node.output) >= 3:
            found.update(zip(node.input[3:5], node.output[1:3]))
    return found
