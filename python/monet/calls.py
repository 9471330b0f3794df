"""Calls commands of the command line with Python values."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
from functools import cache, cached_property
from numbers import Integral, Real
from typing import Any, TypeVar

from monet import _monet, arguments
from monet.dicts import DictText, read_dict
from monet.progress import Progress, progress_of
from monet.warning import MonetWarning, warned

File = str | os.PathLike[str]
Options = Mapping[str, Any]
FileOrDict = str | os.PathLike[str] | Mapping[str, Any]
T = TypeVar("T")

INTERRUPTED = 130


class Inputs:
    """The inputs of a call: files, and texts of dicts that replace files."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._dicts: list[DictText] = []

    def name(self, value: FileOrDict | Sequence[Any], argument: str) -> str:
        """The name of an input for the command line: a path, or the name of a dict's text."""
        if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
            text = DictText(value, argument)
            self.add(text)
            return text.name
        return arguments.path(argument, value)

    def add(self, *dicts: DictText) -> None:
        for text in dicts:
            self.texts[text.name] = text.text
            self._dicts.append(text)

    def reading(self, call: Callable[[], T], command: tuple[str, ...] = ()) -> T:
        """Calls `call()` and issues its warnings. Problems in a dict are reported by key, and
        options of the command by their names in Python."""
        for text in self._dicts:
            call = _traced(text, call)
        with warned(lambda text: self._place(in_python(command, text) if command else text)):
            return call()

    def _place(self, text: str) -> str:
        for one in self._dicts:
            text = one.place(text)
        return text


def _traced(text: DictText, read: Callable[[], T]) -> Callable[[], T]:
    return lambda: read_dict(text, read)


@cache
def program() -> dict[str, Any]:
    """The subcommands and options of the command line, from the command line itself."""
    return dict(_monet.program())


