"""Sweeps: a step modelled on a chip for every combination of options."""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import os
import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from monet import _monet, arguments
from monet.calls import File, Inputs
from monet.chips import Chip
from monet.columns import Columns
from monet.figures import Figures
from monet.model import Step, read_network
from monet.progress import Progress, progress_of
from monet.warning import Told, collected, warn

Row = dict[str, Any]

class Sweep:
    """The rows of a sweep in the order in which they finish. Iterate over it, or use `rows` or
    `to_pandas()`, which wait for all rows. A row has the combination's options, `feasible`,
    `reason`, latency_cycles, energy_pj, peak_memory_bytes and the parts of energy. Ctrl-C ends it,
    and the store keeps its rows."""

    def __init__(
        self, step: Step, chip: Chip, axes: Mapping[str, Sequence[Any]], jobs: int, store: str | None, progress: Progress
    ) -> None:
        self._step = step
        self._chip = chip
        self._all = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        self._jobs = jobs or os.cpu_count() or 1
        self._store = store
        self._progress = progress
        self._done: dict[int, Row] | None = None
        self._warnings: deque[Told] = deque()  # found by other threads, not issued yet
        self._warned: set[Told] = set()
        self._chips: dict[tuple[int, str, int | None], Chip | str] = {}  # or why it is invalid
        self._steps: dict[int, Step] = {}

    def __len__(self) -> int:
        """Number of combinations."""
        return len(self._all)

    def __repr__(self) -> str:
        axes = ", ".join(self._all[0]) if self._all else ""
        return f"Sweep({len(self._all)} combinations of {axes}: {'all' if self._done is not None else 'not all'} finished)"

    def __str__(self) -> str:
        """The table of all rows, once all are finished. Printing a sweep does not run it."""
        return repr(self) if self._done is None else str(self.columns())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>" if self._done is None else self.columns()._repr_html_()

    def __iter__(self) -> Iterator[Row]:
        """Rows in the order in which they finish, those of the store first."""
        if self._done is not None:
            yield from self._done.values()
            return
        done: dict[int, Row] = {}
        with progress_of(self._progress) as told:
            for number, row in self._run():
                done[number] = row
                if told is not None:
                    told({"phase": "sweep", "done": len(done), "total": len(self._all), "best": None, "bound": None,
                          "seconds_left": None})  # fmt: skip
                yield row
        self._done = dict(sorted(done.items()))

    @property
    def rows(self) -> list[Row]:
        """All rows, in the order of the combinations."""
        for _ in self:
            pass
        assert self._done is not None
        return list(self._done.values())

    def columns(self) -> Columns:
        return Columns.of_rows(self.rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, in the order of the combinations. Raises ImportError without
        pandas."""
        return self.columns().to_pandas()

    def _run(self) -> Iterator[tuple[int, Row]]:
        stored = _Store(self._store) if self._store else None
        try:
            identity, hardware = self._identity() if stored else "", dict[int, str]()
            keys = [self._key(one, identity, hardware) for one in self._all] if stored else []
            known = stored.rows() if stored else {}
            missing = []
            for number, combination in enumerate(self._all):
                if stored and keys[number] in known:
                    yield number, {**combination, **known[keys[number]]}
                else:
                    missing.append(number)
            for number, figures in self._evaluate(missing):
                if stored:
                    stored.put(keys[number], figures)
                yield number, {**self._all[number], **figures}
        finally:
            if stored:
                stored.close()

    def _evaluate(self, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
        """Models combinations on threads, at most a few ahead of the reader."""
        waiting = iter(numbers)
        running: dict[Future[Row], int] = {}
        pool = ThreadPoolExecutor(self._jobs)
        try:
            for number in itertools.islice(waiting, 2 * self._jobs):
                running[pool.submit(self._model, self._all[number])] = number
            while running:
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    number = running.pop(ended)
                    for following in itertools.islice(waiting, 1):
                        running[pool.submit(self._model, self._all[following])] = following
                    self._warn()
                    yield number, ended.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _warn(self) -> None:
        """Issues the warnings of the rows so far, each once per sweep."""
        new: dict[Told, None] = {}
        while self._warnings:
            new[self._warnings.popleft()] = None
        told = [one for one in new if one not in self._warned]
        self._warned.update(told)
        warn(told)

    def _model(self, combination: Mapping[str, Any]) -> Row:
        with collected() as found:
            try:
                return self._modelled(combination)
            finally:
                self._warnings.extend(found)

    def _modelled(self, combination: Mapping[str, Any]) -> Row:
        options = dict(combination)
        batch = options.pop("batch", None)
        step = self._step if batch is None else self._with_batch(batch)
        chip = options.pop("chip", self._chip)
        places = {name: options.pop(name) for name in list(options) if "." in name or name == "frequency_hz"}
        bandwidth = options.pop("dram_bandwidth_bits", None)
        try:
            if places or bandwidth is not None:
                chip = self._changed(chip, places, bandwidth)
            result = step.schedule(chip, **options)
        except _monet.InfeasibleError as error:
            return {"feasible": False, "reason": str(error), **dict.fromkeys(Figures._fields)}
        figures = {name: getattr(result, name) for name in Figures._fields}
        return {"feasible": True, "reason": "", **figures, **result.energy}

    def _changed(self, chip: Chip, places: Mapping[str, Any], bandwidth: int | None) -> Chip:
        """A chip with changes. Raises InfeasibleError if it is invalid, such as a DRAM with too few
        channels."""
        key = (id(chip), json.dumps(places, default=str), bandwidth)
        if key not in self._chips:
            try:
                self._chips[key] = chip.with_(places, dram_bandwidth_bits=bandwidth)
            except _monet.InputError as error:
                self._chips[key] = str(error)
        made = self._chips[key]
        if isinstance(made, str):
            raise _monet.InfeasibleError(made)
        return made

    def _with_batch(self, batch: int) -> Step:
        if batch not in self._steps:
            network = self._step.network
            self._steps[batch] = self._step._of(read_network(network.path, batch=batch, dimensions=network._dimensions))
        return self._steps[batch]

    def _identity(self) -> str:
        """The identity of the inputs that all rows share: library, network, and options of the
        step."""
        inputs = Inputs()
        values = self._step._values(inputs)
        files = [self._step.network.path, *(value for value in values.values() if isinstance(value, str))]
        return json.dumps([_monet.version, values, inputs.texts, [_digest(file) for file in files]], default=str)

    def _key(self, combination: Mapping[str, Any], identity: str, hardware: dict[int, str]) -> str:
        """The key of a row: a hash of all inputs that determine it."""
        chip = combination.get("chip", self._chip)
        if id(chip) not in hardware:
            hardware[id(chip)] = json.dumps(chip.to_dict(), sort_keys=True, default=str)
        shown = {name: _shown(value) for name, value in combination.items() if name != "chip"}
        text = json.dumps([identity, hardware[id(chip)], shown], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def sweep(
    step: Step,
    chip: Chip,
    *,
    jobs: int = 0,
    store: File | None = None,
    progress: Progress = None,
    **axes: Any,
) -> Sweep:
    """Models the step on the chip for every combination of lists of options:

        monet.sweep(step, chip, batch=[1, 2, 4], mode=["layer-by-layer", "fused"]).to_pandas()

    Axes: options of `Step.schedule()`; `batch`; `chip` (a list of chips); `dram_bandwidth_bits`,
    `frequency_hz`; and, with `**{"cores.0.memories.l2.size": [...]}`, any place of `Chip.with_()`.
    An option that is not a list applies to all combinations. A combination that cannot run has a
    row with the reason. `jobs`: number of threads (0: all cores). `store`: an SQLite file that
    receives every row as soon as it is finished; rows in it are not modelled again."""
    arguments.instance("step", step, Step, "Network.training_step()")
    arguments.instance("chip", chip, Chip, "read_chip()")
    jobs = arguments.whole("jobs", jobs, 0, 4096)
    with progress_of(progress):
        pass
    known = set(Step.schedule.__kwdefaults__ or {}) - {"jobs", "progress"} | {"batch", "chip", "dram_bandwidth_bits",
                                                                            "frequency_hz"}  # fmt: skip
    lists = {}
    for name, values in axes.items():
        if "." not in name and name not in known:
            raise TypeError(f"sweep() has no axis {name!r}; its axes are {', '.join(sorted(known))}")
        lists[name] = list(values) if isinstance(values, list | tuple | range | np.ndarray) else [values]
        if not lists[name]:
            raise ValueError(f"{name}: an axis without values")
        for i, value in enumerate(lists[name]):
            if name in ("batch", "dram_bandwidth_bits"):
                lists[name][i] = arguments.whole(f"{name}[{i}]", value, 1, 2**40)
            elif name == "frequency_hz":
                arguments.real(f"{name}[{i}]", value)
    return Sweep(step, chip, lists, jobs, None if store is None else arguments.path("store", store), progress)


class _Store:
    """Rows by key in an SQLite file. `put()` stores a row permanently."""

    def __init__(self, path: str) -> None:
        try:
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS sweep (key TEXT PRIMARY KEY, figures TEXT NOT NULL)")
        except sqlite3.Error as error:
            raise arguments.input_error(f"store: {path}", str(error)) from None

    def rows(self) -> dict[str, Row]:
        return {key: json.loads(figures) for key, figures in self._file.execute("SELECT key, figures FROM sweep")}

    def put(self, key: str, figures: Row) -> None:
        self._file.execute("INSERT OR REPLACE INTO sweep VALUES (?, ?)", (key, json.dumps(figures)))

    def close(self) -> None:
        self._file.close()


def _shown(value: Any) -> Any:
    """A value for the key of a row. A file, such as a mapping or stacks, counts by its content."""
    return [os.fspath(value), _digest(os.fspath(value))] if isinstance(value, str | os.PathLike) else value


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""
