#!/usr/bin/env python3
"""Writes docs/validation.md: MONET's figures next to figures that others published or measured.

    tools/validation_table.py build/release/apps/monet/monet                   # writes the page
    tools/validation_table.py build/release/apps/monet/monet --check           # fails if the page differs
    tools/validation_table.py build/release/apps/monet/monet --only zigzag     # prints one section

`--keep` leaves the input files of the page's commands under out/validation/, so that the commands run as printed.

A section is a module in tools/validation/ with a function `section(tool) -> Section`. SECTIONS below has its name.
1. Write the published figures, with their source, into the module or into a CSV file or fixture next to it.
2. Pass `tool.run("monet ... --json -")` the command as a reader types it in the repository's root, and read our figure
   from its JSON. `tool.file(NAME, CONTENT)` writes an input file of a command and returns its name.
3. Return `Section(title, published, [Block(text, [Row(what, [(published, ours), ...], [command], taken, unit, kind)])],
   explained, falsified)`. The tool computes the errors. A row with several pairs is a set: the page shows its mean and
   worst error.
"""

import argparse
import difflib
import importlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # keeps __pycache__ out of the sources
sys.path.insert(0, str(Path(__file__).resolve().parent))

from validation.section import KINDS, ROOT, SAME, Failed, Maker, Section, Tool, count, grid, mean_error, percent, render, worst_error

PAGE = ROOT / "docs" / "validation.md"
SECTIONS = ("chips", "gpu", "pulp", "areas", "imc", "memories", "fpga", "clusters", "interleaving", "pytorch", "numerics", "zigzag", "stream", "accelforge")

HEAD = """\
# Compared with published figures

`tools/validation_table.py` writes this page: do not edit it by hand. The slow suite runs the tool and fails if the
page differs (`docs.validation_table`).

The page compares figures that others published or measured with MONET's, called *ours*. Each row refers to the command
that gives our figure. Type the commands in the repository's root.

- *Error* is ours less the published figure, as a share of the published one. "none" is less than {same:.0e}; figures
  this close count as "equal".
- A number in brackets is the number of a command.
- Every command ends with `--json -`. *Ours is* has the JSON key of the figure.
- `tools/validation_table.py MONET --keep` writes the files under `out/validation/`.

The value of a comparison depends on its kind:

- *A program that ours must equal*: agreement shows that ours equals it, not that either is right about silicon.
- *Hardware, measured or published, nothing fitted*: agreement is evidence for the model.
- *Figures that constants were fitted to*: agreement shows how well a few constants can fit.
"""


def anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def summary(sections: list[Section]) -> str:
    rows = []
    for section in sections:
        for kind in KINDS:
            held = section.rows(kind)
            if held:
                rows.append([f"[{section.title}](#{anchor(section.title)})", kind, f"{count(held):,}",
                             percent(mean_error(held), ""), percent(worst_error(held))])  # fmt: skip
    return grid(["section", "compared with", "figures", "mean error", "worst error"], rows)


def make(tool: Tool, names: tuple[str, ...]) -> list[Section]:
    makers: list[Maker] = [importlib.import_module(f"validation.{name}").section for name in names]
    with ThreadPoolExecutor(len(makers)) as pool:
        return list(pool.map(lambda maker: maker(tool), makers))


def write_aside(path: Path, text: str) -> None:
    """Writes a temporary file and renames it, so that the page is never incomplete."""
    aside = path.with_suffix(".tmp")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def compare(committed: str, text: str) -> None:
    """Prints the lines that differ and exits if the page differs from the text."""
    if committed == text:
        return
    difference = difflib.unified_diff(committed.splitlines(), text.splitlines(), "docs/validation.md, as committed",
                                      "docs/validation.md, as the tool writes it now", lineterm="", n=1)  # fmt: skip
    print("\n".join(difference), file=sys.stderr)
    sys.exit("docs/validation.md differs from the tool's output: if the change is intended, run tools/validation_table.py again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet", help="path of the monet program")
    parser.add_argument("--only", choices=SECTIONS, help="print one section")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page differs")
    parser.add_argument("--jobs", type=int, default=2, help="number of commands that run in parallel")
    parser.add_argument("--keep", action="store_true", help="keep the commands' input files under out/validation/")
    arguments = parser.parse_args()
    tool = Tool(arguments.monet, arguments.jobs, arguments.keep)
    try:
        sections = make(tool, (arguments.only,) if arguments.only else SECTIONS)
    except Failed as failed:
        sys.exit(str(failed))
    if arguments.only:
        text = render(sections[0])
        committed = PAGE.read_text(encoding="utf-8")
        begin = committed.find(f"## {sections[0].title}\n")
        end = committed.find("\n## ", begin + 1)
        if arguments.check:
            compare(committed[begin : end if end > 0 else None].rstrip("\n"), text.rstrip("\n"))
        else:
            print(text)
        return
    text = "\n".join([HEAD.format(same=SAME), summary(sections) + "\n", *map(render, sections)])
    if arguments.check:
        compare(PAGE.read_text(encoding="utf-8"), text)
    else:
        write_aside(PAGE, text)


if __name__ == "__main__":
    main()
