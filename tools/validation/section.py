"""The parts of a section of docs/validation.md, and the class that runs MONET for its figures."""

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
WRITTEN = "out/validation"  # folder of the files that modules write, as commands name it
SAME = 1e-9  # relative difference that compilers and libraries may cause
Pair = tuple[float, float]  # published, ours

# Kinds of comparison: what a row is compared with.
MODEL = "a program that ours must equal"
CHIP = "hardware, measured or published, nothing fitted"
FITTED = "figures that constants were fitted to"
KINDS = (MODEL, CHIP, FITTED)


def same(published: float, ours: float) -> bool:
    return abs(ours - published) <= SAME * max(abs(ours), abs(published))


def error(pair: Pair) -> float:
    """Our figure less the published one, as a share of the published one."""
    published, ours = pair
    if same(published, ours):
        return 0.0
    return ours / published - 1 if published else float("inf")


@dataclass(frozen=True)
class Row:
    """A published figure and ours, or a set of such pairs."""

    what: str
    pairs: list[Pair]
    commands: list[str]  # that give our figures, as a reader types them
    taken: str  # the JSON key of our figures
    unit: str = ""
    kind: str = MODEL
    counted: bool = True  # in the summary; False for rows shown for comparison only


@dataclass(frozen=True)
class Block:
    """A text, followed by rows or by a table with other columns."""

    text: str = ""
    rows: list[Row] = field(default_factory=list)
    header: list[str] = field(default_factory=list)  # of `table`
    table: list[list[str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # of `table`
    after: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    published: str  # the published figures, their authors and their source
    blocks: list[Block]
    explained: str  # reasons for the differences
    falsified: str  # measurements that would falsify the model

    def rows(self, kind: str | None = None) -> list[Row]:
        rows = [row for block in self.blocks for row in block.rows if row.counted]
        return [row for row in rows if kind in (None, row.kind)]


class Failed(Exception):
    """A command that failed, with its error output."""


class Tool:
    """Runs `monet`: each command once, a few in parallel."""

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
        """Writes a file and returns its name in commands. JSON is valid YAML."""
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
        """Returns the actual path of a file that commands refer to by `name`."""
        return Path(name.replace(WRITTEN, str(self.folder)))

    def start(self, command: str) -> Future[Any]:
        with self.lock:
            if command not in self.runs:
                self.runs[command] = self.pool.submit(self._run, command)
            return self.runs[command]

    def run(self, command: str) -> Any:
        """Returns the JSON that the command writes to standard output."""
        return self.start(command).result()

    def run_all(self, commands: Iterable[str]) -> list[Any]:
        return [future.result() for future in [self.start(command) for command in commands]]

    def _run(self, command: str) -> Any:
        words = shlex.split(command)
        if words[0] != "monet":
            raise ValueError(f"not a command of monet: {command}")
        words = [word.replace(WRITTEN, str(self.folder)) for word in words[1:]]
        done = subprocess.run([self.monet, *words], capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode} of: {command}\n{done.stderr.strip()}")
        return json.loads(done.stdout)


def number(value: float) -> str:
    """Formats whole numbers in full and other numbers with four digits."""
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
    """Formats a table. A column after the first is right-aligned if all its cells begin like numbers."""

    def numeric(column: int) -> bool:
        cells = [row[column] for row in rows if row[column]]
        return column > 0 and bool(cells) and all(cell[0] in "+-0123456789" or cell == "none" for cell in cells)

    marks = ["---:" if numeric(column) else "---" for column in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


class Numbered:
    """Numbers the commands of a section in order of appearance."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}

    def of(self, commands: list[str]) -> int:
        return self.numbers.setdefault(tuple(commands), len(self.numbers) + 1)

    def shell(self, all_commands: list[list[str]]) -> str:
        """Formats the commands that are not shown yet; for a list of similar commands, the first one."""
        lines = []
        for commands in all_commands:
            if tuple(commands) in self.numbers:
                continue
            place = self.of(commands)
            more = f", the first of {len(commands)}" if len(commands) > 1 else ""
            lines.append(f"{commands[0]}  # ({place}{more})")
        return "```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


def figures(rows: list[Row], numbered: Numbered) -> str:
    """Formats a table of single figures and a table of sets."""
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
