"""Dicts in place of files: as text that errors can be traced through."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from monet._monet import InputError

Path = tuple[str | int, ...]
T = TypeVar("T")


class DictText:
    """JSON with one key or item a line, and which that is."""

    def __init__(self, value: Any, name: str) -> None:
        self.name = name
        self.value = value
        self.paths: list[Path] = []
        self._lines: list[str] = []
        self._write(value, (), "", "")
        self.text = "\n".join(self._lines) + "\n"

    def _write(self, value: Any, path: Path, prefix: str, suffix: str) -> None:
        if isinstance(value, Mapping) and value:
            self._line(prefix + "{", path)
            last = len(value) - 1
            for i, (key, item) in enumerate(value.items()):
                self._write(item, (*path, key), json.dumps(str(key)) + ": ", "" if i == last else ",")
            self._line("}" + suffix, path)
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            self._line(prefix + "[", path)
            last = len(value) - 1
            for i, item in enumerate(value):
                self._write(item, (*path, i), "", "" if i == last else ",")
            self._line("]" + suffix, path)
        else:
            self._line(prefix + self._scalar(value, path) + suffix, path)

    def _scalar(self, value: Any, path: Path) -> str:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            raise TypeError(f"{self.where(path)}: {type(value).__name__} is neither a number nor text") from None

    def _line(self, text: str, path: Path) -> None:
        self._lines.append(text)
        self.paths.append(path)

    def where(self, path: Path) -> str:
        return self.name + "".join(f"[{part!r}]" for part in path)

    def place(self, text: str) -> str:
        """A place "name:line:column..." as the key that is there."""

        def key(match: re.Match[str]) -> str:
            line = int(match.group(1))
            return self.where(self.paths[min(line, len(self.paths)) - 1])

        return re.sub(re.escape(self.name) + r":(\d+)(?::\d+)?", key, text)


def read_dict(text: DictText, read: Callable[[], T]) -> T:
    """`read()`, with places in the text told as keys of the dict."""
    try:
        return read()
    except InputError as error:
        told = InputError(text.place(str(error)))
        told.problems = [(text.place(where), text.place(what), hint) for where, what, hint in error.problems]
        raise told from None
