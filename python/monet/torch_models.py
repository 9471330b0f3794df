"""Networks from PyTorch.

PyTorch is not imported before it is asked for: the package does not need it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import os
import re
import shutil
import tempfile
import traceback
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from monet import _monet, arguments
from monet.model import Network, read_network

OPSET = 17
LEAST_OPSET = 12  # before it dropout and batch normalisation have no training mode
PARAMETER_LIST = "monet.parameters"  # metadata of the file: which initialisers are trained


def from_torch(
    module: Any,
    example_inputs: Any,
    *,
    batch: int | None = None,
    symbolic_batch: bool = True,
    opset: int = OPSET,
    input_names: Sequence[str] | None = None,
) -> Network:
    """A network from a torch.nn.Module, traced in training mode with `example_inputs`: a tensor, a
    sequence of them, or a mapping from arguments of `forward` to them.

    The first axis of inputs that are as long as the first input is the batch, which `batch` sets
    to another size; `symbolic_batch=False` keeps every size as it is in the examples, for modules
    that work with one batch only. Parameters have the names of `named_parameters()`; those without
    `requires_grad` are not trained. Module, buffers and random numbers are left as they were. The
    file lives as long as the network (`path`).

    An autograd.Function is read as what its forward part computes, without its own gradient.
    Batch normalisation in evaluation mode takes the step's `batch_norm: inference`. Dropout of a
    part that was put into evaluation mode by hand is left out.

    InputError names the operator, and the modules that call it, that cannot be exported or read;
    exceptions of the module's own code pass as they are. ImportError without PyTorch."""
    torch = the_torch()
    return read_exported(torch, module, example_inputs, batch, symbolic_batch, opset, input_names)


def the_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            "networks from PyTorch need it: pip install torch, or apt install python3-torch on Debian", name="torch"
        ) from error


def require_module(torch: Any, module: Any) -> None:
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: {type(module).__name__} is no torch.nn.Module")


class ModuleInputs:
    """Tensors in the order of `forward`, and what the file calls them."""

    def __init__(self, tensors: list[Any], names: list[str], by_keyword: list[str] | None) -> None:
        self.tensors = tensors
        self.names = names
        self.by_keyword = by_keyword

    def call(self, module: Any) -> Any:
        if self.by_keyword is None:
            return module(*self.tensors)
        return module(**dict(zip(self.by_keyword, self.tensors)))

    def for_export(self) -> tuple[Any, ...]:
        if self.by_keyword is None:
            return tuple(self.tensors)
        return (dict(zip(self.by_keyword, self.tensors)),)

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        return [tensor.detach().cpu().numpy() for tensor in self.tensors]

    @property
    def batch(self) -> int | None:
        """None: the first input has no axes."""
        return int(self.tensors[0].shape[0]) if self.tensors[0].dim() else None

    def has_batch(self, tensor: Any) -> bool:
        return bool(tensor.dim() and tensor.shape[0] == self.batch)

    def changed(self, change: Any) -> ModuleInputs:
        return ModuleInputs([change(tensor) for tensor in self.tensors], self.names, self.by_keyword)

    def twice(self, torch: Any) -> ModuleInputs:
        return self.changed(lambda tensor: torch.cat([tensor, tensor]) if self.has_batch(tensor) else tensor)

    def first_rows(self, batch: int | None) -> ModuleInputs:
        if batch is None:
            return self
        arguments.whole("batch", batch, 1, max(1, self.batch or 1))
        return self.changed(lambda tensor: tensor[:batch] if self.has_batch(tensor) else tensor)

    def double(self) -> ModuleInputs:
        return self.changed(lambda t: t.detach().cpu().double() if t.is_floating_point() else t.detach().cpu())


def inputs_of(torch: Any, module: Any, given: Any, argument: str, names: Sequence[str] | None = None) -> ModuleInputs:
    parameters = _arguments(module)
    by_keyword = None
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in parameters]
        if unknown:
            raise ValueError(f"{argument}: {unknown[0]!r} is no argument of {type(module).__name__}.forward")
        by_keyword = [name for name in parameters if name in given]
        tensors = [given[name] for name in by_keyword]
    else:
        tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{argument}[{i}]: {type(tensor).__name__} is no torch.Tensor")
        if 0 in tensor.shape:
            raise ValueError(f"{argument}[{i}]: a tensor of shape {list(tensor.shape)} is empty")
    if not tensors:
        raise ValueError(f"{argument}: there is no tensor")
    if names is None:
        taken = {name for name, _ in [*module.named_parameters(), *module.named_buffers()]} | {"output"}
        said = by_keyword or (parameters + [f"input_{i}" for i in range(len(parameters), len(tensors))])
        names = [name if name not in taken else f"{name}_input" for name in said[: len(tensors)]]
    elif isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"input_names: {names!r} is no sequence of names")
    elif len(names) != len(tensors) or len(set(names)) != len(names):
        raise ValueError(f"input_names: {len(tensors)} different names are needed, not {list(names)}")
    return ModuleInputs(tensors, list(names), by_keyword)


