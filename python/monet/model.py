"""Networks, steps, chips and results."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from monet import _monet
from monet.columns import Columns
from monet.dicts import DictText, read_dict

File = str | os.PathLike[str]
Options = Mapping[str, Any]


class TensorInfo(NamedTuple):
    name: str
    shape: tuple[int, ...]
    type: str


class Network:
    """A network of an ONNX file. Made by `read_network()`."""

    def __init__(self, handle: _monet.Network) -> None:
        self._handle = handle

    @property
    def path(self) -> str:
        return self._handle.path

    @property
    def operators(self) -> int:
        """Operators of the graph as it is read for inference."""
        return self._handle.operators

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return self._handle.parameters

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(name, tuple(shape), kind) for name, shape, kind in self._handle.inputs]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(name, tuple(shape), kind) for name, shape, kind in self._handle.outputs]

    def training_step(self, options: File | Options | None = None, **more: Any) -> TrainingStep:
        """A step of training: `options` is a training file or a dict of its keys, and further
        keyword arguments are keys of it, too (loss, optimizer, precision, storage, ...; see
        docs/training.md). InputError for what is wrong with them, at the key."""
        if options is not None and not isinstance(options, Mapping):
            if more:
                raise TypeError("a training file stands alone: leave out " + ", ".join(more))
            path = os.fspath(options)
            text = _read_text(path)
            return TrainingStep(_monet.training_step(self._handle, text, path, True), self)
        given = DictText({**(options or {}), **more}, "training")
        return TrainingStep(
            read_dict(given, lambda: _monet.training_step(self._handle, given.text, given.name, False)), self
        )

    def inference(self, precision: str | Options | None = None) -> InferenceStep:
        """The network alone. `precision`: an element type for all, or roles such as {"weights":
        "int8", "accumulate": "int32"}; none: as the file has it."""
        text = "" if precision is None else json.dumps(precision)
        return InferenceStep(_monet.inference_step(self._handle, text), self)

    def __repr__(self) -> str:
        return f"Network({self.path!r}: {self.operators} operators, {self.parameters:,} parameters)"


class Chip:
    """Cores, memories, links and the off-chip memory. Made by `read_chip()`."""

    def __init__(self, handle: _monet.Chip) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def area_mm2(self) -> float:
        """Of arrays and memories of the compute cores; 0 where the files give none."""
        return self._handle.area_mm2

    @property
    def frequency_hz(self) -> float:
        """0 where the file gives none."""
        return self._handle.frequency_hz

    @property
    def cores(self) -> list[dict[str, Any]]:
        """name, kind, lanes and memories, each (name, bits of an instance, instances)."""
        return self._handle.cores

    def __repr__(self) -> str:
        compute = sum(core["kind"] != "offchip" for core in self.cores)
        return f"Chip({self.name!r}: {compute} compute cores)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(core['name'])}</td><td>{core['kind']}</td><td>{core['lanes']:,}</td><td>"
            + "<br>".join(f"{html.escape(name)}: {many:,} x {bits / 8:,.0f} B" for name, bits, many in core["memories"])
            + "</td></tr>"
            for core in self.cores
        )
        head = "<tr><th>core</th><th>kind</th><th>lanes</th><th>memories</th></tr>"
        return f"<table><caption>{html.escape(self.name)}</caption>{head}{rows}</table>"


class _Step:
    def __init__(self, handle: _monet.Step, network: Network) -> None:
        self._handle = handle
        self.network = network

    def schedule(
        self,
        chip: Chip,
        *,
        mode: str = "auto",
        mapping: File | None = None,
        stacks: File | None = None,
        halo: str = "cached",
        priority: str = "latency",
        stream_like: Sequence[str] = (),
        objective: str = "latency",
        lpf_limit: int = 6,
        jobs: int = 1,
        verify: bool = False,
        progress: Callable[[str], object] | None = None,
    ) -> Result:
        """Models the step on the chip, as `monet schedule` does; arguments are its options.

        `jobs`: threads (0: all cores); results do not depend on it. `progress` is called with the
        name of each stage. The interpreter's lock is free meanwhile, and Ctrl-C ends the call.
        Raises InputError, InfeasibleError (which operand, memory and how many bits), ValueError for
        an argument, KeyboardInterrupt."""
        _one_of("mode", mode, ("auto", "layer-by-layer", "fused"))
        _one_of("halo", halo, ("cached", "recomputed"))
        _one_of("priority", priority, ("latency", "memory", "order"))
        _one_of("objective", objective, ("latency", "energy", "edp"))
        for name in stream_like:
            _one_of("stream_like", name, ("links", "multicast", "overlap", "pieces", "spills", "routing"))
        arguments = _monet.ScheduleArguments()
        arguments.mode = mode
        arguments.mapping = "" if mapping is None else os.fspath(mapping)
        arguments.stacks = "auto" if stacks is None else os.fspath(stacks)
        arguments.halo = halo
        arguments.priority = priority
        arguments.stream_like = list(stream_like)
        arguments.objective = objective
        arguments.lpf_limit = _within("lpf_limit", lpf_limit, 0, 64)
        arguments.jobs = _within("jobs", jobs, 0, 4096)
        arguments.verify = verify
        return Result(_monet.schedule(self._handle, chip._handle, arguments, progress))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.network.path!r})"


class TrainingStep(_Step):
    """Forward, loss, backward and update. Made by `Network.training_step()`."""


class InferenceStep(_Step):
    """The network alone. Made by `Network.inference()`."""


class Result:
    """A step modelled on a chip: figures, columns, and everything the command line writes.

    Of a training step the figures of inference alone stand in `to_dict()["inference"]`."""

    def __init__(self, handle: _monet.Result) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        return self._handle.name

    @cached_property
    def _json(self) -> str:
        return self._handle.json()

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return dict(json.loads(self._json))

    def to_json(self) -> str:
        """What `monet schedule --json -` prints, byte for byte."""
        return self._json + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The same as Python has it; docs/result.md names every key."""
        return dict(json.loads(self._json))

    @property
    def latency_cycles(self) -> int:
        return int(self._figures["latency_cycles"])

    @property
    def latency_seconds(self) -> float | None:
        """None where the chip has no frequency."""
        return self._figures.get("latency_seconds")

    @property
    def energy_pj(self) -> float:
        return float(self._figures["energy_pj"])

    @property
    def energy(self) -> dict[str, float]:
        """pJ by part: compute, on-chip memory, links, off-chip, leakage."""
        return dict(self._figures["energy"])

    @property
    def peak_memory_bytes(self) -> int:
        """Most bytes live at a time, every tensor whole."""
        return int(self._figures["peak_memory_bytes"])

    @property
    def peak_memory_by_slices_bytes(self) -> int | None:
        """The same with fused tensors slice by slice; None where nothing is fused."""
        return self._figures.get("peak_memory_by_slices_bytes")

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by owner at the moment of the peak."""
        return dict(self._figures["memory"])

    @property
    def macs(self) -> dict[str, int]:
        return dict(self._figures["macs"])

    @cached_property
    def layers(self) -> Columns:
        """An operator a row: name, op_type, phase, macs, latency_cycles, energy_pj, start_cycle,
        end_cycle, offchip_bytes."""
        rows = self._figures["layers"]
        texts = ("name", "op_type", "phase")
        numbers = {"macs": np.int64, "latency_cycles": np.int64, "energy_pj": np.float64, "start_cycle": np.int64,
                   "end_cycle": np.int64, "offchip_bytes": np.int64}  # fmt: skip
        columns: dict[str, np.ndarray[Any, Any]] = {
            key: np.array([row[key] for row in rows], dtype=object) for key in texts
        }
        columns |= {key: np.array([row[key] for row in rows], dtype=kind) for key, kind in numbers.items()}
        return Columns(columns)

    @cached_property
    def tiles(self) -> Columns:
        """A run of a tile a row, by start: tile, operator (an index into `operators`), core,
        start_cycle, end_cycle. Views without a copy."""
        return Columns(self._handle.tiles())

    @cached_property
    def transfers(self) -> Columns:
        """A transfer a row, by start: tensor, operator, kind (0 fetch, 1 stream, 2 write back, 3
        spill), start_cycle, end_cycle, bits that each receiver gets."""
        return Columns(self._handle.transfers())

    @cached_property
    def memory_over_time(self) -> Columns:
        """A change of live memory a row: cycle, and bytes of each owner from then on."""
        return Columns(self._handle.memory_over_time())

    @cached_property
    def operators(self) -> list[str]:
        """Names, as tiles and transfers number them."""
        return self._handle.operators()

    def report(self, folder: File) -> str:
        """Writes result.json, report.html, trace.json and, of a training step, training.onnx.
        Returns the report's path. OSError where it cannot."""
        return self._handle.write_report(os.fspath(folder))

    def __str__(self) -> str:
        return self._handle.table()

    def __repr__(self) -> str:
        return f"Result({self.name!r}: {self.latency_cycles:,} cycles, {self.energy_pj:.4g} pJ)"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def read_network(
    path: File, *, batch: int | None = None, dimensions: Mapping[str, int] | None = None
) -> Network:
    """Reads an ONNX file. `batch` is the value of a symbolic first axis of its inputs, `dimensions`
    those of other symbolic ones. InputError with the node, or the file, that is wrong."""
    return Network(_monet.read_network(os.fspath(path), batch, dict(dimensions or {})))


