"""Wrong calls: each ends in an exception that names the argument or the place, and none in a crash."""

from __future__ import annotations

import copy
import enum
import gc
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import monet
import numpy as np
import pytest
from monet import _monet, optimise

from test_package import CHIP, DATA, NETWORK, SMALL, chip_dict, core_dict

ADAM = DATA / "training" / "adam.yaml"
EXAMPLES = DATA.parent / "examples"
NPU = DATA / "hardware" / "npu_small.yaml"
OUR_ERRORS = (monet.InputError, monet.InfeasibleError)


@dataclass
class World:
    """What calls go wrong with."""

    folder: Path
    net: monet.Network
    chip: monet.Chip
    step: monet.InferenceStep
    result: monet.Result
    files: dict[str, Path] = field(default_factory=dict)

    def file(self, name: str, data: bytes | str) -> Path:
        path = self.folder / name
        if not path.exists():
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    net = monet.read_network(NETWORK, batch=2)
    chip = monet.read_chip(CHIP)
    step = net.inference()
    return World(tmp_path_factory.mktemp("wrong"), net, chip, step, step.schedule(chip, mode="layer-by-layer"))


Call = Callable[[World], object]
Case = tuple[Call, "type[Exception] | tuple[type[Exception], ...]", str]
CASES: dict[str, Case] = {}


def add(name: str, call: Call, error: Any, says: str) -> None:
    assert name not in CASES, name
    CASES[name] = (call, error, says)


def add_all(what: str, values: Mapping[str, Any], call: Callable[[World, Any], object], error: Any, says: str) -> None:
    """The same call with many values."""
    for label, value in values.items():
        add(f"{what}: {label}", lambda world, value=value: call(world, value), error, says)


class Text(str):
    pass


class Number(enum.IntEnum):
    TWO = 2


class NoPath:
    def __fspath__(self) -> int:
        return 3  # type: ignore[return-value]


class Raising(Mapping[str, Any]):
    """A mapping that fails while it is read."""

    def __getitem__(self, key: str) -> Any:
        raise LookupError("broken mapping")

    def __iter__(self) -> Iterator[str]:
        return iter(["loss"])

    def __len__(self) -> int:
        return 1


class Endless(Mapping[str, Any]):
    """A mapping that is in itself, another one each time."""

    def __getitem__(self, key: str) -> Any:
        return Endless()

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def cycle() -> dict[str, Any]:
    made: dict[str, Any] = {"type": "adam"}
    made["groups"] = [{"of": made}]
    return made


def loop() -> list[Any]:
    made: list[Any] = ["mse"]
    made.append(made)
    return made


def huge_file(world: World) -> Path:
    """Of nothing, which takes no room."""
    path = world.folder / "huge"
    if not path.exists():
        with open(path, "wb") as file:
            file.truncate(2**36)
    return path


def pipe(world: World) -> Path:
    """Not writable."""
    path = world.folder / "pipe"
    if not path.exists():
        os.mkfifo(path)
    return path


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


