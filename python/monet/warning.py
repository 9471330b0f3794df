"""Warnings of the library as Python warnings."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator

from monet import _monet

Told = tuple[str, str, str]  # place, what, hint


class MonetWarning(UserWarning):
    """A warning about input that was ignored, guessed, clipped or assumed."""

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        super().__init__(where, what, hint)
        self.where = where
        """A line of a file, a node of a network, or the key of a dict; may be empty."""
        self.what = what
        self.hint = hint
        """A suggestion; may be empty."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f" ({self.hint})" if self.hint else "")


class _Collected(threading.local):
    """The list for this thread's warnings, in place of Python's `warnings`. None if they are not
    collected."""

    into: list[Told] | None = None


_collected = _Collected()


@contextlib.contextmanager
def collected() -> Iterator[list[Told]]:
    """Collects the warnings of this thread, so that another thread can issue them."""
    before, _collected.into = _collected.into, []
    try:
        yield _collected.into
    finally:
        _collected.into = before


@contextlib.contextmanager
def warned(as_python: Callable[[str], str] = str) -> Iterator[None]:
    """Issues the warnings of a library call when it ends, also by an exception. `as_python`
    converts a text of the command line to the names in Python."""
    _monet.take_warnings()  # drops warnings of earlier calls that did not take them
    try:
        yield
    except BaseException:
        with contextlib.suppress(MonetWarning):  # a warning as an error would hide the exception
            warn(_taken(as_python))
        raise
    warn(_taken(as_python))


def _taken(as_python: Callable[[str], str]) -> list[Told]:
    return [(as_python(where), as_python(what), as_python(hint)) for where, what, hint in _monet.take_warnings()]


def warn(told: Iterable[Told]) -> None:
    """Calls `warnings.warn()` for each distinct warning, at the line that called the package."""
    for one in dict.fromkeys(told):
        if _collected.into is not None:
            _collected.into.append(one)
        else:
            warnings.warn(MonetWarning(*one), stacklevel=_callers_level())


def _callers_level() -> int:
    """The `stacklevel` of the line that called the package, for `warnings.warn()` in the calling
    function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "monet" or module == "contextlib"