def read_chip(chip: File | Options) -> Chip:
    """A system or core file (docs/hardware.md), or a system as a dict, whose `cores` may be dicts as
    well as names of core files. InputError with every problem, at its line or key."""
    if not isinstance(chip, Mapping):
        return Chip(_monet.read_chip(os.fspath(chip)))
    cores = {}
    texts = []
    system = dict(chip)
    if isinstance(system.get("cores"), Mapping):
        system["cores"] = dict(system["cores"])
        for number, core in system["cores"].items():
            if isinstance(core, Mapping):
                text = DictText(core, f"core {number}")
                texts.append(text)
                cores[text.name] = text.text
                system["cores"][number] = text.name
    whole = DictText(system, "dict")

    def read() -> _monet.Chip:
        return _monet.parse_chip(whole.text, cores)

    for text in [whole, *texts]:
        read = _traced(text, read)
    return Chip(read())


def _traced(text: DictText, read: Callable[[], _monet.Chip]) -> Callable[[], _monet.Chip]:
    return lambda: read_dict(text, read)


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        told = _monet.InputError(f"{path}: cannot be read: {error.strerror}")
        told.problems = [(path, f"cannot be read: {error.strerror}", "")]
        raise told from None


def _one_of(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(choices)}")


def _within(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError(f"{name}: {value} is not between {least} and {most}")
    return value
