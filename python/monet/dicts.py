"""Dicts in place of files, as text whose places in errors map back to keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union

import numpy as np

from monet._monet import InputError
from monet.arguments import input_error, kind_of, unicode

Path = tuple[Union[str, int], ...]
T = TypeVar("T")

DEPTH = 64  # maximum nesting, also of files
_UNPRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class DictText:
    """JSON text with one key or item per line, and the key of each line. Numbers may be NumPy's,
    and paths become text. Raises TypeError or ValueError, with the key, for values that no file
    could hold."""

    def __init__(self, value: Any, name: str) -> None:
        self.name = name
        self.paths: list[Path] = []
        self._lines: list[str] = []
        self._within: list[int] = []  # ids of the containers being written
        self._write(value, (), "", "")
        self.text = "\n".join(self._lines) + "\n"

    @property
    def value(self) -> Any:
        """A copy of the value as plain Python objects."""
        return json.loads(self.text)

    def _write(self, value: Any, path: Path, prefix: str, suffix: str) -> None:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, Mapping):
            keys = [self._key(key, path) for key in value]
            heads = [f"{self._text(str(key), (*path, key))}: " for key in keys]
            self._nested(value, path, prefix, suffix, "{}", list(zip(keys, heads, value.values())))
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
            self._nested(value, path, prefix, suffix, "[]", [(i, "", item) for i, item in enumerate(value)])
        else:
            self._line(prefix + self._scalar(value, path) + suffix, path)

    def _nested(
        self, value: Any, path: Path, prefix: str, suffix: str, ends: str, items: list[tuple[str | int, str, Any]]
    ) -> None:
        if id(value) in self._within:
            raise ValueError(f"{self.where(path)}: contains itself")
        if len(self._within) == DEPTH:
            raise input_error(self.where(path), f"nested deeper than {DEPTH} levels")
        if not items:
            return self._line(prefix + ends + suffix, path)
        self._within.append(id(value))
        self._line(prefix + ends[0], path)
        for i, (key, head, item) in enumerate(items):
            self._write(item, (*path, key), head, "" if i == len(items) - 1 else ",")
        self._line(ends[1] + suffix, path)
        self._within.pop()

    def _key(self, key: Any, path: Path) -> str | int:
        if isinstance(key, str):
            return str(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return int(key)
        raise TypeError(f"{self.where(path)}: the key {key!r} is not a string")

    def _scalar(self, value: Any, path: Path) -> str:
        if isinstance(value, np.generic):
            value = float(value) if isinstance(value, np.floating) else value.item()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str):
            return self._text(value, path)
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{self.where(path)}: {kind_of(value)} is neither a number nor text")
        if isinstance(value, int) and value.bit_length() > 1024:  # beyond any double; Python may refuse to write it
            raise ValueError(f"{self.where(path)}: a number of {value.bit_length()} bits is too large")
        return json.dumps(value)

    def _text(self, value: str, path: Path) -> str:
        """Text quoted for YAML, which has no pairs of surrogates."""
        quoted = json.dumps(unicode(self.where(path), value), ensure_ascii=False)
        return _UNPRINTED.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)

    def _line(self, text: str, path: Path) -> None:
        self._lines.append(text)
        self.paths.append(path)

    def where(self, path: Path) -> str:
        return self.name + "".join(f"[{part!r}]" for part in path)

    def place(self, text: str) -> str:
        """Replaces places of the form "name:line:column" in a text with the keys on those lines."""

        def key(match: re.Match[str]) -> str:
            line = int(match.group(1))
            return self.where(self.paths[min(line, len(self.paths)) - 1])

        return re.sub(re.escape(self.name) + r":(\d+)(?::\d+)?", key, text)


def plain(value: Any) -> Any:
    """A copy of a value that DictText accepts, in dicts, lists and Python's own numbers and
    text."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def read_dict(text: DictText, read: Callable[[], T]) -> T:
    """Calls `read()`. Errors name keys of the dict in place of lines of the text."""
    try:
        return read()
    except InputError as error:
        told = InputError(text.place(str(error)))
        problems = getattr(error, "problems", [])  # an error of a callback has no problems
        told.problems = [(text.place(where), text.place(what), hint) for where, what, hint in problems]
        raise told from None
