"""Checks of arguments. An invalid one raises a TypeError or ValueError that begins with its
name."""

from __future__ import annotations

import math
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from monet import _monet

T = TypeVar("T")


def kind_of(value: object) -> str:
    return "None" if value is None else type(value).__name__


def path(name: str, value: object) -> str:
    """A path as Unicode text, which the library needs."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: {kind_of(value)} is not a path")
    try:
        told = os.fsdecode(value)
    except TypeError as error:  # raised by __fspath__
        raise TypeError(f"{name}: {error}") from None
    if not told:
        raise ValueError(f"{name}: the path is empty")
    return unicode(name, told)


def text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: {kind_of(value)} is not a string")
    return unicode(name, value)


def unicode(name: str, value: str) -> str:
    """`value`, if it is Unicode text without NUL characters."""
    if "\0" in value:
        raise ValueError(f"{name}: {value!r} has a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: {value!r} is not Unicode text (character {error.start})") from None
    return str(value)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: {kind_of(value)} is not one of {', '.join(choices)}")
    if value not in choices:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(choices)}")
    return str(value)


def several_of(name: str, values: object, choices: Sequence[str]) -> list[str]:
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, set, frozenset)):
        raise TypeError(f"{name}: {kind_of(values)} is not a sequence of names")
    return [one_of(name, value, choices) for value in values]


def whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number between `least` and `most`, which may be of a NumPy type."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {kind_of(value)} is not a whole number")
    try:
        number = int(value.__index__())
    except TypeError as error:  # raised by an array
        raise TypeError(f"{name}: {error}") from None
    if number.bit_length() > 64:
        raise ValueError(f"{name}: a number of {number.bit_length()} bits is not between {least} and {most}")
    if not least <= number <= most:
        raise ValueError(f"{name}: {number} is not between {least} and {most}")
    return number


def real(name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: {kind_of(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name}: the number is too large") from None
    if not math.isfinite(number):
        raise ValueError(f"{name}: {number} is not finite")
    return number


def mapping(name: str, value: object) -> dict[str, Any]:
    """A dict with names as keys and any values."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: {kind_of(value)} is not a mapping")
    return {text(f"{name}, a name", key): item for key, item in value.items()}


def several(name: str, value: object, count: int = 0) -> list[Any]:
    """A list of any values, of length `count` unless that is 0."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: {kind_of(value)} is not a list")
    try:
        items = list(value)
    except TypeError as error:  # an array without axes
        raise TypeError(f"{name}: {error}") from None
    if count and len(items) != count:
        raise ValueError(f"{name}: {count} values are needed, {len(items)} given")
    return items


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):  # NumPy's
        raise TypeError(f"{name}: {kind_of(value)} is neither True nor False")
    return bool(value)


def sizes(name: str, value: object) -> dict[str, int]:
    """Sizes by name."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: {kind_of(value)} is not a mapping of names to sizes")
    return {text(f"{name}, a name", key): whole(f"{name}[{key!r}]", size, 1, 2**40) for key, size in value.items()}


def arrays(name: str, value: object) -> dict[str, Any]:
    """Arrays by name: anything that NumPy converts to a numeric array."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: {kind_of(value)} is not a mapping of names to arrays")
    return {text(f"{name}, a name", key): numbers(f"{name}[{key!r}]", item) for key, item in value.items()}


def numbers(name: str, value: object) -> Any:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: an array of {array.dtype} has no numbers")
    return array


def figures(name: str, value: object) -> dict[str, float]:
    """Finite numbers by name."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: {kind_of(value)} is not a mapping of names to numbers")
    given = {}
    for key, number in value.items():
        if isinstance(number, bool) or not hasattr(number, "__float__"):
            raise TypeError(f"{name}[{key!r}]: {kind_of(number)} is not a number")
        given[text(f"{name}, a name", key)] = float(number)
        if not math.isfinite(given[key]):
            raise ValueError(f"{name}[{key!r}]: {number} is not finite")
    return given


def function(name: str, value: object) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{name}: {kind_of(value)} cannot be called")


def instance(name: str, value: object, kind: type[T], made_by: str) -> T:
    """`value`, which must be a `kind` created by a function of the package."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {kind_of(value)} is not an instance of {kind.__name__}; {made_by} makes one")
    return value


def input_error(where: str, what: str, hint: str = "") -> _monet.InputError:
    error = _monet.InputError(f"{where}: {what}" + (f" ({hint})" if hint else ""))
    error.problems = [(where, what, hint)]
    return error


def seal_extension() -> None:
    """Makes direct creation of the extension's objects fail, because an uninitialised object would
    crash."""
    for kind in list(vars(_monet).values()):
        if not isinstance(kind, type) or issubclass(kind, BaseException) or "__new__" in vars(kind):
            continue
        made_by_hand = not isinstance(vars(kind).get("__init__"), types.WrapperDescriptorType)  # it refuses too late
        setattr(kind, "__new__", _initialised(kind.__new__) if made_by_hand else _refused)  # noqa: B010


def _refused(kind: type, *_: object, **__: object) -> object:
    raise TypeError(f"{kind.__name__} is made by functions of monet, not by hand")


def _initialised(new: Any) -> Any:
    def made(kind: type, *arguments: object, **more: object) -> object:
        value = new(kind)
        value.__init__(*arguments, **more)  # Python calls it again, which the extension ignores
        return value

    return made
