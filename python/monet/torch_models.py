"""Networks from PyTorch.

PyTorch is imported on first use, because the package does not require it."""

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
LEAST_OPSET = 12  # earlier, dropout and batch normalisation have no training mode
PARAMETER_LIST = "monet.parameters"  # key in the file's metadata: names of trained initialisers


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
    sequence of tensors, or a mapping from arguments of `forward` to tensors.

    The batch is the first axis of every input that has the length of the first input there. `batch`
    sets it to another size. `symbolic_batch=False` keeps every size of the examples, for modules
    that work with one batch only. Parameters have the names of `named_parameters()`; those without
    `requires_grad` are not trained. Module, buffers and random state stay unchanged. The file
    (`path`) is deleted with the network.

    An autograd.Function is exported as its forward computation, without its custom gradient. Batch
    normalisation in evaluation mode needs the step's `batch_norm: inference`. Dropout is omitted in
    parts that were set to evaluation mode separately.

    Raises InputError with the operator that cannot be exported or read, and with the modules that
    call it. Raises ImportError without PyTorch. Exceptions of the module's code are passed on."""
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
        raise TypeError(f"module: {type(module).__name__} is not a torch.nn.Module")


class ModuleInputs:
    """Input tensors in the order of `forward`, and their names in the file."""

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
        """The length of the first input's first axis; None if it has no axes."""
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
            raise ValueError(f"{argument}: {unknown[0]!r} is not an argument of {type(module).__name__}.forward")
        by_keyword = [name for name in parameters if name in given]
        tensors = [given[name] for name in by_keyword]
    else:
        tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{argument}[{i}]: {type(tensor).__name__} is not a torch.Tensor")
        if 0 in tensor.shape:
            raise ValueError(f"{argument}[{i}]: a tensor of shape {list(tensor.shape)} is empty")
    if not tensors:
        raise ValueError(f"{argument}: there is no tensor")
    if names is None:
        taken = {name for name, _ in [*module.named_parameters(), *module.named_buffers()]} | {"output"}
        said = by_keyword or (parameters + [f"input_{i}" for i in range(len(parameters), len(tensors))])
        names = [name if name not in taken else f"{name}_input" for name in said[: len(tensors)]]
    elif isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"input_names: {names!r} is not a sequence of names")
    elif len(names) != len(tensors) or len(set(names)) != len(names):
        raise ValueError(f"input_names: {len(tensors)} different names are needed, not {list(names)}")
    return ModuleInputs(tensors, list(names), by_keyword)


def _arguments(module: Any) -> list[str]:
    """Names of the arguments of `forward`; empty if its signature is unknown."""
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
    if symbolic and inputs.batch == 1:  # a traced 1 would look like a broadcast axis
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
    """Restores modes, buffers and random state at exit. Running a module in training mode updates
    running statistics and draws random numbers."""
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
                # Keeps the mode of each part: TRAINING would reset parts in evaluation mode.
                training=torch.onnx.TrainingMode.PRESERVE,
                do_constant_folding=False,
                opset_version=opset,
                input_names=inputs.names,
                output_names=names,
                dynamic_axes=axes,
                **settings,
            )
    except BaseException as error:
        # Frames of the exporter refer to graphs that PyTorch has freed already. A new graph at the
        # address of one of them would crash, so the frames and the exception are released.
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
    """Restores buffers as soon as the module has been traced, because the exporter writes their
    values later. It uses NumPy, which the tracer does not see."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._views = []
        for _, buffer in module.named_buffers():
            if buffer.device.type == "cpu" and buffer.layout == torch.strided and buffer.dtype != torch.bfloat16:
                view = buffer.detach().numpy()
                self._views.append((view, view.copy()))
        self._hook = None
        with contextlib.suppress(RuntimeError):  # a scripted module accepts no hooks
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
    """Lists the trained parameters in the file's metadata, because ONNX has no field for them.
    Appends a field metadata_props at the end of the file, where Protobuf reads it as well."""

    def field(tag: int, data: bytes) -> bytes:
        length, size = b"", len(data)
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([tag << 3 | 2]) + length + bytes([size]) + data

    buffers = dict(module.named_buffers())  # optimisers do not update buffers, even with gradients
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


# --- Errors of the export --------------------------------------------------------------------


def _cannot_be_exported(
    torch: Any, module: Any, inputs: ModuleInputs, opset: int, error: str, says: str
) -> _monet.InputError:
    """The InputError for an exception of the exporter, with the operator and the modules that call
    it. `error`: type of the exception; `says`: its message."""
    first = (says.strip().splitlines() or [error])[0]
    first = re.sub(r" *(Please (feel free|open|report)|\[Caused by the value|https?:).*", "", first).rstrip()
    whole = type(module).__name__
    if error == "SymbolicValueError":  # the message has a scope, and may name an operator
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
    """Modules that call an operator, by their names in the traced graph, with the line of the
    call."""
    try:
        with as_it_was(torch, module), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(module, inputs.for_export(), check_trace=False)
            graph = traced.inlined_graph
    except Exception:  # tracing may fail in any way; then only the operator is named
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
