"""What a section of docs/validation.md is made of, and the tool that its figures come from."""

import json
import shlex
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
WRITTEN = "out/validation"  # where commands find the files that modules write
SAME = 1e-9  # relative: what compilers and libraries may differ by
Pair = tuple[float, float]  # published, ours

# What a row is held against.
MODEL = "a program that ours has to equal"
CHIP = "hardware as measured or published, nothing fitted"
FITTED = "figures that constants were fitted to"
KINDS = (MODEL, CHIP, FITTED)


def same(published: float, ours: float) -> bool:
    return abs(ours - published) <= SAME * max(abs(ours), abs(published))


def error(pair: Pair) -> float:
    """Ours less published, as a part of the published."""
    published, ours = pair
    if same(published, ours):
        return 0.0
    return ours / published - 1 if published else float("inf")


@dataclass(frozen=True)
class Row:
    """One published figure, or a set of them, beside ours."""

    what: str
    pairs: list[Pair]
    commands: list[str]  # that gave them, as a reader types them
    taken: str  # what of their JSON the figures are
    unit: str = ""
    kind: str = MODEL
    counted: bool = True  # in the summary; not where the row is there to compare


@dataclass(frozen=True)
class Block:
    """A text, and rows or a table of other columns below it."""

    text: str = ""
    rows: list[Row] = field(default_factory=list)
    header: list[str] = field(default_factory=list)  # of a table that is no list of rows
    table: list[list[str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # of the table
    after: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    published: str  # what was published, by whom and where
    blocks: list[Block]
    explained: str  # what explains the differences
    falsified: str  # what would falsify the model

    def rows(self, kind: str | None = None) -> list[Row]:
        rows = [row for block in self.blocks for row in block.rows if row.counted]
        return [row for row in rows if kind in (None, row.kind)]


class Failed(Exception):
    """A command that did not end well, with its words."""


class Tool:
    """Runs `monet`, each command once, a few at a time."""

    def __init__(self, monet: str, jobs: int, keep: bool) -> None:
        self.monet = str(Path(monet).resolve())
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = ROOT / WRITTEN if keep else Path(self.scratch.name)
        self.runs: dict[str, Future[Any]] = {}
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(jobs)

    root = ROOT

    def read_json(self, path: str) -> Any:
        return json.loads((ROOT / path).read_text(encoding="utf-8"))

    def file(self, name: str, content: str | dict[str, Any] | list[Any] | bytes) -> str:
        """Writes a file and gives its name in commands. JSON is YAML, too."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return f"{WRITTEN}/{name}"

    def path(self, name: str) -> Path:
        """Where a file lies that commands call so."""
        return Path(name.replace(WRITTEN, str(self.folder)))

    def start(self, command: str) -> Future[Any]:
        with self.lock:
            if command not in self.runs:
                self.runs[command] = self.pool.submit(self._run, command)
            return self.runs[command]

    def run(self, command: str) -> Any:
        """The JSON that the command writes to standard output."""
        return self.start(command).result()

    def run_all(self, commands: Iterable[str]) -> list[Any]:
        return [future.result() for future in [self.start(command) for command in commands]]

    def _run(self, command: str) -> Any:
        words = shlex.split(command)
        if words[0] != "monet":
            raise ValueError(f"no command of monet: {command}")
        words = [word.replace(WRITTEN, str(self.folder)) for word in words[1:]]
        done = subprocess.run([self.monet, *words], capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode} of: {command}\n{done.stderr.strip()}")
        return json.loads(done.stdout)


def number(value: float) -> str:
    """Whole numbers in full, others with four digits."""
    if abs(value - round(value)) <= SAME * abs(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(part: float, sign: str = "+") -> str:
    if part == 0:
        return "none"
    if part == float("inf"):
        return "no bound"
    if abs(part) < 5e-4:
        return f"{100 * part:{sign}.1g} %"
    return f"{100 * part:{sign}.1f} %"


def mean_error(rows: Iterable[Row]) -> float:
    return statistics.fmean(abs(error(pair)) for row in rows for pair in row.pairs)


def worst_error(rows: Iterable[Row]) -> float:
    return max((error(pair) for row in rows for pair in row.pairs), key=abs)


def count(rows: Iterable[Row]) -> int:
    return sum(len(row.pairs) for row in rows)


def grid(header: list[str], rows: list[list[str]]) -> str:
    """Columns but the first are aligned to the right where all of their cells begin like numbers."""

    def numeric(column: int) -> bool:
        cells = [row[column] for row in rows if row[column]]
        return column > 0 and bool(cells) and all(cell[0] in "+-0123456789" or cell == "none" for cell in cells)

    marks = ["---:" if numeric(column) else "---" for column in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


class Numbered:
    """The commands of a section, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}

    def of(self, commands: list[str]) -> int:
        return self.numbers.setdefault(tuple(commands), len(self.numbers) + 1)

    def shell(self, all_commands: list[list[str]]) -> str:
        """Those that have not been shown yet; of several alike the first."""
        lines = []
        for commands in all_commands:
            if tuple(commands) in self.numbers:
                continue
            place = self.of(commands)
            more = f", the first of {len(commands)}" if len(commands) > 1 else ""
            lines.append(f"{commands[0]}  # ({place}{more})")
        return "```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


def figures(rows: list[Row], numbered: Numbered) -> str:
    """Tables of single figures and of sets."""
    single = [
        [row.what, number(row.pairs[0][0]), number(row.pairs[0][1]), row.unit, percent(error(row.pairs[0])),
         f"{row.taken} ({numbered.of(row.commands)})"]
        for row in rows if len(row.pairs) == 1
    ]  # fmt: skip
    sets = [
        [row.what, number(len(row.pairs)), number(sum(same(*pair) for pair in row.pairs)),
         percent(mean_error([row]), ""), percent(worst_error([row])), f"{row.taken} ({numbered.of(row.commands)})"]
        for row in rows if len(row.pairs) > 1
    ]  # fmt: skip
    tables = []
    if single:
        tables.append(grid(["figure", "published", "ours", "unit", "error", "ours is"], single))
    if sets:
        tables.append(grid(["figures", "number", "equal", "mean error", "worst error", "ours is"], sets))
    return "\n\n".join(tables) + "\n"


def render(section: Section) -> str:
    numbered = Numbered()
    parts = [f"## {section.title}\n", section.published + "\n"]
    for block in section.blocks:
        if block.text:
            parts.append(block.text + "\n")
        shell = numbered.shell([row.commands for row in block.rows] + [[one] for one in block.commands])
        if shell:
            parts.append(shell)
        if block.rows:
            parts.append(figures(block.rows, numbered))
        if block.table:
            parts.append(grid(block.header, block.table) + "\n")
        if block.after:
            parts.append(block.after + "\n")
    parts.append(f"**What explains it.** {section.explained}\n")
    parts.append(f"**What would falsify it.** {section.falsified}\n")
    return "\n".join(parts)


Maker = Callable[[Tool], Section]
