"""Parameters and multiply-accumulates of a training step, counted while PyTorch runs it."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from products import MATRIX_PRODUCTS, VECTOR_PRODUCTS, convolution_macs, nodes_below, product_macs

# Operators between a parameter and a product whose gradient is still the parameter's.
VIEWS = (*("T", "Transpose", "Permute", "View", "ReshapeAlias", "UnsafeView", "Expand", "Unsqueeze"),
         *("Squeeze", "Slice", "Select", "Split", "SplitWithSizes", "UnsafeSplit", "Unbind", "Cat"),
         *("Stack", "Clone", "Alias", "AsStrided", "ToCopy", "Repeat"),
         *("FakeQuantizePerTensorAffineCachemask", "FakeQuantizePerChannelAffineCachemask"),
         "FakeQuantizePerTensorAffineCachemaskTensorQparams")


@dataclass
class Macs:
    """Multiply-accumulates of a step; `executed` are those of the actual backward pass."""

    forward: int = 0
    backward_input: int = 0
    backward_weight: int = 0
    executed: int = 0


@dataclass
class Product:
    """An executed product: its cost, its result, and the gradients that its operands need."""

    macs: int
    result: Tensor
    wants: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Facts:
    """PyTorch's figures of a network."""

    parameters: int  # parameters that the loss depends on
    macs: Macs


def is_view(node: object) -> bool:
    name = node.name().rstrip("0123456789").removesuffix("Backward")
    return name in VIEWS or name == "torch::autograd::AccumulateGrad"


def kind(operand: Tensor) -> str | None:
    """Returns the kind of the operand's gradient: of a parameter or a view of one, else of an input."""
    if not operand.requires_grad:
        return None
    if operand.grad_fn is None or all(map(is_view, nodes_below(operand.grad_fn))):
        return "backward_weight"
    return "backward_input"


class Watch(TorchDispatchMode):
    """Lists the products that PyTorch executes in the forward pass; adds up those of backward.

    It sees primitive operators, below modules and composite functions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: list[Product] = []
        self.backward = False
        self.executed = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        name = function.overloadpacket.__name__
        if name == "convolution_backward":
            _, x, weight = args[:3]
            self.executed += convolution_macs(x, weight, args[0], transposed=args[7]) * sum(args[10][:2])
        elif name in ("_trilinear", *VECTOR_PRODUCTS):
            raise NotImplementedError(f"product '{name}' would go uncounted")
        factors = args[:2] if name == "convolution" else args[-2:] if name in MATRIX_PRODUCTS else ()
        wants = [kind(factor) for factor in factors]
        result = function(*args, **(kwargs or {}))
        macs = product_macs(name, args, result)
        if not factors:
            return result
        if self.backward:
            self.executed += macs
        else:
            self.products.append(Product(macs, result, [want for want in wants if want]))
        return result


def flat(outputs: object) -> list[Tensor]:
    """Returns the tensors of a nested output, in the exporter's order."""
    if isinstance(outputs, Tensor):
        return [outputs]
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    return [tensor for part in outputs if part is not None for tensor in flat(part)]


def differentiated(outputs: object, loss: str) -> list[Tensor]:
    """Returns the outputs that the loss depends on."""
    floating = [tensor for tensor in flat(outputs) if tensor.is_floating_point()]
    return floating if loss == "none" else floating[:1]


def add_up(products: list[Product], reached: set[object]) -> Macs:
    """Adds up all forward products, and backward products whose result receives a gradient."""
    macs = Macs()
    for product in products:
        macs.forward += product.macs
        if product.result.grad_fn in reached:
            for want in product.wants:
                setattr(macs, want, getattr(macs, want) + product.macs)
    return macs


def observe(model: nn.Module, inputs: tuple[Tensor, ...], loss: str) -> Facts:
    """Runs a step without its update. The backward pass must execute the products derived from the forward pass."""
    watch = Watch()
    with watch:
        outputs = [tensor for tensor in differentiated(model(*inputs), loss) if tensor.requires_grad]
    reached = {node for tensor in outputs for node in nodes_below(tensor.grad_fn)}
    macs = add_up(watch.products, reached)
    watch.products = []
    watch.backward = True
    with watch:
        torch.autograd.backward([tensor.sum() for tensor in outputs])
    macs.executed = watch.executed
    trained = [parameter for parameter in model.parameters() if parameter.grad is not None]
    return Facts(sum(math.prod(parameter.shape) for parameter in trained), macs)
