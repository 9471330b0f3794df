"""The commands of the command line, called with Python's values."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

from monet import _monet, arguments
from monet.columns import Columns
from monet.dicts import DictText, read_dict
from monet.progress import Progress, progress_of

File = str | os.PathLike[str]
Options = Mapping[str, Any]
FileOrDict = str | os.PathLike[str] | Mapping[str, Any]
T = TypeVar("T")

INTERRUPTED = 130


class Inputs:
    """Files of a call, and the dicts that stand for some."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._dicts: list[DictText] = []

    def name(self, value: FileOrDict | Sequence[Any], argument: str) -> str:
        """What the command line is given: a path, or the name of a dict's text."""
        if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
            text = DictText(value, argument)
            self.add(text)
            return text.name
        return path_of(value, argument)

    def add(self, *dicts: DictText) -> None:
        for text in dicts:
            self.texts[text.name] = text.text
            self._dicts.append(text)

    def reading(self, call: Callable[[], T]) -> T:
        """`call()`; what is wrong with a dict is told by its key."""
        for text in self._dicts:
            call = _traced(text, call)
        return call()


def _traced(text: DictText, read: Callable[[], T]) -> Callable[[], T]:
    return lambda: read_dict(text, read)


def path_of(value: object, argument: str) -> str:
    return arguments.path(argument, value)


@cache
def program() -> dict[str, Any]:
    """The subcommands and options of the command line, as it describes them itself."""
    return dict(_monet.program())


@cache
def options_of(command: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Options of a command by name, `--json` and `experiment` among them."""
    described = program()
    for word in command:
        described = next(one for one in described["commands"] if one["name"] == word)
    return {option["name"]: option for option in described["options"]}


def python_name(option: str) -> str:
    """`--lpf-limit` as an argument of Python: `lpf_limit`."""
    return {"--dim": "dimensions", "--choice": "choices"}.get(option, option.lstrip("-").replace("-", "_"))


def _text(value: object, argument: str) -> str:
    if isinstance(value, bool):
        raise TypeError(f"{argument}: True and False are no values")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"{argument}: text with a NUL character")
        return value
    if isinstance(value, os.PathLike):
        return path_of(value, argument)
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if hasattr(value, "__float__"):
        return repr(float(value))
    raise TypeError(f"{argument}: {type(value).__name__} is neither a number nor text")


def _list(option: Mapping[str, Any], value: object, argument: str) -> list[str]:
    name = option["name"]
    if isinstance(value, Mapping):
        texts = [f"{key}={_text(item, argument)}" for key, item in value.items()]
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{argument}: {value!r} is no list")
    else:
        texts = [_text(item, argument) for item in value]
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
    """The words of a call; `values` by option. None and False are left out."""
    known = options_of(command)
    words = list(command)
    for name, value in values.items():
        option, argument = known[name], python_name(name)
        if value is None or value is False:
            continue
        if option["kind"] == "flag":
            if value is not True:
                raise TypeError(f"{argument}: {value!r} is neither True nor False")
            words.append(name)
        elif option["kind"] == "list":
            words += _list(option, value, argument)
        else:
            words.append(f"{name}={_text(value, argument)}")
    return [*words, "--", *positional] if positional else words


def run_command(
    command: tuple[str, ...],
    values: Mapping[str, object],
    positional: Sequence[str] = (),
    *,
    inputs: Inputs | None = None,
    progress: Progress = None,
    own: object = None,
) -> Ran:
    """Runs a command. What is wrong with an argument is a ValueError that names it."""
    words = arguments_of(command, values, positional)
    given = inputs or Inputs()
    with progress_of(progress) as told:
        try:
            return Ran(*given.reading(lambda: _monet.run_command(words, given.texts, told, own)))
        except ValueError as error:
            text = re.sub(r"--([a-z][a-z-]*)", lambda found: python_name(found.group(0)), str(error))
            raise type(error)(text) from None


class Ran:
    """What a command gave: its exit code, its table, the JSON of `--json -` and what it said."""

    def __init__(self, code: int, table: str, json_text: str, messages: str) -> None:
        self.code = code
        self.table = table
        self.json = json_text
        self.messages = messages


class Answer(Mapping[str, Any]):
    """A command's result: a mapping of what its JSON has (docs/result.md names every key)."""

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return dict(json.loads(self._ran.json))

    def __getitem__(self, key: str) -> Any:
        return self._figures[key]

    def __iter__(self) -> Any:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def to_json(self) -> str:
        """What the command prints with `--json -`, byte for byte."""
        return self._ran.json

    def to_dict(self) -> dict[str, Any]:
        """A copy as Python has it."""
        return dict(json.loads(self._ran.json))

    @property
    def interrupted(self) -> bool:
        """Ctrl-C or an end of time came first: this is the best, or all, so far."""
        return self._ran.code == INTERRUPTED or bool(self._figures.get("interrupted", False))

    @property
    def messages(self) -> str:
        """What the command line says beside its results."""
        return self._ran.messages

    def __str__(self) -> str:
        return self._ran.table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._figures.get('name', '')!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def columns_of(rows: Sequence[Mapping[str, Any]], *names: str) -> Columns:
    """Columns of the rows' values of these names that are numbers or text; none where a row has it."""
    return Columns.of_rows(rows, names)
