"""The expected training step of a case, from PyTorch's execution, without reading ONNX files."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from products import convolution_macs, nodes_below, product_macs
from training_cases.framework import Case, default_type, double_model, input_tensors, make_loss, terms, single_model, targets, without_casts

ROUNDING = 1e-10  # share of the largest gradient: smaller gradients are zero except for rounding


class ForwardMacs(TorchDispatchMode):
    """Adds up the multiply-accumulates of all products that PyTorch executes, with or without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        result = function(*args, **(kwargs or {}))
        self.total += product_macs(function.overloadpacket.__name__, args, result)
        return result


# Positions of the factors among the inputs of an autograd node.
FACTORS = {
    "MmBackward0": (0, 1),
    "BmmBackward0": (0, 1),
    "MvBackward0": (0, 1),
    "DotBackward0": (0, 1),
    "AddmmBackward0": (1, 2),
    "BaddbmmBackward0": (1, 2),
    "AddmvBackward0": (1, 2),
    "ConvolutionBackward0": (0, 1),
}
# Operators that only move, join or round elements: their result is still a parameter if the operand is.
VIEWS = (
    "FakeQuantizePerTensorAffineCachemask FakeQuantizePerChannelAffineCachemask LearnedRounding "
    "Alias AsStrided Cat Chunk Clone Contiguous Detach Expand Flip Narrow Permute Repeat Reshape ReshapeAlias "
    "Roll Select Slice Split SplitWithSizes Squeeze Stack T ToCopy Transpose Unbind UnsafeSplit UnsafeView "
    "Unsqueeze View"
).split()


def is_parameter(node: object) -> bool:
    """Returns whether the node of an operand is a parameter or a view of one (or of several)."""
    name = type(node).__name__
    if name == "AccumulateGrad":
        return True
    if name.removesuffix("0").removesuffix("1").removesuffix("Backward") not in VIEWS:
        return False
    return all(source is not None and is_parameter(source) for source, _ in node.next_functions)


@dataclass
class BackwardMacs:
    """Multiply-accumulates of gradients, seen by hooks while backward runs."""

    input: int = 0
    weight: int = 0

    def watch(self, loss: Tensor) -> None:
        for node in nodes_below(loss.grad_fn):
            if type(node).__name__ in FACTORS:
                node.register_hook(self._hook(node))

    def _hook(self, node):  # noqa: ANN001, ANN202
        def count(gradients_in, gradients_out) -> None:  # noqa: ANN001
            if gradients_out[0] is None:  # the reader of the product returns no gradient (regions)
                return
            macs = forward_macs(node, gradients_in, gradients_out[0])
            for place in FACTORS[type(node).__name__]:
                if gradients_in[place] is None:
                    continue
                if is_parameter(node.next_functions[place][0]):
                    self.weight += macs
                else:
                    self.input += macs

        return count


def forward_macs(node: object, gradients_in: tuple, result: Tensor) -> int:
    """Returns the multiply-accumulates of the forward product, equal to those of its gradients. `result` has the shape of its result."""
    left, right = (gradients_in[place] for place in FACTORS[type(node).__name__])
    name = type(node).__name__
    if name == "ConvolutionBackward0":
        weight = right if right is not None else node._saved_weight
        x = left if left is not None else node._saved_input
        return convolution_macs(x, weight, result, transposed=node._saved_transposed)
    if name == "DotBackward0":
        return (left if left is not None else right).numel()
    inner = left.shape[-1] if left is not None else right.shape[0 if "v" in name else -2]
    return result.numel() * inner


def eager_bytes(case: Case) -> int:
    """Returns the bytes of distinct storages that PyTorch's autograd saves, without parameters, in single precision."""
    model = single_model(case)
    parameters = {parameter.storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, int] = {}
    alive = []

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        alive.append(storage)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = make_loss(case, model(*input_tensors(case, torch.float32)))
    del loss
    return sum(saved.values())


@dataclass
class Facts:
    """The results of one step."""

    trained: dict[str, Tensor]  # gradients
    buffers: dict[str, Tensor]  # floating ones, after the step
    updated: set[str]  # buffers that a step changes
    parameters: int  # elements
    macs: dict[str, int]
    eager_bytes: int
    loss: float
    targets: dict
    classes: dict[str, int]  # classes of the labels among the targets

    @property
    def largest(self) -> float:
        return max((g.abs().max().item() for g in self.trained.values()), default=0.0)

    def is_rounding(self, name: str) -> bool:
        return self.trained[name].abs().max().item() <= ROUNDING * self.largest


def classes(case: Case, result: object) -> dict[str, int]:
    of_classes = [term for term in terms(case) if term.of_classes]
    predictions = [term.prediction(case, result) for term in of_classes]
    return {f"labels{t.suffix}": t.classes(p) for t, p in zip(of_classes, predictions)}


def detached(result: object) -> object:
    return result.detach() if isinstance(result, Tensor) else [detached(each) for each in result]


def facts(case: Case) -> Facts:
    model = double_model(case)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    forward, backward = ForwardMacs(), BackwardMacs()
    with without_casts(), default_type(torch.float64):
        with forward:
            result = model(*input_tensors(case, torch.float64))
            loss = make_loss(case, result)
        backward.watch(loss)
        loss.backward()
    trained = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    floating = {n: b for n, b in model.named_buffers() if b.is_floating_point()}
    return Facts(
        trained=trained,
        buffers=floating,
        updated={name for name, buffer in floating.items() if not torch.equal(buffer, before[name])},
        parameters=sum(gradient.numel() for gradient in trained.values()),
        macs={"forward": forward.total, "backward_input": backward.input, "backward_weight": backward.weight},
        eager_bytes=eager_bytes(case),
        loss=loss.item(),
        targets=targets(case, detached(result)),
        classes=classes(case, result),
    )
