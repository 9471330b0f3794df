"""Networks from PyTorch, and their gradients beside PyTorch's.

Nothing here is imported before it is asked for: the package does not need PyTorch.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import inspect
import io
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
from monet.columns import Columns
from monet.model import Network, read_network

OPSET = 17
LEAST_OPSET = 12  # before it dropout and batch normalisation have no training mode
PARAMETER_LIST = "monet.parameters"  # metadata of the file: which initialisers are trained
ROUNDING = 1e-10  # of the largest gradient: one below that is zero but for rounding


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
    torch = _torch()
    return _from_torch(torch, module, example_inputs, batch, symbolic_batch, opset, input_names)


def compare_with_torch(
    module: Any,
    inputs: Any,
    *,
    target: Any = None,
    loss: str | Mapping[str, Any] = "cross_entropy",
    batch: int | None = None,
    seed: int = 0,
) -> TorchComparison:
    """Runs forward, loss and backward of the module by PyTorch and by the library, both in double
    precision with the same weights and inputs, and says how much gradients differ.

    `loss` is one of a training file (docs/training.md), taken of the module's first output;
    "network" where the module computes the loss itself. `target`: labels or what the loss compares
    with; without it, random ones of `seed`. `batch` takes the first so many rows of the inputs.

    The module is copied; the copy is in training mode, but for parts that were put into evaluation
    mode by hand: of batch normalisations all or none. Its dropout modules are turned off, named in
    `dropout_off`, as masks of two programs do not agree. A module that still draws random numbers
    cannot be compared: ValueError. Updated weights and running statistics are not compared.

    Differences of 1e-8 come from settings that are no short decimals (1/6 of a Hardsigmoid), which
    the file holds in single precision; where gradients differ by more, finite differences tell who
    is right."""
    torch = _torch()
    _require_module(torch, module)
    kind, settings = _loss(loss)
    arguments.whole("seed", seed, 0, 2**63 - 1)
    twin, dropout_off = _double_twin(torch, module)
    statistics = _statistics(torch, twin)
    given = _inputs(torch, twin, inputs, "inputs").first_rows(batch).double()
    with _default_type(torch, torch.float64):
        output = _repeatable_output(torch, twin, given)
        wanted = _target(torch, kind, settings, output, target, seed)
        theirs = _by_torch(torch, twin, given, kind, settings, wanted)
        network = _exported_twin(torch, twin, given)
    numbers = dict(zip(given.names, given.arrays()))
    if wanted is not None:
        numbers["labels" if kind in _OF_CLASSES else "targets"] = wanted.numpy()
    options = {
        "loss": dict(settings, type=kind),
        "optimizer": {"type": "sgd", "learning_rate": 0.0},
        "batch_norm": statistics,
    }
    executed = network.training_step(options).execute(numbers)
    ours = _Numbers(executed.loss, executed.outputs, executed.gradients)
    return TorchComparison(_aliases(twin), theirs, ours, network, dropout_off)


class TorchComparison(Columns):
    """A trained parameter a row: name, shape, max_gradient (PyTorch's largest magnitude),
    max_difference, and relative_difference: to max_gradient, or where that is nothing but rounding
    (a bias in front of a batch normalisation), to the largest gradient of all."""

    def __init__(
        self,
        aliases: Mapping[str, Sequence[str]],
        theirs: _Numbers,
        ours: _Numbers,
        network: Network,
        dropout_off: Sequence[str],
    ) -> None:
        self.loss = ours.loss
        self.torch_loss = theirs.loss
        self.dropout_off = list(dropout_off)
        self.network: Network | None = network
        """As it was executed; None where the comparison was pickled."""
        self.output_differences = {
            name: _largest(ours.outputs[name] - output)
            for name, output in theirs.outputs.items()
            if name in ours.outputs
        }
        self.not_compared: dict[str, str] = {}
        rows: list[tuple[str, tuple[int, ...], float, float]] = []
        for name, gradient in theirs.gradients.items():
            found = next((ours.gradients[other] for other in aliases[name] if other in ours.gradients), None)
            if found is None and gradient is None:
                self.not_compared[name] = "the loss does not depend on it"
            elif found is None and gradient is not None and np.any(gradient):
                self.not_compared[name] = "it is no trained parameter of the network as read"
            else:
                whole = next(array for array in (gradient, found) if array is not None)
                zero = np.zeros_like(whole)
                mine, other = (zero if array is None else array for array in (found, gradient))
                if mine.shape != other.shape:
                    self.not_compared[name] = f"its shape is {list(mine.shape)} in the network as read"
                    continue
                rows.append((name, other.shape, _largest(other), _largest(mine - other)))
        largest = max((row[2] for row in rows), default=0.0)
        relative = [
            0.0 if difference == 0 else difference / (size if size > ROUNDING * largest else largest or 1.0)
            for _, _, size, difference in rows
        ]
        shapes = np.empty(len(rows), dtype=object)
        shapes[:] = [row[1] for row in rows]
        super().__init__(
            {
                "name": np.array([row[0] for row in rows], dtype=object),
                "shape": shapes,
                "max_gradient": np.array([row[2] for row in rows], dtype=np.float64),
                "max_difference": np.array([row[3] for row in rows], dtype=np.float64),
                "relative_difference": np.array(relative, dtype=np.float64),
            }
        )

    @property
    def worst(self) -> float:
        """Largest relative difference of all gradients."""
        column = self["relative_difference"]
        return float(column.max()) if len(column) else 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        more = {name: value for name, value in vars(self).items() if name != "network"}
        return _restored, ({**more, "network": None},)

    def __str__(self) -> str:
        width = max([len("parameter"), *map(len, self["name"])])
        lines = [f"{'parameter':{width}}  {'max gradient':>12}  {'difference':>10}  {'relative':>9}  shape"]
        for name, shape, size, difference, relative in zip(*self.values()):
            lines.append(f"{name:{width}}  {size:12.4g}  {difference:10.2g}  {relative:9.2g}  {list(shape)}")
        lines += [f"{name:{width}}  not compared: {why}" for name, why in self.not_compared.items()]
        lines.append(f"loss {self.loss:.12g}, PyTorch's {self.torch_loss:.12g}")
        if self.dropout_off:
            lines.append("dropout is off in " + ", ".join(self.dropout_off))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"TorchComparison({self.rows} parameters, largest relative difference {self.worst:.2g})"


def _restored(attributes: Mapping[str, Any]) -> TorchComparison:
    made = TorchComparison.__new__(TorchComparison)
    vars(made).update(attributes)
    return made


# --- Arguments -------------------------------------------------------------------------------


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            "networks from PyTorch need it: pip install torch, or apt install python3-torch on Debian", name="torch"
        ) from error


def _require_module(torch: Any, module: Any) -> None:
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: {type(module).__name__} is no torch.nn.Module")


class _Inputs:
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

    def changed(self, change: Any) -> _Inputs:
        return _Inputs([change(tensor) for tensor in self.tensors], self.names, self.by_keyword)

    def twice(self, torch: Any) -> _Inputs:
        return self.changed(lambda tensor: torch.cat([tensor, tensor]) if self.has_batch(tensor) else tensor)

    def first_rows(self, batch: int | None) -> _Inputs:
        if batch is None:
            return self
        arguments.whole("batch", batch, 1, max(1, self.batch or 1))
        return self.changed(lambda tensor: tensor[:batch] if self.has_batch(tensor) else tensor)

    def double(self) -> _Inputs:
        return self.changed(lambda t: t.detach().cpu().double() if t.is_floating_point() else t.detach().cpu())


def _inputs(torch: Any, module: Any, given: Any, argument: str, names: Sequence[str] | None = None) -> _Inputs:
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
    return _Inputs(tensors, list(names), by_keyword)


def _arguments(module: Any) -> list[str]:
    """Names of what forward takes; empty where it does not say."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in signature.parameters.items() if parameter.kind in positional]


# --- Export ----------------------------------------------------------------------------------


def _from_torch(
    torch: Any,
    module: Any,
    example_inputs: Any,
    batch: int | None,
    symbolic_batch: bool,
    opset: int,
    input_names: Sequence[str] | None,
) -> Network:
    _require_module(torch, module)
    if isinstance(example_inputs, _Inputs):
        inputs = example_inputs
    else:
        inputs = _inputs(torch, module, example_inputs, "example_inputs", input_names)
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
        with _as_it_was(torch, module):
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
def _as_it_was(torch: Any, module: Any) -> Iterator[None]:
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


def _export(torch: Any, module: Any, inputs: _Inputs, path: str, symbolic: bool, opset: int) -> None:
    with _as_it_was(torch, module), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = _flat(torch, inputs.call(module))
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


def _flat(torch: Any, output: Any) -> list[Any]:
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, Mapping):
        return [tensor for part in output.values() for tensor in _flat(torch, part)]
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in _flat(torch, part)]
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

    names = "\n".join(name for name, tensor in module.state_dict(keep_vars=True).items() if tensor.requires_grad)
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
    torch: Any, module: Any, inputs: _Inputs, opset: int, error: str, says: str
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