def aliases(levels: int) -> str:
    """A document of kilobytes that stands for 9^levels values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


NO_PATHS = {
    "None": None,
    "number": 3,
    "float": 3.5,
    "list": ["a"],
    "object": object(),
    "class": Path,
    "__fspath__ of a number": NoPath(),
}
UNICODE = {"NUL": "a\0b", "surrogate": "\udcff.x", "bytes that are no UTF-8": b"\xff.x", "empty": "", "empty bytes": b""}
NO_NUMBERS = {"text": "2", "float": 2.5, "nan": float("nan"), "list": [2], "true": True, "bytes": b"2", "NumPy's float": np.float64(2),
              "array": np.arange(3), "complex": 2j, "fraction": Fraction(2)}  # fmt: skip

# --- read_network ----------------------------------------------------------------------------

add_all("network path", NO_PATHS, lambda w, v: monet.read_network(v), TypeError, "^path: ")
add_all("network path", UNICODE, lambda w, v: monet.read_network(v), ValueError, "^path: ")
add("network path: missing", lambda w: monet.read_network("nowhere/net.onnx"), monet.InputError, "nowhere/net.onnx")
add("network path: folder", lambda w: monet.read_network(w.folder), monet.InputError, "folder")
add("network path: device", lambda w: monet.read_network("/dev/null"), monet.InputError, "/dev/null")
add("network path: behind a file", lambda w: monet.read_network(f"{NETWORK}/net.onnx"), monet.InputError, "net.onnx")
add("network path: long", lambda w: monet.read_network("n" * 5000), monet.InputError, "nnn")
add("network path: none", lambda w: monet.read_network(), TypeError, "path")  # type: ignore[call-arg]
add("network path: two", lambda w: monet.read_network(NETWORK, 2), TypeError, "positional")  # type: ignore[misc]
add("network: unknown argument", lambda w: monet.read_network(NETWORK, size=2), TypeError, "size")  # type: ignore[call-arg]
for label, data in {
    "empty": b"",
    "text": b"ir_version: 8\n",
    "YAML": ADAM.read_bytes(),
    "JSON": b'{"graph": {}}',
    "zeros": bytes(4096),
    "noise": bytes((i * 197 + i // 7) % 256 for i in range(4096)),
    "endless number": b"\x08" + b"\xff" * 64,
    "length beyond the end": b"\x3a\xff\xff\xff\xff\x07",
    "nested messages": b"\x3a\x7f" * 4000,
    "header alone": NETWORK.read_bytes()[:16],
    "a tenth": NETWORK.read_bytes()[: NETWORK.stat().st_size // 10],
    "half": NETWORK.read_bytes()[: NETWORK.stat().st_size // 2],
    "without its last byte": NETWORK.read_bytes()[:-1],
    "twice": NETWORK.read_bytes() * 2,
}.items():
    add(f"network file: {label}", lambda w, n=label, d=data: monet.read_network(w.file(f"{n}.onnx", d), batch=2),
        monet.InputError, rf"{label}\.onnx")  # fmt: skip
add_all("batch", NO_NUMBERS, lambda w, v: monet.read_network(NETWORK, batch=v), TypeError, "^batch: ")
add_all("batch", {"zero": 0, "negative": -1, "2**63": 2**63, "10**30": 10**30, "10**5000": 10**5000, "least int64": -(2**63)},
        lambda w, v: monet.read_network(NETWORK, batch=v), ValueError, "^batch: ")  # fmt: skip
add("batch: too many elements", lambda w: monet.read_network(NETWORK, batch=2**40), monet.InputError, "elements")
add("batch: of a fixed network", lambda w: monet.read_network(SMALL, batch=3), monet.InputError, "batch of 3")
add("batch: left out", lambda w: monet.read_network(NETWORK), monet.InputError, "batch")
add_all("dimensions", {"number": 3, "text": "batch", "pairs": [("batch", 2)], "set": {"batch"}},
        lambda w, v: monet.read_network(NETWORK, dimensions=v), TypeError, "^dimensions: ")  # fmt: skip
add_all("dimensions, key", {"number": {3: 2}, "bytes": {b"batch": 2}, "None": {None: 2}},
        lambda w, v: monet.read_network(NETWORK, dimensions=v), TypeError, "^dimensions, a name: ")  # fmt: skip
add_all("dimensions, key", {"surrogate": {"\udcff": 2}, "NUL": {"a\0": 2}},
        lambda w, v: monet.read_network(NETWORK, dimensions=v), ValueError, "^dimensions, a name: ")  # fmt: skip
add_all("dimensions, size", {k: {"batch": v} for k, v in NO_NUMBERS.items()},
        lambda w, v: monet.read_network(NETWORK, dimensions=v), TypeError, r"^dimensions\['batch'\]: ")  # fmt: skip
add_all("dimensions, size", {"zero": {"batch": 0}, "negative": {"batch": -3}, "10**30": {"batch": 10**30}},
        lambda w, v: monet.read_network(NETWORK, dimensions=v), ValueError, r"^dimensions\['batch'\]: ")  # fmt: skip
add("dimensions: unknown", lambda w: monet.read_network(NETWORK, batch=2, dimensions={"x": 2}), monet.InputError, "'x'")

# --- read_chip -------------------------------------------------------------------------------

add_all("chip", NO_PATHS, lambda w, v: monet.read_chip(v), TypeError, "^chip: ")
add_all("chip", UNICODE, lambda w, v: monet.read_chip(v), ValueError, "^chip: ")
for label, text in {
    "empty": "",
    "a word": "chip",
    "a list": "[1, 2]",
    "tab": "a:\n\tb: 1\n",
    "unclosed": "{name: [x",
    "deep": "[" * 100_000,
    "deep mappings": "{a: " * 100_000,
    "deep blocks": "".join(" " * i + "a:\n" for i in range(2000)),
    "aliases": aliases(9),
    "alias of itself": "a: &a [*a]\n",
    "unknown alias": "a: *b\n",
    "tag": "!!python/object/apply:os.system [ls]\n",
    "two documents": "name: a\n---\nname: b\n",
    "twice the same key": "name: a\nname: b\n",
    "long line": "name: " + "x" * 100_000,
}.items():
    add(f"chip file: {label}", lambda w, n=label, d=text: monet.read_chip(w.file(f"{n}.yaml", d)), monet.InputError,
        rf"{label}\.yaml")  # fmt: skip
add("chip file: binary", lambda w: monet.read_chip(w.file("binary.yaml", bytes(range(256)))), monet.InputError, "binary")
add("chip file: folder", lambda w: monet.read_chip(w.folder), monet.InputError, "folder")
add("chip file: network", lambda w: monet.read_chip(NETWORK), monet.InputError, "resnet8_16.onnx")


def chip_with(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = chip_dict()
    change(made)
    return made


def set_in(path: tuple[Any, ...], value: Any) -> Callable[[World], monet.Chip]:
    def call(world: World) -> monet.Chip:
        made = here = chip_dict()
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = value
        return monet.read_chip(made)

    return call


SRAM = ("cores", 0, "memories", "sram")
for label, path, value, error, says in [
    ("no cores", ("cores",), {}, monet.InputError, r"dict\['cores'\]"),
    ("cores are a number", ("cores",), 3, monet.InputError, r"dict\['cores'\]"),
    ("cores are a list", ("cores",), [core_dict()], monet.InputError, r"dict\['cores'\]"),
    ("core is a number", ("cores", 0), 3, monet.InputError, "3"),
    ("core is None", ("cores", 0), None, monet.InputError, r"dict\['cores'\]"),
    ("core is a missing file", ("cores", 0), "nowhere.yaml", monet.InputError, "nowhere.yaml"),
    ("core is bytes", ("cores", 0), b"a.yaml", TypeError, r"dict\['cores'\]\[0\]"),
    ("core is in itself", ("cores", 0, "memories"), loop(), ValueError, r"core 0\['memories'\]\[1\]: contains itself"),
    ("core of a number that is text", ("cores", "x"), core_dict(), monet.InputError, "x"),
    ("core of a number that is a surrogate", ("cores", "\udcff"), core_dict(), ValueError, r"dict\['cores'\]"),
    ("core of a number that is None", ("cores", None), core_dict(), TypeError, r"dict\['cores'\]"),
    ("size is negative", (*SRAM, "size"), -1, monet.InputError, r"core 0\['memories'\]\['sram'\]\['size'\]"),
    ("size is NaN", (*SRAM, "size"), float("nan"), monet.InputError, r"\['sram'\]\['size'\]"),
    ("size is infinite", (*SRAM, "size"), float("inf"), monet.InputError, r"\['sram'\]\['size'\]"),
    ("size is 10**30", (*SRAM, "size"), 10**30, monet.InputError, r"\['sram'\]\['size'\]"),
    ("size is 10**5000", (*SRAM, "size"), 10**5000, ValueError, r"\['sram'\]\['size'\]"),
    ("size is text", (*SRAM, "size"), "large", monet.InputError, r"\['sram'\]\['size'\]"),
    ("size is true", (*SRAM, "size"), True, monet.InputError, r"\['sram'\]\['size'\]"),
    ("size is complex", (*SRAM, "size"), 8j, TypeError, r"\['sram'\]\['size'\]"),
    ("energy is NaN", (*SRAM, "r_cost"), float("nan"), monet.InputError, r"\['sram'\]\['r_cost'\]"),
    ("energy is NumPy's infinity", (*SRAM, "r_cost"), np.float32("inf"), monet.InputError, r"\['r_cost'\]"),
    ("energy is 1e308 twice", (*SRAM, "w_cost"), [1e308, 1e308], monet.InputError, r"\['w_cost'\]"),
    ("lanes are zero", ("cores", 0, "operational_array", "sizes"), [0, 8], monet.InputError, r"\['sizes'\]"),
    ("lanes are too many", ("cores", 0, "operational_array", "sizes"), [2**40, 2**40], monet.InputError, "operational_array|sizes"),
    ("lanes are an array of floats", ("cores", 0, "operational_array", "sizes"), np.array([8.5, 8]), monet.InputError, r"\['sizes'\]"),
    ("name is a list", ("name",), ["x"], monet.InputError, r"dict\['name'\]"),
    ("name has a surrogate", ("name",), "\ud800", ValueError, r"dict\['name'\]"),
    ("name has NUL", ("name",), "a\0", ValueError, r"dict\['name'\]"),
    ("off-chip core that does not exist", ("offchip_core_id",), 7, monet.InputError, r"offchip_core_id"),
    ("off-chip core of no file", ("offchip_core",), "nowhere.yaml", monet.InputError, r"dict\['offchip_core'\]"),
    ("off-chip core of a dict", ("offchip_core",), {"name": "x", "colour": 3}, monet.InputError, r"off-chip core\['colour'\]"),
    ("link to a core that does not exist", ("core_connectivity", 0, "cores"), [0, 9], monet.InputError, r"core_connectivity"),
    ("link of no cores", ("core_connectivity", 0, "cores"), [], monet.InputError, r"core_connectivity"),
    ("unknown key", ("colour",), 3, monet.InputError, r"dict\['colour'\]"),
    ("unknown key with a line break", ("a\nb",), 3, monet.InputError, r"dict\['a\\nb'\]"),
]:  # fmt: skip
    add(f"chip dict: {label}", set_in(path, value), error, says)
add("chip dict: empty", lambda w: monet.read_chip({}), monet.InputError, "dict: ")
add("chip dict: key of None", lambda w: monet.read_chip({None: 3}), TypeError, "dict: the key None")  # type: ignore[dict-item]
add("chip dict: broken mapping", lambda w: monet.read_chip(Raising()), LookupError, "broken mapping")
add("chip dict: endless mapping", lambda w: monet.read_chip(Endless()), monet.InputError, "nested deeper than 64")

# --- Network.training_step -------------------------------------------------------------------

add_all("training file", {k: v for k, v in NO_PATHS.items() if k != "None"}, lambda w, v: w.net.training_step(v), TypeError,
        "^options: ")  # fmt: skip
add_all("training file", UNICODE, lambda w, v: w.net.training_step(v), ValueError, "^options: ")
add("training file: missing", lambda w: w.net.training_step("nowhere.yaml"), monet.InputError, "nowhere.yaml")
add("training file: folder", lambda w: w.net.training_step(w.folder), monet.InputError, "is not a file")
add("training file: endless device", lambda w: w.net.training_step("/dev/zero"), monet.InputError, "/dev/zero: is not a file")
add("training file: binary", lambda w: w.net.training_step(w.file("b.yaml", bytes(range(256)))), monet.InputError, "byte 128")
add("training file: of 64 GiB", lambda w: w.net.training_step(huge_file(w)), monet.InputError, "larger than 16777216 bytes")
add("chip file: of 64 GiB", lambda w: monet.read_chip(huge_file(w)), monet.InputError, "larger than 16.0 MiB")
add("network file: of 64 GiB", lambda w: monet.read_network(huge_file(w)), monet.InputError, "larger than 2.00 GiB")
add("training file: a pipe", lambda w: w.net.training_step(pipe(w)), monet.InputError, "is not a file")
add("chip file: a pipe", lambda w: monet.read_chip(pipe(w)), monet.InputError, "pipe")
add("network file: a pipe", lambda w: monet.read_network(pipe(w)), monet.InputError, "pipe")
add("training file: control characters", lambda w: w.net.training_step(w.file("c.yaml", b"\1\2")), monet.InputError, "c.yaml:1")
add("training file: network", lambda w: w.net.training_step(NETWORK), monet.InputError, "resnet8_16.onnx")
add("training file: deep", lambda w: w.net.training_step(w.file("d.yaml", "[" * 100_000)), monet.InputError, "d.yaml:1")
add("training file: aliases", lambda w: w.net.training_step(w.file("e.yaml", aliases(9))), monet.InputError, "e.yaml:7")
add("training file: with more", lambda w: w.net.training_step(ADAM, loss="mse"), TypeError, "leave out loss")
add("training file: of a chip", lambda w: w.net.training_step(CHIP), monet.InputError, "edge_tpu.yaml:")
for label, options, error, says in [
    ("unknown key", {"los": "mse"}, monet.InputError, r"training\['los'\]"),
    ("key of a number", {3: "mse"}, monet.InputError, r"training\[3\]"),
    ("key of None", {None: "mse"}, TypeError, "training: the key None"),
    ("key of true", {True: "mse"}, TypeError, "training: the key True"),
    ("key of bytes", {b"loss": "mse"}, TypeError, "training: the key b'loss'"),
    ("key of a tuple", {("loss", 1): "mse"}, TypeError, "training: the key"),
    ("key with a surrogate", {"\ud800": "mse"}, ValueError, r"training\['\\ud800'\]"),
    ("key with NUL", {"loss\0": "mse"}, ValueError, r"training\['loss\\x00'\]"),
    ("key of both kinds", {1: "a", "1": "b"}, monet.InputError, "'1' is given twice|unknown key"),
    ("key of 100,000 letters", {"x" * 100_000: 1}, monet.InputError, "xxx"),
    ("value of bytes", {"loss": b"mse"}, TypeError, r"training\['loss'\]: bytes"),
    ("value of a bytearray", {"loss": bytearray(b"mse")}, TypeError, r"training\['loss'\]: bytearray"),
    ("value of a view of memory", {"loss": memoryview(b"mse")}, TypeError, r"training\['loss'\]: memoryview"),
    ("value of a set", {"detach": {"a", "b"}}, TypeError, r"training\['detach'\]: set"),
    ("value of a generator", {"detach": (x for x in "ab")}, TypeError, r"training\['detach'\]: generator"),
    ("value of a function", {"loss": len}, TypeError, r"training\['loss'\]: builtin"),
    ("value of a class", {"loss": dict}, TypeError, r"training\['loss'\]: type"),
    ("value of a module", {"loss": json}, TypeError, r"training\['loss'\]: module"),
    ("value of a decimal", {"ema": Decimal("0.9")}, TypeError, r"training\['ema'\]: Decimal"),
    ("value of a fraction", {"ema": Fraction(9, 10)}, TypeError, r"training\['ema'\]: Fraction"),
    ("value of a complex number", {"ema": 0.9j}, TypeError, r"training\['ema'\]: complex"),
    ("value of a date", {"ema": np.datetime64("2020-01-01")}, TypeError, r"training\['ema'\]"),
    ("value of NumPy's bytes", {"loss": np.bytes_(b"mse")}, TypeError, r"training\['loss'\]: bytes"),
    ("value that is deeper", {"optimizer": {"groups": [{"x": {1}}]}}, TypeError, r"\['optimizer'\]\['groups'\]\[0\]\['x'\]: set"),
    ("text with a surrogate", {"loss": "\udcff"}, ValueError, r"training\['loss'\]"),
    ("text with NUL", {"loss": "a\0b"}, ValueError, r"training\['loss'\]"),
    ("text of other planes", {"loss": "\U0001f600"}, monet.InputError, "\U0001f600"),
    ("text of line breaks", {"loss": "a\n\r\u2028\x85b"}, monet.InputError, r"training\['loss'\]"),
    ("text of quotes", {"loss": "\"'\\#: {}[]"}, monet.InputError, r"training\['loss'\]"),
    ("dict in itself", {"optimizer": cycle()}, ValueError, r"training\['optimizer'\]\['groups'\]\[0\]\['of'\]: contains itself"),
    ("list in itself", {"loss": loop()}, ValueError, r"training\['loss'\]\[1\]: contains itself"),
    ("100 levels", {"loss": nested(100)}, monet.InputError, "nested deeper than 64 levels"),
    ("100,000 levels", {"loss": nested(100_000)}, monet.InputError, "nested deeper than 64 levels"),
    ("endless mapping", Endless(), monet.InputError, "nested deeper than 64 levels"),
    ("broken mapping", Raising(), LookupError, "broken mapping"),
    ("NaN", {"optimizer": {"type": "adam", "learning_rate": float("nan")}}, monet.InputError, r"\['learning_rate'\]"),
    ("infinity", {"optimizer": {"type": "adam", "learning_rate": float("inf")}}, monet.InputError, r"\['learning_rate'\]"),
    ("minus infinity", {"clip_value": -np.inf}, monet.InputError, r"\['clip_value'\]"),
    ("NumPy's NaN", {"clip_value": np.float16("nan")}, monet.InputError, r"\['clip_value'\]"),
    ("negative rate", {"optimizer": {"type": "adam", "learning_rate": -1e-3}}, monet.InputError, "'learning_rate' is -0.001"),
    ("rate of text", {"optimizer": {"type": "adam", "learning_rate": "fast"}}, monet.InputError, r"\['learning_rate'\]"),
    ("rate of a list", {"optimizer": {"type": "adam", "learning_rate": [1]}}, monet.InputError, r"\['learning_rate'\]"),
    ("loss of a number", {"loss": 3}, monet.InputError, r"training\['loss'\]"),
    ("loss of None", {"loss": None}, monet.InputError, r"training\['loss'\]"),
    ("losses: an empty list", {"loss": []}, monet.InputError, r"training\['loss'\]"),
    ("optimizer of a list", {"optimizer": ["adam"]}, monet.InputError, r"training\['optimizer'\]"),
    ("precision of a number", {"precision": 16}, monet.InputError, r"training\['precision'\]"),
    ("precision of an unknown role", {"precision": {"weight": "bf16"}}, monet.InputError, r"\['precision'\]\['weight'\]"),
    ("precision of an unknown type", {"precision": {"weights": "fp17"}}, monet.InputError, r"\['precision'\]\['weights'\]"),
    ("no micro-batches", {"micro_batches": 0}, monet.InputError, r"\['micro_batches'\]"),
    ("half a micro-batch", {"micro_batches": 0.5}, monet.InputError, r"\['micro_batches'\]"),
    ("10**30 micro-batches", {"micro_batches": 10**30}, monet.InputError, r"\['micro_batches'\]"),
    ("10**5000 micro-batches", {"micro_batches": 10**5000}, ValueError, r"\['micro_batches'\]"),
    ("-(2**63) micro-batches", {"micro_batches": -(2**63)}, monet.InputError, r"\['micro_batches'\]"),
    ("micro-batches that are true", {"micro_batches": True}, monet.InputError, r"\['micro_batches'\]"),
    ("norm of zero", {"clip_global_norm": 0}, monet.InputError, r"\['clip_global_norm'\]"),
    ("average of 2", {"ema": 2}, monet.InputError, r"\['ema'\]"),
    ("radius below zero", {"sam": -1}, monet.InputError, r"\['sam'\]"),
    ("scale of text", {"loss_scale": "large"}, monet.InputError, r"\['loss_scale'\]"),
    ("unknown policy", {"store": "everything"}, monet.InputError, r"\['store'\]"),
    ("patterns of numbers", {"trainable": {"freeze": [3.5, {}]}}, monet.InputError, r"\['freeze'\]"),
    ("rank of zero", {"trainable": {"lora": {"rank": 0}}}, monet.InputError, "'rank' is 0"),
    ("attention", {"attention": "flash"}, monet.InputError, r"\['attention'\]"),
]:  # fmt: skip
    add(f"training dict: {label}", lambda w, o=options: w.net.training_step(o), error, says)
add("training: keywords that are no text", lambda w: w.net.training_step(**{3: "mse"}), TypeError, "keywords")  # type: ignore[misc]
add("training: no network", lambda w: monet.Network.training_step(w.chip, loss="mse"), TypeError, "Network")  # type: ignore[arg-type]
add("training: frozen parameter that does not exist", lambda w: w.net.training_step(trainable={"freeze": ["zzz"]}).schedule(w.chip),
    monet.InputError, "zzz")  # fmt: skip
add("training: loss of another output", lambda w: w.net.training_step(loss=[{"type": "mse", "output": "zzz"}]).schedule(w.chip),
    monet.InputError, "zzz")  # fmt: skip

# --- Network.inference -----------------------------------------------------------------------

add_all("precision", {"number": 8, "float": 8.0, "bytes": b"int8", "list": ["int8"], "set": {"int8"}, "object": object(), "true": True},
        lambda w, v: w.net.inference(v), TypeError, "^precision: ")  # fmt: skip
add_all("precision", {"empty": "", "word": "fp17", "number in text": "8", "line break": "int8\n", "no role": {"weight": "int8"},
                      "key of a number": {1: "int8"}, "type of a number": {"weights": 8}, "list of types": {"weights": ["int8"]}, "nested": {"weights": nested(100)},
                      "blocks": {"weights": "mxint8_0x0"}, "wide": {"weights": "e40m40"}, "long": "e5m" + "9" * 1000},
        lambda w, v: w.net.inference(v), monet.InputError, "precision")  # fmt: skip
add_all("precision", {"surrogate": "\udcff", "NUL": "int8\0", "in itself": cycle()}, lambda w, v: w.net.inference(v), ValueError,
        "^precision")  # fmt: skip
add("precision: key of None", lambda w: w.net.inference({None: "int8"}), TypeError, "^precision: the key")  # type: ignore[dict-item]
add("precision: no network", lambda w: monet.Network.inference(w.chip), TypeError, "Network")  # type: ignore[arg-type]

# --- schedule --------------------------------------------------------------------------------

add_all("schedule, chip", {"None": None, "file": str(CHIP), "dict": {}, "class": monet.Chip},
        lambda w, v: w.step.schedule(v), TypeError, "^chip: ")  # fmt: skip
add("schedule, chip: network", lambda w: w.step.schedule(w.net), TypeError, "chip: Network is not an instance of Chip")  # type: ignore[arg-type]
add("schedule, chip: step", lambda w: w.step.schedule(w.step), TypeError, "chip: InferenceStep is not an instance of Chip")  # type: ignore[arg-type]
add("schedule, chip: result", lambda w: w.step.schedule(w.result), TypeError, "chip: Result is not an instance of Chip")  # type: ignore[arg-type]
add("schedule, chip: handle", lambda w: w.step.schedule(w.chip._handle), TypeError, "chip: Chip is no")  # type: ignore[arg-type]
add("schedule, chip: none", lambda w: w.step.schedule(), TypeError, "chip")  # type: ignore[call-arg]
add("schedule, step: network", lambda w: monet.TrainingStep.schedule(w.net, w.chip), TypeError, "^step: ")  # type: ignore[arg-type]
add("schedule, step: chip", lambda w: monet.InferenceStep.schedule(w.chip, w.step), TypeError, "^step: ")  # type: ignore[arg-type]
add("schedule: a network has none", lambda w: w.net.schedule(w.chip), AttributeError, "schedule")  # type: ignore[attr-defined]
add("schedule: by place", lambda w: w.step.schedule(w.chip, "fused"), TypeError, "positional")  # type: ignore[misc]
add("schedule: unknown argument", lambda w: w.step.schedule(w.chip, modus="fused"), TypeError, "modus")  # type: ignore[call-arg]
for name in ("mode", "halo", "priority", "objective"):
    add_all(f"schedule, {name}", {"None": None, "number": 3, "list": ["auto"], "bytes": b"auto", "array": np.array(["auto"])},
            lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), TypeError, f"^{name}: ")  # fmt: skip
    add_all(f"schedule, {name}", {"empty": "", "word": "fast", "capitals": "AUTO", "surrogate": "\udcff", "NUL": "auto\0"},
            lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), ValueError, f"^{name}: ")  # fmt: skip
for name, what in (("mapping", "mapping"), ("stacks", "stacks")):
    add_all(f"schedule, {name}", {k: v for k, v in NO_PATHS.items() if k not in ("None", "list")},
            lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), TypeError, f"^{name}: ")  # fmt: skip
    add_all(f"schedule, {name}", UNICODE, lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), ValueError, f"^{name}: ")
    for label, text in {"missing": None, "empty": "", "chip": CHIP.read_text(), "deep": "[" * 100_000, "numbers": "- 3\n- 4\n"}.items():
        def wrong_file(w: World, name: str = name, label: str = label, text: str | None = text) -> object:
            path = w.folder / "nowhere.yaml" if text is None else w.file(f"{name} {label}.yaml", text)
            return w.step.schedule(w.chip, mode="fused", **{name: path})

        add(f"schedule, {name} file: {label}", wrong_file, monet.InputError, r"\.yaml")
    add(f"schedule, {name} file: folder", lambda w, name=name: w.step.schedule(w.chip, mode="fused", **{name: w.folder}),
        monet.InputError, "folder")  # fmt: skip
add_all("schedule, stream_like", {"text": "links", "number": 3, "None": None, "of numbers": [3], "of None": [None], "bytes": b"links"},
        lambda w, v: w.step.schedule(w.chip, stream_like=v), TypeError, "^stream_like: ")  # fmt: skip
add_all("schedule, stream_like", {"word": ["lins"], "empty word": [""]}, lambda w, v: w.step.schedule(w.chip, stream_like=v),
        ValueError, "^stream_like: ")  # fmt: skip
for name, most in (("jobs", 4097), ("lpf_limit", 65)):
    add_all(f"schedule, {name}", NO_NUMBERS | {"None": None}, lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), TypeError,
            f"^{name}: ")  # fmt: skip
    add_all(f"schedule, {name}", {"negative": -1, "too many": most, "10**30": 10**30, "-(10**5000)": -(10**5000)},
            lambda w, v, name=name: w.step.schedule(w.chip, **{name: v}), ValueError, f"^{name}: ")  # fmt: skip
add_all("schedule, verify", {"None": None, "text": "yes", "number": 1, "list": []}, lambda w, v: w.step.schedule(w.chip, verify=v),
        TypeError, "^verify: ")  # fmt: skip
add_all("schedule, progress", {"number": 3, "text": "print", "list": [print]},
        lambda w, v: w.step.schedule(w.chip, progress=v), TypeError, "^progress: ")  # fmt: skip
add("schedule, progress: of two arguments", lambda w: w.step.schedule(w.chip, mode="layer-by-layer", progress=lambda a, b: None),
    TypeError, "argument")  # fmt: skip
add("schedule, progress: of none", lambda w: w.step.schedule(w.chip, mode="layer-by-layer", progress=lambda: None), TypeError, "argument")


def raising(error: BaseException) -> Callable[[str], object]:
    def progress(stage: str) -> object:
        raise error

    return progress


for error in (RuntimeError("enough"), MemoryError("enough"), StopIteration("enough"), monet.InputError("enough"), OSError("enough")):
    add(f"schedule, progress: raises {type(error).__name__}",
        lambda w, e=error: w.step.schedule(w.chip, mode="layer-by-layer", progress=raising(e)), type(error), "enough")  # fmt: skip


def tiny_chip(world: World) -> monet.Chip:
    made = chip_dict()
    made["cores"][0]["memories"]["sram"]["size"] = 16
    return monet.read_chip(made)


add("schedule: does not fit", lambda w: w.net.inference().schedule(tiny_chip(w), mode="layer-by-layer"), monet.InfeasibleError, "bits")

# --- Result ----------------------------------------------------------------------------------

add_all("report", NO_PATHS, lambda w, v: w.result.report(v), TypeError, "^folder: ")
add_all("report", UNICODE, lambda w, v: w.result.report(v), ValueError, "^folder: ")
add("report: a file", lambda w: w.result.report(w.file("taken", "x")), OSError, "taken")
add("report: below a file", lambda w: w.result.report(w.file("taken", "x") / "out"), OSError, "taken/out")
add("report: below a device", lambda w: w.result.report("/dev/null/out"), OSError, "/dev/null/out")
add("report: long", lambda w: w.result.report(w.folder / ("n" * 300)), OSError, "nnn")
add("report: no file system of files", lambda w: w.result.report("/proc/out"), OSError, "/proc/out")
add_all("columns, key", {"word": "cycles", "empty": ""}, lambda w, v: w.result.tiles[v], KeyError, "")
add_all("columns, key", {"number": 0, "None": None}, lambda w, v: w.result.tiles[v], KeyError, "")
add("columns, key: list", lambda w: w.result.tiles[["tile"]], TypeError, "unhashable")  # type: ignore[index]
for name in ("tiles", "transfers", "memory_over_time"):
    first = {"tiles": "start_cycle", "transfers": "start_cycle", "memory_over_time": "cycle"}[name]

    def write(w: World, name: str = name, first: str = first) -> None:
        getattr(w.result, name)[first][0] = 1

    def unlock(w: World, name: str = name, first: str = first) -> None:
        getattr(w.result, name)[first].flags.writeable = True

    def resize(w: World, name: str = name, first: str = first) -> None:
        getattr(w.result, name)[first].resize(10**6)

    def beyond(w: World, name: str = name, first: str = first) -> object:
        return getattr(w.result, name)[first][10**12]

    add(f"{name}: written", write, ValueError, "read-only")
    add(f"{name}: made writeable", unlock, ValueError, "WRITEABLE")
    add(f"{name}: resized", resize, ValueError, "resize")
    add(f"{name}: beyond the end", beyond, IndexError, "out of bounds")
    add(f"{name}: another column", lambda w, name=name: getattr(w.result, name).__setitem__("x", 1), AttributeError, "__setitem__")
add("columns: of a number", lambda w: monet.Columns(3), TypeError, "columns")  # type: ignore[arg-type]
add("columns: of lists", lambda w: monet.Columns({"a": [1, 2]}), TypeError, "columns")  # type: ignore[dict-item]
add("front: of nothing", lambda w: monet.Columns({"a": np.zeros(2)}).front(), ValueError, "minimise")
add("front: of a name", lambda w: monet.Columns({"a": np.zeros(2)}).front(minimise="a"), TypeError, "minimise")
add("front: of no column", lambda w: monet.Columns({"a": np.zeros(2)}).front(maximise=["b"]), ValueError, "no column 'b'; there are a")
add("front: of a number", lambda w: monet.Columns({"a": np.zeros(2)}).front(maximise=[3]), ValueError, "no column 3")  # type: ignore[list-item]
add("front: of text", lambda w: monet.Columns({"a": np.array(["x"], dtype=object)}).front(minimise=["a"]), ValueError, "no numbers")
add("front: of rows of rows", lambda w: monet.Columns({"a": np.zeros((2, 2))}).front(minimise=["a"]), ValueError, "no numbers")
add("columns: of unequal length", lambda w: monet.Columns({"a": np.zeros(2), "b": np.zeros(3)}), ValueError, "columns")
for name in ("latency_cycles", "energy_pj", "energy", "macs", "name", "peak_memory_bytes"):
    add(f"{name}: assigned", lambda w, name=name: setattr(w.result, name, 3), AttributeError, name)
for kind in ("net", "chip"):
    add(f"{kind}.name: assigned", lambda w, kind=kind: setattr(getattr(w, kind), "path" if kind == "net" else "name", "x"),
        AttributeError, "path|name")  # fmt: skip

# --- Objects made by hand, copied, kept ------------------------------------------------------

HANDLES = ("Network", "Step", "Chip", "Result", "Execution", "Space")
for kind in HANDLES:
    add(f"extension: {kind}()", lambda w, kind=kind: getattr(_monet, kind)(), TypeError, f"{kind} is made by functions")
    add(f"extension: {kind}.__new__", lambda w, kind=kind: getattr(_monet, kind).__new__(getattr(_monet, kind)), TypeError,
        "made by functions")  # fmt: skip
    add(f"extension: object.__new__({kind})", lambda w, kind=kind: object.__new__(getattr(_monet, kind)), TypeError, "not safe")
    add(f"extension: subclass of {kind}", lambda w, kind=kind: type("Mine", (getattr(_monet, kind),), {})(), TypeError, "Mine is made by")
for kind, more in {"Network": (None, {}), "Chip": (None,), "Result": (), "Execution": (), "Space": ("",)}.items():
    add_all(f"{kind}", {"None": None, "text": "x", "its class": getattr(_monet, kind)},
            lambda w, v, kind=kind, more=more: getattr(monet, kind)(v, *more), TypeError, f"^handle: .* is not an instance of {kind}")  # fmt: skip
    add(f"{kind}: without handle", lambda w, kind=kind: getattr(monet, kind)(), TypeError, "handle")
add("TrainingStep: of a network", lambda w: monet.TrainingStep(w.net._handle, w.net, ""), TypeError, "^handle: Network")  # type: ignore[arg-type]
add("InferenceStep: of nothing", lambda w: monet.InferenceStep(None, w.net, ""), TypeError, "^handle: None")  # type: ignore[arg-type]
for kind in ("Network", "Chip", "Result", "TrainingStep"):
    add(f"{kind}.__new__: has nothing", lambda w, kind=kind: repr(getattr(monet, kind).__new__(getattr(monet, kind))), AttributeError,
        "_handle|network")  # fmt: skip
add("result: pickle cut short", lambda w: pickle.loads(pickle.dumps(w.result)[:-9]), Exception, "truncated|EOF|pickle|range")
add("result: a copy's row written", lambda w: copy.deepcopy(w.result).tiles["core"].__setitem__("x", 1), IndexError, "indices")
for attribute in ("net", "chip", "step", "result"):
    add(f"{attribute}: handle pickled", lambda w, a=attribute: pickle.dumps(getattr(w, a)._handle), TypeError, "pickle")
add("extension: schedule(net)", lambda w: _monet.schedule(w.net._handle, w.chip._handle, _monet.ScheduleArguments(), None), TypeError,
    "schedule")  # type: ignore[arg-type]  # fmt: skip
add("extension: schedule(None)", lambda w: _monet.schedule(None, None, None, None), TypeError, "schedule")  # type: ignore[arg-type]
add("extension: method of another", lambda w: _monet.Result.json(w.net._handle), TypeError, "json")  # type: ignore[arg-type]
add("extension: method of a class", lambda w: _monet.Result.tiles(_monet.Result), (TypeError, RuntimeError), "")  # type: ignore[arg-type]


# --- Execution, spaces, sweeps, commands -----------------------------------------------------

SPACE = DATA / "spaces" / "edge.yaml"
CLUSTER = EXAMPLES / "cluster" / "gpt3_175b.yaml"


def training(w: World) -> monet.TrainingStep:
    return w.net.training_step(ADAM)


def strategy_of(ask: Callable[[], Any], tell: Callable[[Any], object] = lambda designs: None) -> Any:
    return types.SimpleNamespace(ask=ask, tell=tell)


def asks(value: Any) -> Any:
    return strategy_of(lambda: value)


def explore(w: World, **more: Any) -> object:
    """Of a space whose designs take no time."""
    text = (EXAMPLES / "spaces" / "small_edge.yaml").read_text().replace("../../data", str(DATA))
    text = text.replace("resnet18_cifar.onnx, batch: 4", "resnet8_16.onnx, batch: 1").replace("mode: auto", "mode: layer-by-layer")
    text = text.replace("runs: [inference, training]", "runs: [inference]")
    text = "\n".join(line for line in text.splitlines() if "{run: training" not in line)
    return monet.explore(w.file("space.yaml", text), jobs=1, **{"strategy": "random", "budget": 2, **more})


def plots(w: World) -> Any:
    pytest.importorskip("matplotlib")
    return w.result.plot


def fail(*_: object) -> Any:
    raise ZeroDivisionError("enough")


for label, call, error, says in [
    ("execute: unknown tensor", lambda w: training(w).execute({"zzz": np.zeros(3)}), monet.InputError, "tensor 'zzz'"),
    ("execute: other shape", lambda w: training(w).execute({"input": np.zeros((2, 3))}), monet.InputError, r"numbers\['input'\]"),
    ("execute: scalar", lambda w: training(w).execute({"input": 3}), monet.InputError, r"numbers\['input'\]"),
    ("execute: text", lambda w: training(w).execute({"input": np.array(["a"])}), TypeError, r"^numbers\['input'\]"),
    ("execute: complex", lambda w: training(w).execute({"input": np.zeros((2, 3, 16, 16), complex)}), TypeError, r"^numbers\['input'\]"),
    ("execute: ragged", lambda w: training(w).execute({"input": [[1], [2, 3]]}), TypeError, r"^numbers\['input'\]"),
    ("execute: labels beyond the classes", lambda w: training(w).execute({"labels": [0, 10]}), monet.InputError, "label 10 is not one of 10"),
    ("execute: labels below zero", lambda w: training(w).execute({"labels": [-200, 1]}), monet.InputError, "label -200 is not one of 10"),
    ("execute: labels between", lambda w: training(w).execute({"labels": [0.5, 1]}), monet.InputError, "labels"),
    ("execute: labels that are NaN", lambda w: training(w).execute({"labels": [np.nan, 1]}), monet.InputError, "labels"),
    ("execute: labels of 2**60", lambda w: training(w).execute({"labels": [2.0**60, 1]}), monet.InputError, "whole numbers"),
    ("execute: list of arrays", lambda w: training(w).execute([np.zeros(3)]), TypeError, "^numbers: list"),
    ("execute: of a network", lambda w: monet.Step.execute(w.net), TypeError, "^step: Network"),
    ("execute: no steps", lambda w: training(w).execute(steps=0), ValueError, "^steps: 0"),
    ("execute: negative seed", lambda w: training(w).execute(seed=-1), ValueError, "^seed: -1"),
    ("execute: no memory", lambda w: training(w).execute(memory_limit="1000"), monet.InfeasibleError, "1,000 bytes"),
    ("execute: memory of a word", lambda w: training(w).execute(memory_limit="much"), ValueError, "memory_limit"),
    ("execute: tensor that does not exist", lambda w: training(w).execute()["zzz"], KeyError, "zzz"),
    ("execute: tensor that is not kept", lambda w: training(w).execute()["/conv1/Conv_output_0"], KeyError, "keep_all"),
    ("execute: gradient of no parameter", lambda w: training(w).execute().gradients["zzz"], KeyError, "zzz"),
    ("execute: loss of inference", lambda w: w.step.execute().loss, AttributeError, "loss"),
    ("space: unknown key", lambda w: monet.read_space({"colour": 3}), monet.InputError, r"space\['colour'\]"),
    ("space: a chip", lambda w: monet.read_space(CHIP), monet.InputError, "edge_tpu.yaml"),
    ("space: design beyond it", lambda w: monet.read_space(SPACE).values(10**9), IndexError, "1000000000"),
    ("space: design below zero", lambda w: monet.read_space(SPACE).values(-1), IndexError, "-1"),
    ("space: design of text", lambda w: monet.read_space(SPACE).values("x"), TypeError, "design"),
    ("space: chip beyond it", lambda w: monet.read_space(SPACE).chip(2**63), IndexError, ""),
    ("space: choices beyond it", lambda w: monet.read_space(SPACE).id_of([10**6] * 6), IndexError, ""),
    ("space: choices too few", lambda w: monet.read_space(SPACE).id_of([]), ValueError, "^choices: 0 numbers"),
    ("space: choices of text", lambda w: monet.read_space(SPACE).id_of(["x"]), TypeError, r"^choices\[0\]: str"),
    ("explore: unknown strategy", lambda w: explore(w, strategy="luck"), ValueError, "strategy"),
    ("explore: strategy without ask", lambda w: explore(w, strategy=types.SimpleNamespace(tell=print)), TypeError, r"ask\(\)"),
    ("explore: strategy without tell", lambda w: explore(w, strategy=types.SimpleNamespace(ask=list)), TypeError, r"tell\(\)"),
    ("explore: ask fails", lambda w: explore(w, strategy=strategy_of(fail), budget=0), ZeroDivisionError, "enough"),
    ("explore: tell fails", lambda w: explore(w, strategy=strategy_of(lambda: [17], fail), budget=0), ZeroDivisionError, "enough"),
    ("explore: asks for text", lambda w: explore(w, strategy=asks("x"), budget=0), (TypeError, ValueError), ""),
    ("explore: asks for nothing iterable", lambda w: explore(w, strategy=asks(3), budget=0), TypeError, "iterable"),
    ("explore: asks beyond the space", lambda w: explore(w, strategy=asks([10**12]), budget=0), (ValueError, IndexError), "1000000000000"),
    ("explore: asks below zero", lambda w: explore(w, strategy=asks([-1]), budget=0), (ValueError, IndexError, TypeError), ""),
    ("explore: asks for 2**70", lambda w: explore(w, strategy=asks([2**70]), budget=0), (ValueError, IndexError, TypeError), ""),
    ("explore: constraint fails", lambda w: explore(w, constraint=fail), ZeroDivisionError, "enough"),
    ("explore: constraint of two arguments", lambda w: explore(w, constraint=lambda a, b: True), TypeError, "argument"),
    ("explore: figure fails", lambda w: explore(w, figures={"x": fail}), ZeroDivisionError, "enough"),
    ("explore: figure that is NaN", lambda w: explore(w, figures={"x": lambda design: float("nan")}), ValueError, r"figures\['x'\]"),
    ("explore: figure of text", lambda w: explore(w, figures={"x": lambda design: "much"}), ValueError, ""),
    ("explore: figure of no function", lambda w: explore(w, figures={"x": 3}), TypeError, r"^figures\['x'\]: int"),
    ("explore: store that does not exist", lambda w: explore(w, store=w.file("no store", "x" * 1000)), (OSError, monet.InputError), "not a store"),
    ("explore: store that is a folder", lambda w: explore(w, store=w.folder), (OSError, monet.InputError, ValueError), ""),
    ("read_store: missing", lambda w: monet.read_store("nowhere.db"), (monet.InputError, OSError), "nowhere.db"),
    ("read_store: no store", lambda w: monet.read_store(CHIP), (monet.InputError, OSError), "edge_tpu.yaml"),
    ("compare_explorations: missing", lambda w: monet.compare_explorations("x.json", "y.json"), (monet.InputError, OSError), "x.json"),
    ("sweep: unknown axis", lambda w: monet.sweep(w.step, w.chip, colour=[1]), TypeError, "colour"),
    ("sweep: empty axis", lambda w: monet.sweep(w.step, w.chip, mode=[]), ValueError, "^mode: "),
    ("sweep: unknown mode", lambda w: monet.sweep(w.step, w.chip, mode=["fast"], jobs=1).rows, ValueError, "^mode: "),
    ("sweep: unknown place", lambda w: monet.sweep(w.step, w.chip, **{"cores.99.x": [1]}, jobs=1).rows, KeyError, "cores.99"),
    ("sweep: batch of zero", lambda w: monet.sweep(w.step, w.chip, batch=[1, 0]), ValueError, r"^batch\[1\]: 0"),
    ("sweep: no step", lambda w: monet.sweep(w.net, w.chip), TypeError, "^step: "),
    ("sweep: no chip", lambda w: monet.sweep(w.step, w.net), TypeError, "^chip: "),
    ("sweep: store that does not exist", lambda w: monet.sweep(w.step, w.chip, store=w.file("no store", "x" * 1000)).rows, monet.InputError, "not a database"),
    ("with_: unknown place", lambda w: w.chip.with_({"cores.0.nothing.size": 3}), KeyError, "cores.0.nothing"),
    ("with_: unknown key", lambda w: w.chip.with_(colour=3), monet.InputError, "colour"),
    ("with_: list index beyond", lambda w: w.chip.with_({"core_connectivity.999.bandwidth": 3}), KeyError, "999"),
    ("with_: no bandwidth", lambda w: w.chip.with_(dram_bandwidth_bits=0), ValueError, "^dram_bandwidth_bits: 0"),
    ("costs: of no function", lambda w: monet.read_chip(CHIP, memory_costs=3), TypeError, "^memory_costs: int"),
    ("costs: that fail", lambda w: monet.read_chip(CHIP, array_costs=fail), ZeroDivisionError, "enough"),
    ("costs: of no mapping", lambda w: monet.read_chip(CHIP, memory_costs=lambda *_: 3), TypeError, r"^memory_costs\(.*: int"),
    ("costs: that are NaN", lambda w: monet.read_chip(CHIP, memory_costs=lambda *_: {"area": float("nan")}), ValueError, "not finite"),
    ("costs: of an unknown figure", lambda w: monet.read_chip(CHIP, memory_costs=lambda *_: {"colour": 3}), monet.InputError, "colour"),
    ("costs: of a core that does not exist", lambda w: monet.read_chip({"cores": {0: 3}}, memory_costs=fail), monet.InputError, "dict"),
    ("costs: of memories that do not exist", lambda w: monet.read_chip({"cores": {0: {"memories": 3}}}, array_costs=fail), monet.InputError, "dict|core 0"),
    ("costs: of a dict in itself", lambda w: monet.read_chip(cycle(), memory_costs=fail), ValueError, "contains itself"),
    ("plot: by what", lambda w: plots(w).energy(by="colour"), ValueError, "^by: 'colour'"),
    ("plot: by a number", lambda w: plots(w).energy(by=3), TypeError, "^by: int"),
    ("plot: lanes below zero", lambda w: plots(w).timeline(lanes=-1), ValueError, "^lanes: -1"),
    ("plot: lanes of text", lambda w: plots(w).timeline(lanes="6"), TypeError, "^lanes: str"),
    ("plot: into a number", lambda w: plots(w).memory(3), TypeError, "^ax: int"),
    ("plot: into a figure", lambda w: plots(w).roofline(w.chip), TypeError, "^ax: Chip"),
    ("extension: method of None", lambda w: _monet.Space.values(None, 3), TypeError, "values"),
    ("extension: Arrow of a number", lambda w: _monet.arrow_array(3, 4), TypeError, "arrow_array"),
    ("optimiser: by place", lambda w: monet.Adam(0.1), TypeError, "positional"),
    ("optimiser: twice", lambda w: monet.SGD(lr=1, learning_rate=2), TypeError, "learning_rate"),
    ("optimiser: of a type", lambda w: monet.AdamW(type="sgd"), TypeError, "type"),
    ("optimiser: unknown setting", lambda w: w.net.training_step(optimizer=monet.Lion(lrr=1)), monet.InputError, r"\['optimizer'\]\['lrr'\]"),
    ("optimiser: not called", lambda w: w.net.training_step(optimizer=monet.Adam), TypeError, r"^training\['optimizer'\]: function"),
    ("optimiser: rate of text", lambda w: w.net.training_step(optimizer=monet.Muon(lr="fast")), monet.InputError, r"\['learning_rate'\]"),
    ("result: unknown part of energy", lambda w: w.result.energy.colour, AttributeError, "colour"),
    ("result: unknown owner of memory", lambda w: w.result.memory["colour"], KeyError, "colour"),
    ("core: unknown model", lambda w: monet.core(CHIP, w.net, model="x"), ValueError, "^model: 'x'"),
    ("core: unknown choice", lambda w: monet.core(CHIP, w.net, choices={"x": True}), (ValueError, monet.InputError), "choices"),
    ("core: choice of text", lambda w: monet.core(CHIP, w.net, choices={"x": "on"}), TypeError, r"^choices\['x'\]: str"),
    ("backward: nothing", lambda w: monet.backward(), (ValueError, monet.InputError), ""),
    ("backward: product of two", lambda w: monet.backward(NPU, gemm=(1, 2)), ValueError, "^gemm: 3 values"),
    ("backward: product of zero", lambda w: monet.backward(NPU, gemm=(0, 2, 3)), (ValueError, monet.InputError), "gemm"),
    ("cluster: unknown setting", lambda w: monet.cluster(CLUSTER, settings={"zzz": 3}), (ValueError, monet.InputError), "zzz"),
    ("cluster: empty dict", lambda w: monet.cluster({}), monet.InputError, "experiment"),
    ("graph: no step", lambda w: monet.graph(w.chip), TypeError, "^step: Chip"),
    ("run: unknown key", lambda w: monet.run({"colour": 3}, w.folder / "run"), monet.InputError, r"experiment\['colour'\]"),
    ("train: empty dict", lambda w: monet.train({}, w.folder / "train"), monet.InputError, "experiment"),
    ("report: missing", lambda w: monet.report("nowhere.json", w.folder / "page.html"), (monet.InputError, OSError), "nowhere.json"),
    ("report: of a chip", lambda w: monet.report(CHIP, w.folder / "page.html"), monet.InputError, "edge_tpu.yaml"),
    ("report: of a dict", lambda w: monet.report({"a": 1}, w.folder / "page.html"), monet.InputError, "result"),
    ("formats: unknown", lambda w: monet.formats("zzz"), monet.InputError, "zzz"),
    ("formats: of numbers", lambda w: monet.formats(3), (TypeError, monet.InputError), "3|formats"),
    ("formats: rounded text", lambda w: monet.formats(format="fp16", round=["1"]), TypeError, r"^round\[0\]: str"),
    ("formats: factors that do not fit", lambda w: monet.formats(gemm=(np.eye(2), np.eye(3)), mul="exact", acc="fp32"),
     (ValueError, monet.InputError), ""),
    ("formats: one factor", lambda w: monet.formats(gemm=[np.eye(2)], mul="exact", acc="fp32"), ValueError, "^gemm: 2 values"),
    ("formats: block of zero", lambda w: monet.formats(quantise=np.eye(2), format="mxfp4_e2m1", block=(0, 4)), ValueError, r"^block\[0\]: 0"),
    ("formats: seed below zero", lambda w: monet.formats(format="fp16", round=[1.0], seed=-1), ValueError, "^seed: -1"),
    ("optimise: unknown argument", lambda w: optimise.fusion(w.step, w.chip, colour=3), TypeError, "colour"),
    ("optimise: step and chip changed places", lambda w: optimise.allocation(w.chip, w.step), TypeError, "^step: Chip"),
    ("optimise: unknown objective", lambda w: optimise.joint(w.step, w.chip, objective="area"), ValueError, "^objective: 'area'"),
    ("optimise: budget of a word", lambda w: optimise.checkpointing(training(w), w.chip, budget="much"), (ValueError, monet.InputError), "budget"),
    ("optimise: no budget at all", lambda w: optimise.joint(w.step, w.chip, budget=0, evaluations=1), monet.InfeasibleError, "0 bytes"),
    ("optimise: unlimited time", lambda w: optimise.fusion(w.step, w.chip, time_limit=float("inf")), ValueError, "^time_limit: inf"),
    ("optimise: negative time", lambda w: optimise.fusion(w.step, w.chip, time_limit=-1), ValueError, "time_limit"),
    ("optimise: progress fails", lambda w: optimise.fusion(w.step, w.chip, evaluations=1, progress=fail), ZeroDivisionError, "enough"),
    ("optimise: progress of another ValueError", lambda w: optimise.fusion(w.step, w.chip, evaluations=1,
                                                                          progress=lambda told: json.loads("{")),
     json.JSONDecodeError, "Expecting"),
]:  # fmt: skip
    add(label, call, error, says)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_call_says_what_is_wrong(name: str, world: World) -> None:
    call, error, says = CASES[name]
    with pytest.raises(error, match=says) as raised:
        call(world)
    assert not isinstance(raised.value, (SystemError, RecursionError, monet.InternalError))
    assert "incompatible function arguments" not in str(raised.value) or name.startswith("extension")
    if isinstance(raised.value, monet.InputError) and "progress" not in name:
        assert raised.value.problems, raised.value
        assert all(len(problem) == 3 for problem in raised.value.problems)


def test_there_are_two_hundred() -> None:
    assert len(CASES) >= 200


# --- Every argument of every function --------------------------------------------------------

def functions(world: World) -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
    """Calls that work, with what they need."""
    training = world.net.training_step(ADAM)
    both = {"step": world.step, "chip": world.chip}
    experiment = {"workload": {"network": str(NETWORK), "batch": 2}, "hardware": str(CHIP)}
    trained = {"network": str(NETWORK), "batch": 4, "data": {"format": "generated", "train": 8, "test": 4},
               "training": {"loss": "cross_entropy"}, "epochs": 1, "seeds": [1]}  # fmt: skip
    out = world.folder / "out"
    square = np.ones((2, 2))
    return {
        "read_network": (monet.read_network, {"path": NETWORK, "batch": 2}),
        "read_chip": (monet.read_chip, {"chip": CHIP}),
        "read_space": (monet.read_space, {"space": DATA / "spaces" / "edge.yaml"}),
        "read_store": (monet.read_store, {"path": "nowhere"}),
        "Chip.with_": (world.chip.with_, {}),
        "Step.schedule": (world.step.schedule, {"chip": world.chip, "mode": "layer-by-layer"}),
        "Step.execute": (training.execute, {}),
        "core": (monet.core, {"hardware": EXAMPLES / "core" / "two_by_two.yaml", "workload": EXAMPLES / "core" / "product.yaml"}),
        "hardware_costs": (monet.hardware_costs, {"hardware": CHIP}),
        "backward": (monet.backward, {"hardware": NPU, "gemm": (64, 32, 16)}),
        "cluster": (monet.cluster, {"experiment": EXAMPLES / "cluster" / "gpt3_175b.yaml"}),
        "graph": (monet.graph, {"step": training, "execute": True}),
        "run": (monet.run, {"experiment": experiment, "output": out}),
        "train": (monet.train, {"experiment": trained, "output": out}),
        "report": (monet.report, {"result": "nowhere.json", "output": out}),
        "formats, round": (monet.formats, {"format": "fp8_e4m3", "round": [1.0]}),
        "formats, quantise": (monet.formats, {"format": "mxfp4_e2m1", "quantise": square}),
        "formats, gemm": (monet.formats, {"gemm": (square, square), "mul": "exact", "acc": "fp32"}),
        "optimise.allocation": (optimise.allocation, {**both, "evaluations": 4, "population": 2}),
        "optimise.fusion": (optimise.fusion, {**both, "evaluations": 1}),
        "optimise.einsum": (optimise.einsum, {"matmuls": (8, 4, 4), "buffer": 1024}),
        "optimise.checkpointing": (optimise.checkpointing, {"step": training, "chip": world.chip, "budget": "70%"}),
        "optimise.joint": (optimise.joint, {**both, "evaluations": 1}),
        "optimise.parallelism": (optimise.parallelism, {"experiment": EXAMPLES / "cluster" / "gpt3_175b_plan.yaml"}),
        "explore": (monet.explore, {"space": DATA / "spaces" / "edge.yaml", "strategy": "random", "budget": 1}),
        "compare_explorations": (monet.compare_explorations, {"a": "nowhere.json", "b": "nowhere.json"}),
        "sweep": (lambda **more: monet.sweep(**more).rows, {**both, "jobs": 1}),
    }  # fmt: skip


def arguments_of(name: str) -> list[str]:
    function = getattr(optimise if name.startswith("optimise.") else monet, name.split(",")[0].rpartition(".")[2], None)
    function = {"Chip.with_": monet.Chip.with_, "Step.schedule": monet.Step.schedule, "Step.execute": monet.Step.execute}.get(
        name, function
    )
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    named = [one.name for one in parameters.values() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    more = {"sweep": ["batch", "mode", "halo", "lpf_limit", "mapping", "dram_bandwidth_bits", "frequency_hz"],
            "Chip.with_": ["name", "frequency_hz"]}.get(name, [])  # fmt: skip
    return [one for one in named if one != "self"] + more + (list(optimise._COMMON) if "common" in parameters else [])


NEVER = {"object": object(), "complex": 2j, "surrogate": "\udcff", "NUL": "a\0b", "10**5000": 10**5000, "in itself": cycle(),
         "set of lists": [{1}], "array of objects": np.array([object()], dtype=object)}  # fmt: skip
NAMES = ("read_network", "read_chip", "read_space", "read_store", "Chip.with_", "Step.schedule", "Step.execute", "core",
         "hardware_costs", "backward", "cluster", "graph", "run", "train", "report", "formats, round", "formats, quantise",
         "formats, gemm", "optimise.allocation", "optimise.fusion", "optimise.einsum", "optimise.checkpointing",
         "optimise.joint", "optimise.parallelism", "explore", "compare_explorations", "sweep")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_argument_takes_what_it_cannot(name: str, world: World) -> None:
    function, base = functions(world)[name]
    for argument in arguments_of(name):
        for label, value in NEVER.items():
            with pytest.raises((TypeError, ValueError, LookupError, *OUR_ERRORS)) as raised:
                function(**{**base, argument: value})
                pytest.fail(f"{argument} takes {label}")
            said = str(raised.value)
            assert type(raised.value).__module__ in ("builtins", "monet"), f"{argument}, {label}: {raised.value!r}"
            dicts = ("dict", "experiment", "space") if argument in ("hardware", "chip", "changes", "experiment") else ()
            assert any(word in said for word in (argument, *dicts)), f"{argument}, {label}: {said}"
            assert "incompatible function arguments" not in said, f"{argument}, {label}"


# --- What looks wrong and works --------------------------------------------------------------


@pytest.mark.parametrize("batch", [np.int64(2), np.uint8(2), np.array(2), Number.TWO], ids=repr)
def test_whole_numbers_of_others_are_numbers(batch: Any) -> None:
    assert monet.read_network(NETWORK, batch=batch).inputs[0].shape[0] == 2
    assert monet.read_network(NETWORK, dimensions={"batch": batch}).inputs[0].shape[0] == 2


@pytest.mark.parametrize(
    "options",
    [
        {"micro_batches": np.int64(2), "optimizer": {"type": "adam", "learning_rate": np.float64(0.001)}},
        UserDict({"micro_batches": np.uint16(2), "optimizer": OrderedDict(type=Text("adam"), learning_rate=1e-3)}),
        types.MappingProxyType({"micro_batches": Number.TWO, "optimizer": types.MappingProxyType({"type": np.str_("adam")})}),
        {"micro_batches": np.array(2), "detach": (), "optimizer": {"type": "adam", "betas": np.array([0.9, 0.999])}},
    ],
    ids=["scalars", "mappings", "views", "arrays"],
)  # fmt: skip
def test_numbers_and_mappings_of_others_are_options(options: Any, world: World) -> None:
    plain = world.net.training_step(micro_batches=2, optimizer={"type": "adam", "learning_rate": 1e-3})
    ours = world.net.training_step(options).schedule(world.chip, mode="layer-by-layer")
    assert ours.latency_cycles == plain.schedule(world.chip, mode="layer-by-layer").latency_cycles


def test_paths_of_every_kind_are_paths(world: World) -> None:
    network = world.folder / "Netz \u00fc \U0001f600.onnx"
    network.write_bytes(NETWORK.read_bytes())
    for path in (network, str(network), os.fsencode(network), Text(network)):
        assert monet.read_network(path, batch=2).path == str(network)
    made = chip_dict()
    made["cores"][0] = world.file("core.yaml", json.dumps(core_dict()))
    made["name"] = "Chip \u00fc \U0001f600"
    assert monet.read_chip(made).name == "Chip \u00fc \U0001f600"


def test_a_chip_may_be_of_any_mappings(world: World) -> None:
    made = chip_dict()
    made["cores"] = types.MappingProxyType({number: UserDict(core) for number, core in made["cores"].items()})
    made["core_connectivity"] = tuple(made["core_connectivity"])
    chip = monet.read_chip(types.MappingProxyType(made))
    assert chip.cores == monet.read_chip(chip_dict()).cores
    assert chip.with_({"cores.0.memories.sram.size": 16}).cores[0]["memories"][0][1] == 16
    assert pickle.loads(pickle.dumps(chip)).cores == chip.cores


def test_numbers_of_a_chip_may_be_numpys(world: World) -> None:
    made = chip_dict()
    made["cores"] = {np.int64(number): core for number, core in made["cores"].items()}
    made["cores"][np.int64(0)]["operational_array"]["sizes"] = np.array([8, 8])
    made["cores"][np.int64(0)]["memories"]["sram"]["r_cost"] = np.float32(10)
    made["core_connectivity"][0]["bandwidth"] = np.int32(64)
    assert monet.read_chip(made).cores == monet.read_chip(chip_dict()).cores


def test_what_can_be_read_again_can_be_pickled(world: World) -> None:
    training = world.net.training_step(micro_batches=np.int64(2), optimizer=types.MappingProxyType({"type": "adam"}))
    for made in (world.net, world.chip, world.step, training):
        again = pickle.loads(pickle.dumps(made))
        assert repr(again) == repr(made)
        assert repr(copy.deepcopy(made)) == repr(made)
    latencies = {step.schedule(world.chip, mode="layer-by-layer").latency_cycles for step in (training, pickle.loads(pickle.dumps(training)))}
    assert len(latencies) == 1


def test_one_list_in_two_places_is_no_cycle(world: World) -> None:
    served = ["D1", "D2"]
    made = chip_dict()
    for core in made["cores"].values():
        for memory in core["memories"].values():
            memory["served_dimensions"] = served
        core["operational_array"]["dimensions"] = served
    assert len(monet.read_chip(made).cores) == 2


# --- What is gone, and what goes on at the same time -----------------------------------------


def test_columns_live_on_without_their_result(world: World) -> None:
    result = world.step.schedule(world.chip, mode="layer-by-layer")
    kept = [result.tiles, result.transfers, result.memory_over_time]
    views = [column[1:] for columns in kept for column in columns.values()]
    copies = [view.copy() for view in views]
    del result, kept
    gc.collect()
    waste = [bytearray(os.urandom(1 << 16)) for _ in range(64)]
    assert all(np.array_equal(view, copied) for view, copied in zip(views, copies))
    del waste


def test_a_step_lives_on_without_its_network_and_chip() -> None:
    step = monet.read_network(SMALL).inference()
    chip = monet.read_chip(CHIP)
    result = step.schedule(chip, mode="layer-by-layer")
    text = result.to_json()
    del step, chip
    gc.collect()
    assert result.to_json() == text
    assert result.tiles.rows > 0


def test_a_network_whose_file_is_gone_is_an_error(world: World) -> None:
    path = world.folder / "gone.onnx"
    path.write_bytes(NETWORK.read_bytes())
    step = monet.read_network(path, batch=2).inference()
    path.unlink()
    with pytest.raises(monet.InputError, match="gone.onnx"):
        step.schedule(world.chip, mode="layer-by-layer")
    path.write_bytes(b"another")
    with pytest.raises(monet.InputError, match="gone.onnx"):
        step.schedule(world.chip, mode="layer-by-layer")


def test_progress_may_call_the_library(world: World) -> None:
    inner: list[int] = []

    def progress(stage: str) -> None:
        if not inner:
            inner.append(monet.read_network(SMALL).inference().schedule(world.chip, mode="layer-by-layer").latency_cycles)

    result = world.step.schedule(world.chip, mode="layer-by-layer", progress=progress)
    assert inner[0] > 0
    assert result.latency_cycles == world.result.latency_cycles


def test_a_call_after_a_failed_one_works(world: World) -> None:
    for _ in range(3):
        with pytest.raises(RuntimeError, match="enough"):
            world.step.schedule(world.chip, mode="layer-by-layer", progress=raising(RuntimeError("enough")))
        with pytest.raises(monet.InfeasibleError):
            world.step.schedule(tiny_chip(world), mode="layer-by-layer")
        assert world.step.schedule(world.chip, mode="layer-by-layer").latency_cycles == world.result.latency_cycles


def test_wrong_calls_of_many_threads(world: World) -> None:
    said: list[str] = []

    def call(i: int) -> None:
        for _ in range(20):
            try:
                if i % 3 == 0:
                    world.net.training_step(optimizer={"type": f"adam{i}"})
                elif i % 3 == 1:
                    monet.read_network(f"nowhere{i}.onnx")
                else:
                    world.step.schedule(world.chip, jobs=-i)
            except (monet.InputError, ValueError) as error:
                said.append(str(error))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 120
    assert len(set(said)) == 6


def test_an_interrupted_call_leaves_others_alone(world: World) -> None:
    long = monet.read_network(DATA / "workload" / "gpt2.onnx", batch=1).training_step(ADAM)
    latencies: list[int] = []
    enough = threading.Event()

    def schedule() -> None:
        while not enough.is_set():
            latencies.append(world.step.schedule(world.chip, mode="layer-by-layer").latency_cycles)

    thread = threading.Thread(target=schedule)
    thread.start()
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            long.schedule(world.chip, mode="fused")
    finally:
        enough.set()
        thread.join()
    assert latencies
    assert set(latencies) == {world.result.latency_cycles}
    assert world.step.schedule(world.chip, mode="layer-by-layer").latency_cycles == world.result.latency_cycles


def test_two_interrupts_are_one(world: World) -> None:
    long = monet.read_network(DATA / "workload" / "gpt2.onnx", batch=1).training_step(ADAM)
    timers = [threading.Timer(wait, lambda: os.kill(os.getpid(), signal.SIGINT)) for wait in (0.2, 0.201)]
    for timer in timers:
        timer.start()
    with pytest.raises(KeyboardInterrupt):
        try:
            long.schedule(world.chip, mode="fused")
        finally:
            for timer in timers:
                timer.join()


def test_an_end_of_time_without_an_answer_is_no_interrupt() -> None:
    try:
        with pytest.raises(TimeoutError, match="time limit"):
            optimise.parallelism(EXAMPLES / "cluster" / "gpt3_175b_plan.yaml", time_limit=1e-9)
    except KeyboardInterrupt:  # would end the tests
        pytest.fail("KeyboardInterrupt")


def test_a_handler_of_signals_may_raise_what_it_likes(world: World) -> None:
    long = monet.read_network(DATA / "workload" / "gpt2.onnx", batch=1).training_step(ADAM)

    def handler(number: int, frame: object) -> None:
        raise TimeoutError("too long")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="too long"):
            long.schedule(world.chip, mode="fused")
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("call", ["_monet.Space.first_design(None)", "_monet.Space.size.fget(None)", "_monet.Result.json(None)"])
def test_a_method_of_none_is_no_crash(call: str) -> None:
    code = f"from monet import _monet\ntry:\n    {call}\nexcept TypeError as error:\n    print('TypeError')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "TypeError\n")


def test_the_interpreter_may_end_in_the_middle() -> None:
    """A thread of the library's is at work while Python ends: it must not crash on the way out."""
    code = f"""
import threading, monet
step = monet.read_network({str(NETWORK)!r}, batch=2).inference()
chip = monet.read_chip({str(CHIP)!r})
def schedule():
    while True:
        step.schedule(chip, mode="layer-by-layer", progress=lambda stage: None)
threading.Thread(target=schedule, daemon=True).start()
step.schedule(chip, mode="layer-by-layer")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
