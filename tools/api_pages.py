#!/usr/bin/env python3
"""Writes docs/reference/api.md and docs/reference/api/STAGE.md: what the public headers declare, from their comments.

    tools/api_pages.py            # needs doxygen
    tools/api_pages.py --check    # writes nothing; fails where a page differs
"""

import argparse
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "monet"
PAGES = ROOT / "docs" / "reference"
SETTINGS = """\
INPUT = {headers}
FILE_PATTERNS = *.hpp
RECURSIVE = YES
STRIP_FROM_PATH = {include}
OUTPUT_DIRECTORY = {out}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
QUIET = YES
WARNINGS = NO
"""
NOTE = "Made by `tools/api_pages.py` from the comments of the public headers: do not edit by hand."


def parse(path: Path) -> xml.Element:
    return xml.parse(path).getroot()


def text_of(element: xml.Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    text = re.sub(r" (?=[&*>])|(?<=<) ", "", " ".join(text.split()))
    return "`" + text.replace("|", "\\|") + "`"


def file_comment(header: Path) -> str:
    """The first paragraph of the comment that a header begins with."""
    lines = []
    for line in header.read_text().splitlines():
        if not line.startswith("//") or not line[2:].strip() or line == "// Example:":
            break
        lines.append(line[2:].strip())
    return " ".join(lines)


def declaration(member: xml.Element) -> str:
    """A function's result, name and parameters without default values; of other members kind and name."""
    name = member.findtext("name", "")
    if member.get("kind") != "function":
        return f"{member.get('kind')} {name}"
    parameters = [" ".join(filter(None, (text_of(p.find("type")), p.findtext("declname")))) for p in member.findall("param")]
    result = re.sub(r"\b(constexpr|inline)\b *", "", text_of(member.find("type")))
    return f"{result} {name}({', '.join(parameters)})".strip()


def names_of(folder: Path) -> dict[str, list[tuple[int, str, str]]]:
    """Per header of include/monet: line, declaration and first sentence of every name that it declares."""
    found: dict[str, list[tuple[int, str, str]]] = {}

    def add(element: xml.Element, shown: str) -> None:
        place = element.find("location")
        if place is not None:
            entry = (int(place.get("line", "0")), shown, text_of(element.find("briefdescription")))
            found.setdefault(place.get("file", ""), []).append(entry)

    for entry in parse(folder / "index.xml").findall("compound"):
        compound = parse(folder / (entry.get("refid", "") + ".xml")).find("compounddef")
        if compound is None:
            continue
        short = compound.findtext("compoundname", "").removeprefix("monet::")
        if entry.get("kind") in ("class", "struct") and "::" not in short.removeprefix("stream::"):
            add(compound, f"{entry.get('kind')} {short}")
        if entry.get("kind") == "namespace" and not short.endswith("detail"):
            for member in compound.iter("memberdef"):
                add(member, declaration(member))
    return found


def pages() -> dict[Path, str]:
    with tempfile.TemporaryDirectory() as out:
        settings = SETTINGS.format(headers=HEADERS, include=HEADERS.parent, out=out)
        subprocess.run(["doxygen", "-"], input=settings, text=True, check=True, stdout=subprocess.DEVNULL)
        names = names_of(Path(out) / "xml")
    index = ["# The library's headers", "", NOTE, "", "A program links `monet::STAGE` and includes `monet/STAGE/HEADER`;",
             "[`examples/library`](../../examples/library/main.cpp) is one. A stage's page lists what its headers declare.",
             "After `cmake --install build/release`, `find_package(monet REQUIRED COMPONENTS STAGE)` finds the target",
             "([CMakeLists.txt](../../examples/library/CMakeLists.txt)).", ""]
    made = {}
    for stage in sorted(p for p in HEADERS.iterdir() if p.is_dir()):
        page = [f"# Headers of stage `{stage.name}`", "", NOTE, "Members of types are described in the headers.", ""]
        index += [f"## [{stage.name}](api/{stage.name}.md)", "", "| header | declares |", "|---|---|"]
        for header in sorted(stage.glob("*.hpp")):
            name = header.relative_to(HEADERS.parent).as_posix()
            index.append(f"| `{header.name}` | {cell(file_comment(header))} |")
            page += [f"## `{name}`", "", "| name | description |", "|---|---|"]
            page += [f"| {code(shown)} | {cell(brief)} |" for _, shown, brief in sorted(names.get(name, []))] + [""]
        index.append("")
        made[PAGES / "api" / f"{stage.name}.md"] = "\n".join(page).rstrip() + "\n"
    made[PAGES / "api.md"] = "\n".join(index).rstrip() + "\n"
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs")
    arguments = parser.parse_args()
    made = pages()
    stale = [path for path, page in made.items() if not path.exists() or path.read_text() != page]
    stale += [path for path in (PAGES / "api").glob("*.md") if path not in made]
    if arguments.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what the headers say: run tools/api_pages.py")
        return 1 if stale else 0
    (PAGES / "api").mkdir(exist_ok=True)
    for path in stale:
        if path in made:
            path.write_text(made[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