def _places(torch: Any, module: Any, inputs: _Inputs, kind: str) -> list[tuple[str, str]]:
    """Modules that call an operator, by their names in the traced graph, and the line that does."""
    try:
        with _as_it_was(torch, module), warnings.catch_warnings():
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


# --- The same by PyTorch ---------------------------------------------------------------------

_OF_CLASSES = ("cross_entropy", "nll")
_LOSSES = ("mse", "l1", "smooth_l1", "huber", "bce", "bce_with_logits", "kl_div", *_OF_CLASSES)
_FUNCTIONS = {
    "bce": "binary_cross_entropy",
    "bce_with_logits": "binary_cross_entropy_with_logits",
    "cross_entropy": "cross_entropy",
    "kl_div": "kl_div",
    "nll": "nll_loss",
}


class _Numbers:
    """What a step of training computes. A gradient is None where there is none."""

    def __init__(self, loss: float, outputs: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
        self.loss = loss
        self.outputs = outputs
        self.gradients = gradients


def _loss(loss: Any) -> tuple[str, dict[str, Any]]:
    settings = dict(loss) if isinstance(loss, Mapping) else {"type": loss}
    kind = settings.pop("type", None)
    if not isinstance(kind, str):
        raise TypeError(f"loss: {type(loss).__name__} is neither a name nor a mapping with its 'type'")
    if kind not in (*_LOSSES, "network"):
        raise ValueError(f"loss: {kind!r} is none of {', '.join((*_LOSSES, 'network'))}")
    return kind, settings


def _double_twin(torch: Any, module: Any) -> tuple[Any, list[str]]:
    """A copy in double precision on the CPU, in training mode, without dropout; who had some."""
    memo: dict[int, Any] = {}
    for part in module.modules():  # weights that are computed are no leaves, which cannot be copied
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    if isinstance(module, torch.jit.ScriptModule):  # whose deep copy has parameters that are no leaves
        stream = io.BytesIO()
        torch.jit.save(module, stream)
        stream.seek(0)
        twin = torch.jit.load(stream, map_location="cpu").double()
    else:
        twin = copy.deepcopy(module, memo).cpu().double()
    if not twin.training:
        twin.train()
    off = []
    for name, part in twin.named_modules():
        for key, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(part, key, value.double())
        dropout = "dropout" if isinstance(getattr(part, "dropout", None), float) else "p"
        if dropout == "dropout" or isinstance(part, torch.nn.modules.dropout._DropoutNd):
            if getattr(part, dropout) > 0 and part.training:
                off.append(name or type(part).__name__)
            setattr(part, dropout, 0.0)
    return twin, off


def _exported_twin(torch: Any, twin: Any, inputs: _Inputs) -> Network:
    """In double precision as far as PyTorch can: what it makes of sizes (of an interpolation) is of
    the default type, where ONNX wants single precision."""
    try:
        return _from_torch(torch, twin, inputs, None, False, OPSET, None)
    except _monet.InputError as error:
        failure = error
    try:
        with _default_type(torch, torch.float32):
            return _from_torch(torch, twin, inputs, None, False, OPSET, None)
    except Exception:
        raise failure from None


def _statistics(torch: Any, module: Any) -> str:
    """The training file's `batch_norm`: where all that have running statistics use them, or none."""
    norms = [
        (name or type(part).__name__, part.training)
        for name, part in module.named_modules()
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is not None
    ]
    fixed = [name for name, training in norms if not training]
    if fixed and len(fixed) < len(norms):
        raise ValueError(f"module: {', '.join(fixed)} in evaluation mode: a step has all batch normalisations so, or none")
    return "inference" if fixed else "training"


@contextlib.contextmanager
def _default_type(torch: Any, kind: Any) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(kind)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _repeatable_output(torch: Any, module: Any, inputs: _Inputs) -> Any:
    """The first output; ValueError if it is another one each time."""
    made = []
    for seed in (1, 2):
        with _as_it_was(torch, module), torch.no_grad():
            torch.manual_seed(seed)
            outputs = _flat(torch, inputs.call(module))
        if not outputs:
            raise ValueError(f"module: {type(module).__name__}.forward returns no tensor")
        made.append(outputs[0])
    if made[0].shape != made[1].shape or not torch.equal(torch.nan_to_num(made[0]), torch.nan_to_num(made[1])):
        raise ValueError(
            f"module: {type(module).__name__} draws random numbers that cannot be turned off (a functional dropout, "
            "noise): its gradients cannot be compared"
        )
    return made[0]


def _class_axis(output: Any) -> int:
    """As the training file's cross_entropy finds it."""
    return int(output.dim() - 1) if output.dim() == 3 else 1


def _target(torch: Any, kind: str, settings: Mapping[str, Any], output: Any, target: Any, seed: int) -> Any:
    if kind == "network":
        if target is not None:
            raise ValueError("target: a module that computes its loss takes none")
        return None
    if kind in _OF_CLASSES and output.dim() < 2:
        raise ValueError(f"loss: {kind} has no classes in an output of shape {list(output.shape)}")
    shape = list(output.shape)
    if kind in _OF_CLASSES:
        classes = shape.pop(settings.get("class_axis", _class_axis(output)))
    if target is None:
        generator = torch.Generator().manual_seed(seed)
        if kind in _OF_CLASSES:
            return torch.randint(classes, shape, generator=generator)
        if kind == "kl_div" and not settings.get("log_target"):
            return torch.rand(shape, generator=generator).softmax(-1)
        if kind.startswith("bce"):
            return torch.rand(shape, generator=generator)
        return torch.randn(shape, generator=generator)
    if not isinstance(target, torch.Tensor):
        try:
            target = torch.as_tensor(np.asarray(target))
        except (TypeError, ValueError):
            raise TypeError(f"target: {type(target).__name__} is no tensor") from None
    if list(target.shape) != shape:
        raise ValueError(f"target: its shape is {list(target.shape)}, not {shape}")
    target = target.detach().cpu()
    if kind not in _OF_CLASSES:
        return target.to(torch.float64)
    if target.is_floating_point():
        raise TypeError("target: labels are whole numbers")
    if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < classes:
        raise ValueError(f"target: labels are not between 0 and {classes - 1}")
    return target.to(torch.int64)


def _by_torch(
    torch: Any, module: Any, inputs: _Inputs, kind: str, settings: Mapping[str, Any], target: Any
) -> _Numbers:
    with _as_it_was(torch, module), _contiguous_gradients(torch, module), torch.enable_grad():
        outputs = _flat(torch, inputs.call(module))
        loss = _torch_loss(torch, outputs[0], kind, settings, target)
        if loss.dim():
            raise ValueError(f"loss: the first output is no scalar, but of shape {list(loss.shape)}")
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not parameters:
            raise ValueError("module: none of its parameters requires a gradient")
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    names = ["output"] if len(outputs) == 1 else [f"output_{i}" for i in range(len(outputs))]
    return _Numbers(
        float(loss.detach()),
        {name: output.detach().numpy() for name, output in zip(names, outputs)},
        {name: None if g is None else g.detach().numpy() for name, g in zip(parameters, gradients)},
    )


@contextlib.contextmanager
def _contiguous_gradients(torch: Any, module: Any) -> Iterator[None]:
    """PyTorch 1.13's gradients of a batch or instance normalisation of one sample are wrong where the
    gradient of its result lies in memory with channels last, as in front of a transposition."""

    def hook(part: Any, given: Any, output: Any) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: gradient.contiguous())

    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)
    hooks = [part.register_forward_hook(hook) for part in module.modules() if isinstance(part, norms)]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def _torch_loss(torch: Any, output: Any, kind: str, settings: Mapping[str, Any], target: Any) -> Any:
    if kind == "network":
        return output
    functional = torch.nn.functional
    options = {key: value for key, value in settings.items() if key != "class_axis"}
    for key in ("weight", "pos_weight"):
        if key in options:
            options[key] = torch.tensor(options[key], dtype=torch.float64)
    if kind in _OF_CLASSES:
        axis = settings.get("class_axis", _class_axis(output)) % output.dim()
        output = output.movedim(axis, 1)
    function = getattr(functional, _FUNCTIONS.get(kind, f"{kind}_loss"))
    try:
        return function(output, target, **options)
    except TypeError as error:
        raise ValueError(f"loss: {error}") from None


def _aliases(module: Any) -> dict[str, list[str]]:
    """Every name of a parameter by its first: a file has a shared one under any of them."""
    first = {id(tensor): name for name, tensor in module.named_parameters()}
    names: dict[str, list[str]] = {name: [name] for name in first.values()}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) in first:
            names[first[id(tensor)]].append(name)
    return names


def _largest(array: np.ndarray[Any, Any]) -> float:
    return float(np.max(np.abs(array))) if array.size else 0.0