@cache
def options_of(command: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Options of a command by name, including `--json` and `experiment`."""
    described = program()
    for word in command:
        described = next(one for one in described["commands"] if one["name"] == word)
    return {option["name"]: option for option in described["options"]}


def python_name(option: str) -> str:
    """The Python argument of an option: `lpf_limit` for `--lpf-limit`."""
    return {"--dim": "dimensions", "--choice": "choices"}.get(option, option.lstrip("-").replace("-", "_"))


def argument_of(command: tuple[str, ...], option: str) -> str:
    """The argument of a command's function for an option, which may differ from `python_name()`."""
    if option == "--out":
        return "output"
    return "settings" if option == "--set" else python_name(option)


# Options whose value is the path of a file or folder.
_PATHS = frozenset({
    "--codes", "--export-csv", "--log", "--mapping-out", "--out", "--output", "--plan-out", "--quantise", "--report",
    "--save", "--scales", "--stacks-out", "--store", "--study", "--svg",
})  # fmt: skip


def _text(value: object, argument: str) -> str:
    if isinstance(value, str):
        return arguments.unicode(argument, value)
    if isinstance(value, os.PathLike):
        return arguments.path(argument, value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(arguments.whole(argument, value, -(2**63), 2**64 - 1))
    if isinstance(value, Real) and not isinstance(value, bool):
        return repr(float(value))
    raise TypeError(f"{argument}: {arguments.kind_of(value)} is neither a number nor text")


def _one(option: Mapping[str, Any], value: object, argument: str) -> str:
    """The text of an option's single value."""
    if option["kind"] == "integer" and not (isinstance(value, str) and option["name"] == "--lpf-limit"):
        least = 0 if option["name"] in ("--budget", "--seed") else -(2**63)
        return str(arguments.whole(argument, value, least, 2**64 - 1))
    if option["kind"] == "number":
        return repr(arguments.real(argument, value))
    if option["choices"]:
        return arguments.one_of(argument, value, option["choices"])
    return arguments.path(argument, value) if option["name"] in _PATHS else _text(value, argument)


def _list(option: Mapping[str, Any], value: object, argument: str) -> list[str]:
    name = option["name"]
    if isinstance(value, Mapping):
        texts = [f"{_text(key, argument)}={_text(item, f'{argument}[{key!r}]')}" for key, item in value.items()]
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{argument}: {arguments.kind_of(value)} is not a list")
    else:
        items = list(value)
        texts = [_text(item, f"{argument}[{i}]") for i, item in enumerate(items)]
    if not texts:
        return []
    if option["values"]:
        if len(texts) != option["values"]:
            raise ValueError(f"{argument}: {option['values']} values are needed, {len(texts)} given")
        if option["delimiter"]:
            return [f"{name}={option['delimiter'].join(texts)}"]
        return [name, *texts]
    return [f"{name}={text}" for text in texts]


def arguments_of(command: tuple[str, ...], values: Mapping[str, object], positional: Sequence[str]) -> list[str]:
    """The words of a command line. `values`: by option; None and False are left out."""
    known = options_of(command)
    words = list(command)
    for name, value in values.items():
        option, argument = known[name], argument_of(command, name)
        if value is None:
            continue
        if option["kind"] == "flag":
            words += [name] if arguments.flag(argument, value) else []
        elif option["kind"] == "list":
            words += _list(option, value, argument)
        else:
            words.append(f"{name}={_one(option, value, argument)}")
    positional = [_text(word, command[-1]) for word in positional]
    return [*words, "--", *positional] if positional else words


def in_python(command: tuple[str, ...], text: str) -> str:
    """A text of the command line, with its options by their names in Python."""
    known = options_of(command)

    def named(found: re.Match[str]) -> str:
        return argument_of(command, found.group()) if found.group() in known else found.group()

    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", named, text)


@contextlib.contextmanager
def told_in_python(command: tuple[str, ...]) -> Iterator[None]:
    """Rewrites errors about arguments so that they use the names in Python."""
    try:
        yield
    except _monet.InputError as error:
        text = in_python(command, str(error))
        if text == str(error):
            raise
        told = _monet.InputError(text)
        told.problems = [(in_python(command, where), in_python(command, what), in_python(command, hint))
                         for where, what, hint in getattr(error, "problems", [])]  # fmt: skip
        raise told from None
    except ValueError as error:
        text = in_python(command, str(error))
        if text == str(error) or type(error) is not ValueError:  # a subclass may be the caller's
            raise
        raise ValueError(text) from None


def run_command(
    command: tuple[str, ...],
    values: Mapping[str, object],
    positional: Sequence[str] = (),
    *,
    inputs: Inputs | None = None,
    progress: Progress = None,
    own: object = None,
) -> Ran:
    """Runs a command. Raises a ValueError that names the argument if one is invalid."""
    words = arguments_of(command, values, positional)
    given = inputs or Inputs()
    with progress_of(progress) as told:
        with told_in_python(command):
            return Ran(*given.reading(lambda: _monet.run_command(words, given.texts, told, own), command))


class Ran:
    """The output of a command: its exit code, its table, the JSON of `--json -` and its
    messages."""

    def __init__(self, code: int, table: str, json_text: str, messages: str) -> None:
        self.code = code
        self.table = table
        self.json = json_text
        self.messages = messages


class Answer:
    """The result of a command: a mapping of its JSON (docs/reference/result.md lists every key)."""

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return dict(json.loads(self._ran.json))

    def __getitem__(self, key: str) -> Any:
        return self._figures[key]

    def __contains__(self, key: object) -> bool:
        return key in self._figures

    def __iter__(self) -> Iterator[Any]:
        return iter(self._figures)

    def get(self, key: str, default: Any = None) -> Any:
        return self._figures.get(key, default)

    def keys(self) -> KeysView[str]:
        return self._figures.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._figures.items()

    def to_json(self) -> str:
        """The output of the command with `--json -`, byte for byte."""
        return self._ran.json

    def to_dict(self) -> dict[str, Any]:
        """A copy of the result as a dict."""
        return dict(json.loads(self._ran.json))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a time limit ended the command: the result is then the best, or all, so
        far."""
        return self._ran.code == INTERRUPTED or bool(self._figures.get("interrupted", False))

    @property
    def warnings(self) -> list[MonetWarning]:
        """Warnings about input that was ignored, guessed, clipped or assumed. The call has issued
        them."""
        return [MonetWarning(one["where"], one["message"], one["hint"]) for one in self.get("warnings", [])]

    @property
    def messages(self) -> str:
        """Messages of the command line other than its results."""
        return self._ran.messages

    def __str__(self) -> str:
        """The table that the command prints."""
        return self._ran.table

    def __repr__(self) -> str:
        title = self._figures.get("name") or self._figures.get("kind")
        return f"{type(self).__name__}({repr(title) if title else ', '.join(self._figures)})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
