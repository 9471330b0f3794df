"""Modules written as a function of their parts and their inputs, and ONNX files of modules."""

import io
import warnings
from collections.abc import Callable, Sequence

import onnx
import torch
from torch import Tensor, nn


class Net(nn.Module):
    """A module with named parts and a forward function. Tensors that are not parameters are buffers."""

    def __init__(self, run: Callable[..., Tensor], parts: dict[str, object]) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.run(self, *inputs)


def net(parts: Callable[..., dict[str, object]]) -> Callable[[Callable[..., Tensor]], Callable[..., Net]]:
    """Turns a forward function into a function that builds networks of these parts, which may have settings."""
    return lambda run: lambda *settings, **named: Net(run, parts(*settings, **named))


@net(lambda call: dict(call=call))
def function_net(m: Net, *inputs: Tensor) -> Tensor:
    """A function as a module."""
    return m.call(*inputs)


def exported_model(module: nn.Module, inputs: Sequence[Tensor], opset: int, **options: object) -> onnx.ModelProto:
    """Exports a module for training with torch.onnx, unfolded and without doc strings; `options` are those of torch.onnx."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns about every shape it reads
        torch.onnx.export(module, tuple(inputs), stream, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=opset, **options)
    exported = onnx.load_model_from_string(stream.getvalue())
    for node in exported.graph.node:
        node.doc_string = ""
    return exported


def restore_statistics(exported: onnx.ModelProto, model: nn.Module) -> None:
    """Restores the running statistics of `model`, which tracing changes."""
    before = dict(model.named_buffers())
    for initializer in exported.graph.initializer:
        if "running_" in initializer.name:
            numbers = before[initializer.name].numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(numbers, initializer.name))
