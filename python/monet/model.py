"""Networks, and the training and inference steps that are built from them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from monet import _monet, arguments, pictures
from monet.calls import File, FileOrDict, Inputs, Options, told_in_python
from monet.chips import Chip
from monet.dicts import DictText
from monet.execution import Execution, Numbers
from monet.progress import Progress, progress_of
from monet.results import Result
from monet.warning import warned


class TensorInfo(NamedTuple):
    name: str
    shape: tuple[int, ...]
    type: str


class Network:
    """A network from an ONNX file. Created by `read_network()`."""

    def __init__(self, handle: _monet.Network, batch: int | None, dimensions: Mapping[str, int]) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Network, "read_network()")
        self._batch = batch
        self._dimensions = dict(dimensions)

    @property
    def path(self) -> str:
        return self._handle.path

    @property
    def operators(self) -> int:
        """Number of operators of the graph as read for inference."""
        return self._handle.operators

    @property
    def parameters(self) -> int:
        """Number of elements of all parameters."""
        return self._handle.parameters

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(name, tuple(shape), kind) for name, shape, kind in self._handle.inputs]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(name, tuple(shape), kind) for name, shape, kind in self._handle.outputs]

    def training_step(self, options: FileOrDict | None = None, **more: Any) -> TrainingStep:
        """A training step of the network. `options` is a training file or a dict of its keys.
        Further keyword arguments are also keys of it (loss, optimizer, precision, storage, ...; see
        docs/reference/training-file.md). Raises InputError for invalid options, with the key."""
        arguments.instance("network", self, Network, "read_network()")
        if options is not None and not isinstance(options, Mapping):
            if more:
                raise TypeError("a training file stands alone: leave out " + ", ".join(more))
            path = arguments.path("options", options)
            text = _read_text(path)
            with warned():
                return TrainingStep(_monet.training_step(self._handle, text, path, True), self, path)
        inputs = Inputs()
        given = DictText({**(options or {}), **more}, "training")
        inputs.add(given)
        handle = inputs.reading(lambda: _monet.training_step(self._handle, given.text, given.name, False))
        return TrainingStep(handle, self, given)

    def inference(self, precision: str | Options | None = None) -> InferenceStep:
        """An inference step of the network. `precision`: an element type for all tensors, or types
        by role such as {"weights": "int8", "accumulate": "int32"}. None keeps the types of the
        file."""
        arguments.instance("network", self, Network, "read_network()")
        inputs = Inputs()
        text = ""
        if isinstance(precision, (str, Mapping)):
            given = DictText(precision, "precision")
            inputs.add(given)
            text = given.text
        elif precision is not None:
            raise TypeError(f"precision: {arguments.kind_of(precision)} is neither the name of a type nor a dict")
        handle = inputs.reading(lambda: _monet.inference_step(self._handle, text))
        return InferenceStep(handle, self, text)

    def _values(self) -> dict[str, object]:
        return {"--batch": self._batch, "--dim": self._dimensions or None}

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self.path, self._batch, self._dimensions)

    def _repr_html_(self) -> str:
        return pictures.network_html(self)

    def __repr__(self) -> str:
        return f"Network({self.path!r}: {self.operators} operators, {self.parameters:,} parameters)"


class Step:
    """A computation to model: a network's training step, or its inference."""

    def __init__(self, handle: _monet.Step, network: Network) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Step, "Network.training_step()")
        self.network = network

    def schedule(
        self,
        chip: Chip,
        *,
        mode: str = "auto",
        mapping: FileOrDict | None = None,
        stacks: FileOrDict | Sequence[Any] | None = None,
        halo: str = "cached",
        priority: str = "latency",
        effort: str = "normal",
        stream_like: Sequence[str] = (),
        objective: str = "latency",
        lpf_limit: int = 6,
        jobs: int = 1,
        verify: bool = False,
        progress: Progress = None,
    ) -> Result:
        """Models the step on the chip, as `monet schedule` does, with its options as arguments.

        `jobs`: number of threads (0: all cores), which does not affect results. `progress`: True
        for a display, or a callable that receives the name of each stage. The call releases the
        interpreter's lock, and Ctrl-C ends it. Raises InputError, InfeasibleError (with operand,
        memory and number of bits), ValueError for an invalid argument, KeyboardInterrupt."""
        arguments.instance("step", self, Step, "Network.training_step()")
        inputs = Inputs()
        given = _schedule_arguments(
            inputs, chip, mode=mode, mapping=mapping, stacks=stacks, halo=halo, priority=priority,
            effort=effort, stream_like=stream_like, objective=objective, lpf_limit=lpf_limit, jobs=jobs, verify=verify,
        )  # fmt: skip
        with progress_of(progress) as told, told_in_python(("schedule",)):
            handle = inputs.reading(lambda: _monet.schedule(self._handle, chip._handle, given, told), ("schedule",))
        return Result(handle)

    def execute(
        self,
        numbers: Numbers | None = None,
        *,
        arithmetic: str = "fp64",
        seed: int = 0,
        steps: int = 1,
        jobs: int = 1,
        memory_limit: str = "80%",
        keep_all: bool = False,
    ) -> Execution:
        """Computes the step numerically. `numbers`: arrays of weights, inputs and states by name.
        Missing values are read from the network's file, or else drawn at random from `seed`. All
        `steps` use one batch. `arithmetic`: fp64, fp32, or formats (each operator rounds to the
        types of its tensors). `keep_all` keeps every tensor, not only results. Raises InputError
        for a wrong name or shape, InfeasibleError beyond `memory_limit`."""
        arguments.instance("step", self, Step, "Network.training_step()")
        given = (
            arguments.arrays("numbers", numbers),
            arguments.one_of("arithmetic", arithmetic, ("fp64", "fp32", "formats")),
            arguments.whole("seed", seed, 0, 2**64 - 1),
            arguments.whole("steps", steps, 1, 1_000_000),
            arguments.whole("jobs", jobs, 0, 1024),
            arguments.text("memory_limit", memory_limit),
            arguments.flag("keep_all", keep_all),
        )
        with warned():
            return Execution(_monet.execute(self._handle, *given))

    def _values(self, inputs: Inputs) -> dict[str, object]:
        """Command-line options of this step."""
        raise NotImplementedError

    def _of(self, network: Network) -> Step:
        """A step of another network with the options of this one."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.network.path!r})"


class TrainingStep(Step):
    """Forward pass, loss, backward pass and update. Created by `Network.training_step()`."""

    def __init__(self, handle: _monet.Step, network: Network, options: str | DictText) -> None:
        super().__init__(handle, network)
        self._options = options

    def _values(self, inputs: Inputs) -> dict[str, object]:
        if isinstance(self._options, DictText):
            inputs.add(self._options)
        name = self._options.name if isinstance(self._options, DictText) else self._options
        return {**self.network._values(), "--training": name}

    def _of(self, network: Network) -> TrainingStep:
        return network.training_step(self._options.value if isinstance(self._options, DictText) else self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        options = self._options.value if isinstance(self._options, DictText) else self._options
        return Network.training_step, (self.network, options)


class InferenceStep(Step):
    """The forward pass alone. Created by `Network.inference()`."""

    def __init__(self, handle: _monet.Step, network: Network, precision: str) -> None:
        super().__init__(handle, network)
        self._precision = precision

    def _values(self, inputs: Inputs) -> dict[str, object]:
        return {**self.network._values(), "--precision": self._precision or None}

    def _of(self, network: Network) -> InferenceStep:
        return network.inference(json.loads(self._precision) if self._precision else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Network.inference, (self.network, json.loads(self._precision) if self._precision else None)


def read_network(path: File, *, batch: int | None = None, dimensions: Mapping[str, int] | None = None) -> Network:
    """Reads an ONNX file. `batch` sets the symbolic first axis of the inputs, and `dimensions` sets
    other symbolic axes by name. Raises InputError with the node or the file that is wrong."""
    given = arguments.sizes("dimensions", dimensions)
    size = None if batch is None else arguments.whole("batch", batch, 1, 2**40)
    file = arguments.path("path", path)
    with warned():
        return Network(_monet.read_network(file, size, given), size, given)


def _read_again(path: str, batch: int | None, dimensions: Mapping[str, int]) -> Network:
    return read_network(path, batch=batch, dimensions=dimensions)


_MOST_BYTES = 2**24  # maximum size of a text, also in the library


def _read_text(path: str) -> str:
    try:
        if not os.path.isdir(path) and stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) <= _MOST_BYTES:
                return data.decode()
            says = f"is larger than {_MOST_BYTES} bytes"
        else:
            says = "is not a file"  # a pipe or a device may never end
    except OSError as error:
        says = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        says = f"is not UTF-8 text (byte {error.start})"
    raise arguments.input_error(path, says)


def _schedule_arguments(
    inputs: Inputs,
    chip: Chip,
    *,
    mode: str,
    mapping: FileOrDict | None,
    stacks: FileOrDict | Sequence[Any] | None,
    halo: str,
    priority: str,
    effort: str,
    stream_like: Sequence[str],
    objective: str,
    lpf_limit: int,
    jobs: int,
    verify: bool,
) -> _monet.ScheduleArguments:
    """Checks the arguments of `Step.schedule()`. Errors name the invalid argument."""
    arguments.instance("chip", chip, Chip, "read_chip()")
    rules = ("links", "multicast", "overlap", "pieces", "spills", "routing")
    given = _monet.ScheduleArguments()
    given.mode = arguments.one_of("mode", mode, ("auto", "layer-by-layer", "fused"))
    given.mapping = "" if mapping is None else inputs.name(mapping, "mapping")
    given.stacks = "auto" if stacks is None else inputs.name(stacks, "stacks")
    given.halo = arguments.one_of("halo", halo, ("cached", "recomputed"))
    given.priority = arguments.one_of("priority", priority, ("latency", "memory", "order"))
    given.effort = arguments.one_of("effort", effort, ("quick", "normal", "thorough"))
    given.stream_like = arguments.several_of("stream_like", stream_like, rules)
    given.objective = arguments.one_of("objective", objective, ("latency", "energy", "edp"))
    given.lpf_limit = arguments.whole("lpf_limit", lpf_limit, 0, 64)
    given.jobs = arguments.whole("jobs", jobs, 0, 4096)
    given.verify = arguments.flag("verify", verify)
    given.files = inputs.texts
    return given


arguments.seal_extension()
