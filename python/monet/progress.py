"""Progress of long calls."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# True: a display. A callable receives the name of each stage and, for searches, a dict with phase,
# done, total, best, bound and seconds_left.
Progress = bool | Callable[[Any], object] | None

_QUIET = 2.0  # seconds before the first output, and between lines


class Display:
    """Shows the progress of a call: a bar if tqdm is installed, else lines on stderr, at most one
    every two seconds. Shows nothing for calls that end within two seconds.

    Call it with the name of each stage, or with the state of a search: a dict, or an object, with
    any of `phase`, `done`, `total`, `best`, `bound` and `seconds_left`. Any thread may call it.
    Close it at the end, or use it in a `with` statement."""

    def __init__(self, quiet: float = _QUIET) -> None:
        self._quiet = quiet
        self._begin = time.monotonic()
        self._state: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._show: _Lines | _Bar | None = None
        self._clock = threading.Thread(target=self._tick, name="monet-progress", daemon=True)
        self._clock.start()

    def __call__(self, told: Any) -> None:
        state = {"phase": told} if isinstance(told, str) else _read(told)
        with self._lock:
            self._state = state
            if self._show is not None and not self._closed.is_set():
                self._update(self._show)

    def _update(self, show: _Lines | _Bar) -> None:
        with contextlib.suppress(OSError, ValueError):  # a closed stderr must not end the call
            show.update(self._state, time.monotonic() - self._begin)

    def _tick(self) -> None:
        """Updates the shown time while a stage reports nothing, which may take minutes."""
        while not self._closed.wait(self._quiet):
            with self._lock:
                if self._closed.is_set():
                    return
                if self._show is None:
                    self._show = _display(self._quiet)
                self._update(self._show)

    def close(self, word: str = "done") -> None:
        self._closed.set()
        with self._lock:
            if self._show is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._show.close(word, time.monotonic() - self._begin)
                self._show = None
        if threading.current_thread() is not self._clock:
            self._clock.join()

    def __enter__(self) -> Display:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self.close("done" if kind is None else "stopped")


@contextlib.contextmanager
def progress_of(progress: Progress) -> Iterator[Callable[[Any], object] | None]:
    """The callable for the library, or None. Raises TypeError unless `progress` is a Progress."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with Display() as display:
            yield display
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress: {type(progress).__name__} is neither True nor callable")


def _read(told: Any) -> dict[str, Any]:
    names = ("phase", "done", "total", "best", "bound", "seconds_left")
    if isinstance(told, Mapping):
        found = {name: told.get(name) for name in names}
    else:
        found = {name: getattr(told, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _figures(state: Mapping[str, Any]) -> str:
    """Best and bound, the gap between them, and the time left, as text."""
    parts = [f"{name} {_figure(state[name])}" for name in ("best", "bound") if name in state]
    best, bound = state.get("best"), state.get("bound")
    if isinstance(best, (int, float)) and isinstance(bound, (int, float)) and bound > 0:
        parts.append(f"gap {max(best - bound, 0) / bound:.1%}")
    if isinstance(state.get("seconds_left"), (int, float)):
        parts.append(f"{state['seconds_left']:.0f} s left")
    return ", ".join(parts)


def _figure(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _display(quiet: float) -> _Lines | _Bar:
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return _Lines(quiet)
    return _Lines(quiet) if getattr(sys.stderr, "closed", True) else _Bar(tqdm)


class _Lines:
    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._last = -quiet

    def update(self, state: Mapping[str, Any], seconds: float) -> None:
        if sys.stderr is None or seconds - self._last < self._quiet * 0.99:
            return
        self._last = seconds
        done = ""
        if "done" in state:
            done = f" {state['done']:,}" + (f" of {state['total']:,}" if state.get("total") else "")
        figures = _figures(state)
        text = f"monet: {state.get('phase', 'working')}{done}{', ' + figures if figures else ''} ({seconds:.0f} s)"
        print(text, file=sys.stderr, flush=True)

    def close(self, word: str, seconds: float) -> None:
        if sys.stderr is not None:
            print(f"monet: {word} ({seconds:.0f} s)", file=sys.stderr, flush=True)


class _Bar:
    """A bar of tqdm. It has a length if the total is known, else it shows the stage and the
    time."""

    _STAGE = "{desc} [{elapsed}{postfix}]"
    _SEARCH = "{desc} {percentage:3.0f}%|{bar:30}| {n_fmt} of {total_fmt} [{elapsed}{postfix}]"

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(file=sys.stderr, bar_format=self._STAGE, delay=1e-9)  # silent before an update

    def update(self, state: Mapping[str, Any], seconds: float) -> None:
        bar = self._bar
        bar.start_t = time.time() - seconds  # start of the call, not of the bar
        total = state.get("total") or None
        bar.total = total
        bar.bar_format = self._SEARCH if total else self._STAGE
        bar.n = state.get("done", 0)
        done = f" {state['done']:,}" if "done" in state and not total else ""
        bar.set_description_str(f"monet: {state.get('phase', 'working')}{done}", refresh=False)
        bar.set_postfix_str(_figures(state), refresh=False)
        bar.refresh()

    def close(self, word: str, seconds: float) -> None:
        self.update({"phase": word}, seconds)
        self._bar.close()