def _arguments(module: Any) -> list[str]:
    """Names of what forward takes; empty where it does not say."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in signature.parameters.items() if parameter.kind in positional]


# --- Export ----------------------------------------------------------------------------------


def read_exported(
    torch: Any,
    module: Any,
    example_inputs: Any,
    batch: int | None,
    symbolic_batch: bool,
    opset: int,
    input_names: Sequence[str] | None,
) -> Network:
    require_module(torch, module)
    if isinstance(example_inputs, ModuleInputs):
        inputs = example_inputs
    else:
        inputs = inputs_of(torch, module, example_inputs, "example_inputs", input_names)
    arguments.whole("opset", opset, LEAST_OPSET, 22)
    arguments.flag("symbolic_batch", symbolic_batch)
    size = inputs.batch if batch is None else arguments.whole("batch", batch, 1, 2**40)
    if batch is not None and inputs.batch is None:
        raise ValueError("batch: the first of example_inputs has no axes")
    if batch is not None and not symbolic_batch and batch != inputs.batch:
        raise ValueError(f"batch: {batch} is not that of example_inputs, {inputs.batch}, and symbolic_batch is False")
    symbolic = symbolic_batch and inputs.batch is not None
    if symbolic and inputs.batch == 1:  # a traced 1 would be mistaken for an axis that is broadcast
        inputs = inputs.twice(torch)
    folder = tempfile.mkdtemp(prefix="monet-")
    try:
        name = re.sub(r"\W", "_", type(module).__name__) or "module"
        path = os.path.join(folder, f"{name}.onnx")
        with as_it_was(torch, module):
            if not module.training:
                module.train()
            _export(torch, module, inputs, path, symbolic, opset)
        _list_parameters(module, path)
        network = _read(path, name, size if symbolic else None)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(network, shutil.rmtree, folder, ignore_errors=True)
    return network


@contextlib.contextmanager
def as_it_was(torch: Any, module: Any) -> Iterator[None]:
    """Running a module in training mode moves running statistics and draws random numbers."""
    flags = [(part, part.training) for part in module.modules()]
    buffers = [
        (part, name, buffer, None if buffer is None else buffer.detach().clone())
        for part in module.modules()
        for name, buffer in part._buffers.items()
    ]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part, flag in flags:
            part.training = flag
        with torch.no_grad():
            for part, name, buffer, numbers in buffers:
                if buffer is not None:
                    buffer.detach().copy_(numbers)
                part._buffers[name] = buffer


def _export(torch: Any, module: Any, inputs: ModuleInputs, path: str, symbolic: bool, opset: int) -> None:
    with as_it_was(torch, module), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = flat(torch, inputs.call(module))
    names = ["output"] if len(outputs) == 1 else [f"output_{i}" for i in range(len(outputs))]
    axes = {}
    if symbolic:
        axes = {name: {0: "batch"} for name, tensor in zip(inputs.names, inputs.tensors) if inputs.has_batch(tensor)}
        axes |= {name: {0: "batch"} for name, tensor in zip(names, outputs) if inputs.has_batch(tensor)}
    settings: dict[str, Any] = {}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        settings["dynamo"] = False
    statistics = _Statistics(torch, module)
    failure = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer warns of every shape that is read
            torch.onnx.export(
                module,
                inputs.for_export(),
                path,
                # The mode that the module is in: TRAINING would undo what is in evaluation mode.
                training=torch.onnx.TrainingMode.PRESERVE,
                do_constant_folding=False,
                opset_version=opset,
                input_names=inputs.names,
                output_names=names,
                dynamic_axes=axes,
                **settings,
            )
    except BaseException as error:
        # Frames of the exporter hold graphs of PyTorch that are freed already: its next graph at
        # the address of one of them would crash. So they go, and the exception with them.
        traceback.clear_frames(error.__traceback__)
        if not isinstance(error, Exception):
            raise
        failure = (type(error).__name__, str(error))
    finally:
        statistics.close()
    if failure is not None:
        gc.collect()
        raise _cannot_be_exported(torch, module, inputs, opset, *failure)


class _Statistics:
    """Puts buffers back as soon as the module has been traced: the file takes their numbers after
    that. In NumPy, which the tracer does not see."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._views = []
        for _, buffer in module.named_buffers():
            if buffer.device.type == "cpu" and buffer.layout == torch.strided and buffer.dtype != torch.bfloat16:
                view = buffer.detach().numpy()
                self._views.append((view, view.copy()))
        self._hook = None
        with contextlib.suppress(RuntimeError):  # a scripted module takes no hooks
            self._hook = module.register_forward_hook(self._restore)

    def _restore(self, *_: Any) -> None:
        for view, numbers in self._views:
            view[...] = numbers

    def close(self) -> None:
        if self._hook is not None:
            self._hook.remove()


