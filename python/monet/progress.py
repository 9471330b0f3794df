"""How far a long call is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

# True: a display; a callable is told the name of each stage, and of a search a dict with phase, done,
# total, best, bound and seconds_left.
Progress = bool | Callable[[Any], object] | None


@contextlib.contextmanager
def progress_of(progress: Progress) -> Iterator[Callable[[Any], object] | None]:
    """What the library calls. TypeError for anything else than a Progress."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        yield print
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress: {progress!r} is neither True nor callable")
