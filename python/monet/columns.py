"""Tables as columns."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from monet import _monet, arguments


class Columns(Mapping[str, "np.ndarray[Any, Any]"]):
    """Columns of equal length by name, as NumPy arrays. Columns of a schedule are read-only views
    of the library's rows and keep the result alive."""

    def __init__(self, columns: Mapping[str, np.ndarray[Any, Any]]) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(f"columns: {type(columns).__name__} is not a mapping of names to arrays")
        self._columns = dict(columns)
        for name, column in self._columns.items():
            if not isinstance(column, np.ndarray) or column.ndim == 0:
                raise TypeError(f"columns[{name!r}]: {type(column).__name__} is not an array of rows")
            if len(column) != self.rows:
                raise ValueError(f"columns[{name!r}]: {len(column)} rows where others have {self.rows}")

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Columns:
        """Columns of the values `names` of each row. Without names, every key is used whose values
        are all numbers or text. A missing value is None, or NaN among numbers."""
        keys = names or list(dict.fromkeys(key for row in rows for key in row))
        columns = {}
        for key in keys:
            values = [row.get(key) for row in rows]
            if all(value is None or isinstance(value, int | float | str) for value in values):
                columns[key] = _column(values)
        return cls(columns)

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

    def front(self, *, minimise: Sequence[str] = (), maximise: Sequence[str] = ()) -> Columns:
        """The Pareto front: rows that no other row dominates in the given columns, sorted by the
        first of them. All equal rows remain, and rows with NaN do not."""
        signs = [*((name, 1.0) for name in arguments.several("minimise", minimise)),
                 *((name, -1.0) for name in arguments.several("maximise", maximise))]  # fmt: skip
        if not signs:
            raise ValueError("minimise: no column to be best in")
        points = np.column_stack([sign * self._numbers(name) for name, sign in signs])
        left = np.flatnonzero(~np.isnan(points).any(axis=1))
        left = left[np.lexsort(points[left].T[::-1])]
        kept = []
        while len(left):
            kept.append(left[0])  # no remaining row dominates it
            left = left[1:]
            others, best = points[left], points[kept[-1]]
            left = left[(others < best).any(axis=1) | (others == best).all(axis=1)]
        return Columns({name: column[kept] for name, column in self._columns.items()})

    def _numbers(self, name: object) -> np.ndarray[Any, Any]:
        if not isinstance(name, str) or name not in self._columns:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(self._columns)}")
        column = self._columns[name]
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            raise ValueError(f"column {name!r} has no numbers")
        return np.asarray(column, dtype=np.float64)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, which copies the columns. Raises ImportError without pandas."""
        return importlib.import_module("pandas").DataFrame(self._columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """A record batch in Arrow's C data interface, for pyarrow.record_batch(columns) and other
        consumers. Views of rows are copied, because Arrow requires contiguous columns."""
        return _monet.arrow_array(self._columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A table of one batch, for pyarrow.table(columns) and polars.DataFrame(columns)."""
        return _monet.arrow_stream(self._columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, ({name: np.ascontiguousarray(column) for name, column in self._columns.items()},)

    def _rows_shown(self) -> tuple[list[list[str]], str]:
        """The texts of the first rows, and a note on the number of further rows."""
        shown = min(self.rows, _ROWS_SHOWN)
        rows = [[_text(column[i]) for column in self._columns.values()] for i in range(shown)]
        return rows, f"{self.rows - shown:,} more rows" if self.rows > shown else ""

    def __str__(self) -> str:
        """A table of the first rows: text at the left, numbers at the right."""
        rows, more = self._rows_shown()
        lines = [""] * (len(rows) + 1)
        for i, (name, column) in enumerate(self._columns.items()):
            cells = [name, *(row[i] for row in rows)]
            width = max(map(len, cells))
            place = str.ljust if column.dtype == object else str.rjust
            lines = [f"{line}  {place(cell, width)}" for line, cell in zip(lines, cells)]
        return "\n".join([*(line[2:].rstrip() for line in lines), *([more] if more else [])])

    def _repr_html_(self) -> str:
        rows, more = self._rows_shown()
        sides = ["left" if column.dtype == object else "right" for column in self._columns.values()]

        def line(tag: str, cells: Iterable[str]) -> str:
            styled = (f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>' for side, cell in zip(sides, cells))
            return f"<tr>{''.join(styled)}</tr>"

        body = "".join(line("td", row) for row in rows)
        note = f"<p>{more}</p>" if more else ""
        return f"<div><table><thead>{line('th', self._columns)}</thead><tbody>{body}</tbody></table>{note}</div>"

    def __repr__(self) -> str:
        return f"Columns({self.rows} rows: {', '.join(self._columns)})"


_ROWS_SHOWN = 40


def _text(value: Any) -> str:
    """A cell of a table on one line."""
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _column(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return np.array(values, dtype=bool)
    if kinds <= {int} and all(abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    if kinds <= {int, float, type(None)}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.array(values, dtype=object)
