#!/usr/bin/env python3
"""Writes docs/validation.md: what the tool says of figures that others published or measured.

    tools/validation_table.py build/release/apps/monet/monet                   # all
    tools/validation_table.py build/release/apps/monet/monet --check           # fails where the page is another
    tools/validation_table.py build/release/apps/monet/monet --only zigzag     # prints one section

`--keep` leaves the files that commands of the page name under out/validation/, so that they can be typed as they stand.

A section is a module in tools/validation/ with a function `section(tool) -> Section`, and its name in SECTIONS below:
1. Write published figures into the module, or into a CSV or a fixture beside it, with their source.
2. Give `tool.run("monet ... --json -")` the command as a reader types it, from the repository's root, and take ours from its JSON;
   `tool.file(NAME, CONTENT)` writes what a command reads and returns its name.
3. Return `Section(title, published, [Block(text, [Row(what, [(published, ours), ...], [command], taken, unit, kind)])], explained,
   falsified)`. The tool computes errors; several pairs in a row are a set, of which the mean and the worst are shown.
"""

import argparse
import difflib
import importlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # beside the sources
sys.path.insert(0, str(Path(__file__).resolve().parent))

from validation.section import KINDS, ROOT, SAME, Failed, Maker, Section, Tool, count, grid, mean_error, percent, render, worst_error

PAGE = ROOT / "docs" / "validation.md"
SECTIONS = ("chips", "gpu", "pulp", "areas", "imc", "memories", "fpga", "clusters", "interleaving", "pytorch", "numerics", "zigzag", "stream", "accelforge")

HEAD = """\
# Compared with published figures

Made by `tools/validation_table.py`: do not edit by hand. The slow suite runs it and fails where a figure is another (`docs.validation_table`).

Every figure that somebody else published or measured and that this tool was held against, with the command that gives ours, typed from the repository's root. Errors are ours
less the published, as a part of the published; "none" is less than {same:.0e}, and "equal" figures are so near. A number in brackets is the command that a figure is taken from.
Files under `out/validation/` are written by `tools/validation_table.py MONET --keep`. Every command ends with `--json -`: what is taken from it is named as it is called there.

What a figure is worth depends on what it is held against: a program that ours has to equal (agreement shows that it does so, not that either is right about silicon), hardware that
nothing was fitted to, or figures that constants were fitted to (agreement shows how well so few constants can do).
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
    return grid(["section", "held against", "figures", "mean error", "worst error"], rows)


def make(tool: Tool, names: tuple[str, ...]) -> list[Section]:
    makers: list[Maker] = [importlib.import_module(f"validation.{name}").section for name in names]
    with ThreadPoolExecutor(len(makers)) as pool:
        return list(pool.map(lambda maker: maker(tool), makers))


def write_aside(path: Path, text: str) -> None:
    aside = path.with_suffix(".tmp")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def compare(committed: str, text: str) -> None:
    """Exits where the page is another, and says in which lines."""
    if committed == text:
        return
    difference = difflib.unified_diff(committed.splitlines(), text.splitlines(), "docs/validation.md, as committed",
                                      "docs/validation.md, as the tool says now", lineterm="", n=1)  # fmt: skip
    print("\n".join(difference), file=sys.stderr)
    sys.exit("docs/validation.md is not what the tool says: if the change is meant, run tools/validation_table.py again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet", help="the tool")
    parser.add_argument("--only", choices=SECTIONS, help="print one section")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page differs")
    parser.add_argument("--jobs", type=int, default=2, help="commands at a time")
    parser.add_argument("--keep", action="store_true", help="leave written files under out/validation/")
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
