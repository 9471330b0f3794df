"""Comparison of the library's gradients with those of PyTorch."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from monet import _monet, arguments
from monet.columns import Columns
from monet.model import Network
from monet.torch_models import (
    OPSET,
    ModuleInputs,
    as_it_was,
    flat,
    inputs_of,
    read_exported,
    require_module,
    the_torch,
)

ROUNDING = 1e-10  # share of the largest gradient below which a gradient is only rounding


def compare_with_torch(
    module: Any,
    inputs: Any,
    *,
    target: Any = None,
    loss: str | Mapping[str, Any] = "cross_entropy",
    batch: int | None = None,
    seed: int = 0,
) -> TorchComparison:
    """Runs forward pass, loss and backward pass of the module in PyTorch and in the library, and
    compares the gradients. Both use double precision and equal weights and inputs.

    `loss`: a loss of a training file (docs/reference/training-file.md), computed from the module's
    first output, or "network" if the module computes the loss itself. `target`: labels or target
    values; without it, random ones from `seed`. `batch`: the number of rows of the inputs to use,
    from the first on.

    The module is copied. The copy is in training mode, except parts that were set to evaluation
    mode separately; of batch normalisations, that must be all or none. Its dropout modules are
    turned off and listed in `dropout_off`, because the masks of two programs differ. Raises
    ValueError if the module still draws random numbers. Updated weights and running statistics are
    not compared.

    Differences of 1e-8 come from settings without a short decimal form (1/6 of a Hardsigmoid),
    which the file stores in single precision. If gradients differ by more, finite differences show
    which side is right."""
    torch = the_torch()
    require_module(torch, module)
    kind, settings = _loss(loss)
    arguments.whole("seed", seed, 0, 2**63 - 1)
    twin, dropout_off = _double_twin(torch, module)
    statistics = _statistics(torch, twin)
    given = inputs_of(torch, twin, inputs, "inputs").first_rows(batch).double()
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
    """One row per trained parameter: name, shape, max_gradient (PyTorch's largest magnitude),
    max_difference, relative_difference. The last is relative to max_gradient or, if that is only
    rounding (a bias before a batch normalisation), to the largest gradient of all parameters."""

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
        """The executed network; None after unpickling."""
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
                self.not_compared[name] = "it is not a trained parameter of the network as read"
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
    """Loss, outputs and gradients of a training step, with None for missing gradients."""

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
        raise ValueError(f"loss: {kind!r} is not one of {', '.join((*_LOSSES, 'network'))}")
    return kind, settings


def _double_twin(torch: Any, module: Any) -> tuple[Any, list[str]]:
    """A copy in double precision on the CPU, in training mode without dropout, and the names of the
    parts that had dropout."""
    memo: dict[int, Any] = {}
    for part in module.modules():  # computed weights are not leaves and cannot be copied
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    if isinstance(module, torch.jit.ScriptModule):  # its deep copy has parameters that are not leaves
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


def _exported_twin(torch: Any, twin: Any, inputs: ModuleInputs) -> Network:
    """The exported copy, in double precision if possible. PyTorch computes values from sizes (of an
    interpolation) in the default type, for which ONNX requires single precision."""
    try:
        return read_exported(torch, twin, inputs, None, False, OPSET, None)
    except _monet.InputError as error:
        failure = error
    try:
        with _default_type(torch, torch.float32):
            return read_exported(torch, twin, inputs, None, False, OPSET, None)
    except Exception:
        raise failure from None


def _statistics(torch: Any, module: Any) -> str:
    """The training file's `batch_norm`: "inference" if all batch normalisations with running
    statistics use them, "training" if they all update them. Raises ValueError for a mixture."""
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


def _repeatable_output(torch: Any, module: Any, inputs: ModuleInputs) -> Any:
    """The first output. Raises ValueError if it differs between two runs."""
    made = []
    for seed in (1, 2):
        with as_it_was(torch, module), torch.no_grad():
            torch.manual_seed(seed)
            outputs = flat(torch, inputs.call(module))
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
    """The axis of the classes, by the rule of the training file's cross_entropy."""
    return int(output.dim() - 1) if output.dim() == 3 else 1


def _target(torch: Any, kind: str, settings: Mapping[str, Any], output: Any, target: Any, seed: int) -> Any:
    if kind == "network":
        if target is not None:
            raise ValueError("target: a module that computes its loss has no target")
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
            raise TypeError(f"target: {type(target).__name__} is not a tensor") from None
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
    torch: Any, module: Any, inputs: ModuleInputs, kind: str, settings: Mapping[str, Any], target: Any
) -> _Numbers:
    with as_it_was(torch, module), _contiguous_gradients(torch, module), torch.enable_grad():
        outputs = flat(torch, inputs.call(module))
        loss = _torch_loss(torch, outputs[0], kind, settings, target)
        if loss.dim():
            raise ValueError(f"loss: the first output is not a scalar, but of shape {list(loss.shape)}")
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
    """Makes gradients contiguous where PyTorch 1.13 needs that. Its gradients of a batch or
    instance normalisation of one sample are wrong if the gradient of the result has channels last
    in memory, as before a transposition."""

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
    """All names of each parameter, by its first name. A file may list a shared parameter under any
    of them."""
    first = {id(tensor): name for name, tensor in module.named_parameters()}
    names: dict[str, list[str]] = {name: [name] for name in first.values()}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) in first:
            names[first[id(tensor)]].append(name)
    return names


def _largest(array: np.ndarray[Any, Any]) -> float:
    return float(np.max(np.abs(array))) if array.size else 0.0
