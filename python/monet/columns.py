"""Tables as columns."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Columns(Mapping[str, "np.ndarray[Any, Any]"]):
    """Columns of equal length by name, as NumPy arrays. Those of a schedule are read-only views of
    the library's own rows and keep the result alive."""

    def __init__(self, columns: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Length of each column."""
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def to_pandas(self) -> Any:
        """A pandas.DataFrame (which copies). ImportError without pandas."""
        return importlib.import_module("pandas").DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self.rows} rows: {', '.join(self._columns)})"