def flat(torch: Any, output: Any) -> list[Any]:
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, Mapping):
        return [tensor for part in output.values() for tensor in flat(torch, part)]
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in flat(torch, part)]
    return []


def _list_parameters(module: Any, path: str) -> None:
    """Says in the file's metadata what is trained, as there is no place for it in ONNX: a field
    metadata_props behind the others, which is where Protobuf takes it as well."""

    def field(tag: int, data: bytes) -> bytes:
        length, size = b"", len(data)
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([tag << 3 | 2]) + length + bytes([size]) + data

    buffers = dict(module.named_buffers())  # optimisers do not move them, even those with gradients
    state = module.state_dict(keep_vars=True)
    names = "\n".join(name for name, tensor in state.items() if tensor.requires_grad and name not in buffers)
    with open(path, "ab") as file:
        file.write(field(14, field(1, PARAMETER_LIST.encode()) + field(2, names.encode())))


def _read(path: str, name: str, batch: int | None) -> Network:
    try:
        return read_network(path, batch=batch)
    except _monet.InputError as error:
        told = _monet.InputError(str(error).replace(path, name))
        told.problems = [(where.replace(path, name), what, hint) for where, what, hint in error.problems]
        raise told from None


# --- What cannot be exported -----------------------------------------------------------------


def _cannot_be_exported(
    torch: Any, module: Any, inputs: ModuleInputs, opset: int, error: str, says: str
) -> _monet.InputError:
    """What the exporter says in an exception of a type, with the operator and the modules it is in."""
    first = (says.strip().splitlines() or [error])[0]
    first = re.sub(r" *(Please (feel free|open|report)|\[Caused by the value|https?:).*", "", first).rstrip()
    whole = type(module).__name__
    if error == "SymbolicValueError":  # the exporter knows where it is, but of which operator it speaks
        called = re.search(r"operator (\w+::\w+)", first)
        places = _places(torch, module, inputs, called.group(1)) if called else []
        if places:
            what = f"cannot be exported to ONNX, opset {opset}: {first}"
            return _input_error([(place, what, line) for place, line in places])
        scope = re.search(r"scope: (\S+)", says)
        parts = [part.split("::") for part in scope.group(1).split("/")[1:]] if scope else []
        inner = _place(whole, ".".join(part[-1] for part in parts), parts[-1][0].rpartition(".")[2] if parts else "")
        return _input_error([(inner, f"cannot be exported to ONNX, opset {opset}: {first}", "")])
    found = re.search(r"operator '(\w+::\w+)'", says)
    if found is None:
        return _input_error([(whole, f"cannot be exported to ONNX, opset {opset}: {first}", "")])
    kind = found.group(1)
    places = _places(torch, module, inputs, kind) or [(whole, "")]
    what = f"operator '{kind}' cannot be exported to ONNX, opset {opset}"
    added = re.search(r"added in version (\d+)", says)
    return _input_error([(place, what, f"opset={added.group(1)} has it" if added else line) for place, line in places])


def _place(whole: str, path: str, kind: str) -> str:
    return f"{whole}.{path} ({kind})" if path else whole


def _input_error(problems: list[tuple[str, str, str]]) -> _monet.InputError:
    error = _monet.InputError("\n".join(str(arguments.input_error(*problem)) for problem in problems))
    error.problems = problems
    return error


def _places(torch: Any, module: Any, inputs: ModuleInputs, kind: str) -> list[tuple[str, str]]:
    """Modules that call an operator, by their names in the traced graph, and the line that does."""
    try:
        with as_it_was(torch, module), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(module, inputs.for_export(), check_trace=False)
            graph = traced.inlined_graph
    except Exception:  # whatever a module does to a tracer: then the operator alone is named
        return []
    types = {name: type(part).__name__ for name, part in module.named_modules()}
    places: dict[str, str] = {}
    for node in graph.nodes():
        if node.kind() == kind:
            scope = node.scopeName().rpartition("/")[2].removeprefix("__module").removeprefix(".")
            line = re.search(r"([^/\s(]+)\((\d+)\)", node.sourceRange())
            called = _place(types[""], scope, types.get(scope, "module"))
            places.setdefault(called, f"{line.group(1)}, line {line.group(2)}" if line else "")
    return list(places.items())
