#!/usr/bin/env python3
"""Writes what follows from the JSON Schemas of results, docs/*.schema.json, which hold each figure once.

    tools/figures.py            # writes the files below
    tools/figures.py --check    # writes nothing; fails where a file differs

A property has its key, type, `description` and unit (`x-unit` of the type it refers to), and the places that show it:

    x-see       a link for the reference, after the description
    x-table     label of its row in the terminal's table of a step
    x-card      label of its card in the report page; x-narrow: without comparison with inference
    x-column    title of its column in the page's table of phases
    x-whole     the step's figure of which a phase has a part
    x-python    name of the property in Python
    x-run       true for the figures of a run that explorations keep, in tables, CSV files and stores
    x-sum       (of an object) name of the Python property that adds up its required figures

From them follow the tables below `<!-- HEAD: SCHEMA#NAME -->` in docs/reference/, where NAME is a definition, the rows of
the terminal's table, src/explore/shared/run_figures.inc, python/monet/figures.py and web/src/figures.ts.
"""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
Schema = dict[str, Any]
NOTE = "Written by scripts/generate.sh from docs/{}: do not edit by hand."
FORMATS = {"cycles": "count", "bytes": "bytes", "pJ": "energy"}  # unit -> format of the terminal's table


def unique(pairs: list[tuple[str, Any]]) -> Schema:
    """An object of JSON, whose keys must differ."""
    record = dict(pairs)
    if len(record) < len(pairs):
        sys.exit(f"a key is given twice: {', '.join(key for key, _ in pairs)}")
    return record


class Schemas:
    """The schemas by file name, with references resolved."""

    def __init__(self) -> None:
        paths = sorted((ROOT / "docs").glob("*.schema.json"))
        self.files = {path.name: json.loads(path.read_text(), object_pairs_hook=unique) for path in paths}

    def at(self, file: str, pointer: str) -> Schema:
        found = self.files[file]
        for part in pointer.strip("#/").split("/"):
            found = found[part] if part else found
        return found

    def resolved(self, file: str, schema: Schema) -> Schema:
        """The schema with what it refers to; its own keys win, and properties are joined."""
        if "$ref" not in schema:
            return schema
        base = self.resolved(file, self.at(file, schema["$ref"]))
        joined = {**base, **{key: value for key, value in schema.items() if key != "$ref"}}
        if "properties" in base and "properties" in schema:
            joined["properties"] = {**base["properties"], **schema["properties"]}
            joined["required"] = [*base.get("required", []), *schema.get("required", [])]
        return joined

    def record(self, file: str, schema: Schema) -> Schema:
        """The object that a schema describes, or that the items of its list are."""
        schema = self.resolved(file, schema)
        while schema.get("type") == "array" and isinstance(schema.get("items"), dict):
            schema = self.resolved(file, schema["items"])
        return schema

    def properties(self, file: str, name: str) -> Iterator[tuple[str, Schema, bool]]:
        """Key, resolved schema, and whether it is required, of each property of a definition."""
        record = self.record(file, self.at(file, f"$defs/{name}" if name else ""))
        for key, schema in record["properties"].items():
            yield key, {**self.resolved(file, schema), "ref": schema.get("$ref", "")}, key in record.get("required", [])


def meaning_of(schema: Schema) -> str:
    """The description as the cell of a table."""
    text = str(schema["description"]).rstrip(".").replace("|", "\\|")
    text = text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
    return text + (f": see {schema['x-see']}" if "x-see" in schema else "")


def reference_table(schemas: Schemas, head: str, file: str, name: str) -> str:
    """The keys of a definition, or those that only the whole result has; equal neighbours share a row."""
    rows: list[tuple[list[str], str, str]] = []
    for key, schema, _ in schemas.properties(file, name):
        if not name and key not in schemas.files[file]["properties"]:
            continue
        unit = schema.get("x-unit", "")
        row = ("" if unit == "1" else unit, meaning_of(schema))
        if rows and rows[-1][1:] == row:
            rows[-1][0].append(key)
        else:
            rows.append(([key], *row))
    lines = [f"| {head} | unit | meaning |", "|---|---|---|"]
    for keys, unit, meaning in rows:
        lines.append(f"| {', '.join(f'`{key}`' for key in keys)} | {unit} | {meaning} |")
    return "\n".join(lines) + "\n"


def pages(schemas: Schemas) -> Iterator[tuple[Path, str]]:
    """The pages of the reference, with their tables."""
    marked = re.compile(r"(<!-- (key[^:\n]*): (\S+?\.schema\.json)#(\w*) -->\n)(?:\|[^\n]*\n)*")
    for path in sorted((ROOT / "docs" / "reference").rglob("*.md")):
        text = path.read_text()
        if marked.search(text):
            yield path, marked.sub(lambda m: m[1] + reference_table(schemas, m[2], m[3], m[4]), text)


def table_rows(schemas: Schemas, name: str, at: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Label, place, place in a whole step if another, and format of the terminal's rows of a definition."""
    for key, schema, _ in schemas.properties("result.schema.json", name):
        where = f"{at}/{key}"
        if label := schema.get("x-table"):
            whole = "/" + schema.get("x-whole", "").replace(".", "/")
            yield label, where, whole if whole not in ("/", where) else "", FORMATS[schema["x-unit"]]
        if schema["ref"].startswith("#/$defs/") and schema.get("type") == "object" and not at:
            yield from table_rows(schemas, schema["ref"].removeprefix("#/$defs/"), where)


def summary_rows_inc(schemas: Schemas) -> str:
    rows = list(dict.fromkeys([*table_rows(schemas, "phases"), *table_rows(schemas, "step")]))
    lines = [f"// {NOTE.format('result.schema.json')}", "inline constexpr TableRow kSummaryRows[]{"]
    lines += [f'    {{"{label}", "{where}", "{whole}", TableRow::Unit::{unit}}},' for label, where, whole, unit in rows]
    return "\n".join([*lines, "};"]) + "\n"


def run_figures(schemas: Schemas) -> dict[str, Schema]:
    return {key: schema for key, schema, _ in schemas.properties("explore.schema.json", "design") if schema.get("x-run")}


def run_figures_inc(schemas: Schemas) -> str:
    lines = [f"// {NOTE.format('explore.schema.json')}", *(f"MONET_RUN_FIGURE({key})" for key in run_figures(schemas))]
    return "\n".join(lines) + "\n"


PYTHON_HEAD = '''"""Figures of results. {note}"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

'''
PYTHON_TYPES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}


def python_property(name: str, kind: str, value: str, text: str) -> list[str]:
    lines = ["    @property", f"    def {name}(self) -> {kind}:"]
    doc = textwrap.wrap(f'"""{text}"""', 92)
    return [*lines, *("        " + line for line in doc), f"        return {value}", ""]


def python_parts(schemas: Schemas, name: str, kind: str, text: str) -> list[str]:
    """A dict of figures of a definition, with properties."""
    lines = [f"class {name.capitalize()}(dict[str, {kind}]):", f'    """{text}"""', ""]
    names = []
    for key, schema, required in schemas.properties("result.schema.json", name):
        if attribute := schema.get("x-python"):
            lines += python_property(attribute, kind, f'self["{key}"]', schema["description"])
            names += [attribute] if required else []
    if total := schemas.at("result.schema.json", f"$defs/{name}").get("x-sum"):
        lines += python_property(total, kind, " + ".join("self." + one for one in names), "Total of all owners.")
    return [*lines, ""]


def figures_py(schemas: Schemas) -> str:
    file = "result.schema.json"
    lines = [PYTHON_HEAD.format(note=NOTE.format("*.schema.json"))]
    lines += python_parts(schemas, "energy", "float", "Energy in pJ by part, with the JSON's names as keys, and as attributes.")
    lines += python_parts(schemas, "memory", "int", "Bytes by owner at the peak, with the JSON's names as keys, and as attributes.")
    lines += ["class StepFigures:", '    """Figures of a step, read from its JSON."""', "", "    _figures: dict[str, Any]", ""]
    for key, schema, required in schemas.properties(file, "step"):
        if not (attribute := schema.get("x-python")):
            continue
        name = schema["ref"].rsplit("/", 1)[1]
        if schema.get("type") == "object":
            values = {one["type"] for _, one, _ in schemas.properties(file, name)}
            is_class = name in PARTS
            kind = name.capitalize() if is_class else f"dict[str, {PYTHON_TYPES[values.pop()]}]"
            value = f'{kind if is_class else "dict"}(self._figures["{key}"])'
        else:
            kind = PYTHON_TYPES[schema["type"]]
            value = f'{kind}(self._figures["{key}"])' if required else f'self._figures.get("{key}")'
            kind += "" if required else " | None"
        lines += python_property(attribute, kind, value, schema["description"])
    lines += ["", "LAYER_COLUMNS: dict[str, Any] = {"]
    kinds = {"string": "object", "integer": "np.int64", "number": "np.float64"}
    for key, schema, required in schemas.properties(file, "layers"):
        if required and (kind := kinds.get("string" if "enum" in schema else schema.get("type", ""))):
            lines.append(f'    "{key}": {kind},')
    lines += ["}", '"""Columns of the layers, and the types of their values."""', "", ""]
    lines += ["class Figures(NamedTuple):", '    """Figures of one run (inference or training) of a design."""', ""]
    lines += [f"    {key}: {PYTHON_TYPES[schema['type']]}" for key, schema in run_figures(schemas).items()]
    return "\n".join(lines) + "\n"


INTERFACES = {"macs_by_gradient": "Macs", "step": "StepFigures", "phases": "PhaseFigures", "cores": "CoreFigures", "links": "LinkFigures",
              "layers": "LayerFigures"}  # fmt: skip
PARTS = {"memory": "ByOwner", "energy": "ByComponent"}


def reader_of(interface: str) -> str:
    return "read" + re.sub("(?=[A-Z])", "_", interface).lower()


def typescript_member(schema: Schema, required: bool) -> tuple[str, str]:
    """Type and reader of a property; empty if the viewer reads it by hand."""
    name = schema["ref"].rsplit("/", 1)[-1]
    if name in PARTS and schema.get("type") == "object":
        return PARTS[name], reader_of(PARTS[name]) + "({})"
    if name in INTERFACES and schema.get("type") == "object":
        return INTERFACES[name], reader_of(INTERFACES[name]) + "({})"
    if "enum" in schema or schema.get("type") == "string":
        return "string", "text({})"
    if schema.get("type") in ("integer", "number"):
        return ("number", "number({})") if required else ("number | null", "maybe({})")
    if schema.get("type") == "array" and schema["items"].get("$ref") == "#/$defs/count":
        return "number[]", "numbers({})"
    return "", ""


def typescript_parts(schemas: Schemas, name: str, constant: str, one: str) -> list[str]:
    """Names of the parts of a definition, its required figures, and the reader of their values."""
    record = PARTS[name]
    unit = "_pj" if name == "energy" else "_bytes"
    keys = [key for key, _, required in schemas.properties("result.schema.json", name) if required and key.endswith(unit)]
    names = ", ".join(f'"{key.removesuffix(unit)}"' for key in keys)
    return [
        f"export const {constant} = [{names}] as const;", f"export type {one} = (typeof {constant})[number];",
        f"export type {record} = Record<{one}, number>;", "",
        f"export function {reader_of(record)}(value: unknown): {record} {{", "  const from = object(value);",
        f'  return Object.fromEntries({constant}.map((key) => [key, number(from[key + "{unit}"])])) as {record};', "}", "",
    ]  # fmt: skip


def typescript_record(schemas: Schemas, name: str) -> list[str]:
    interface = INTERFACES[name]
    members = [f"export interface {interface} {{"]
    values = [f"export function {reader_of(interface)}(value: unknown): {interface} {{", "  const from = object(value);", "  return {"]
    for key, schema, required in schemas.properties("result.schema.json", name):
        kind, reader = typescript_member(schema, required)
        if kind:
            members.append(f"  {key}: {kind}; // {schema['description'].rstrip('.')}")
            from_key = f'from["{key}"]'
            values.append(f"    {key}: {reader.format(from_key)},")
    return [*members, "}", "", *values, "  };", "}", ""]


def typescript_cards(schemas: Schemas, name: str, at: str = "step") -> Iterator[str]:
    for key, schema, _ in schemas.properties("result.schema.json", name):
        if label := schema.get("x-card"):
            compare = str(not schema.get("x-narrow", False)).lower()
            yield f'  {{ key: "{key}", label: "{label}", unit: "{schema["x-unit"]}", value: (step) => {at}.{key}, compare: {compare} }},'
        inner = schema["ref"].rsplit("/", 1)[-1]
        if inner in INTERFACES and schema.get("type") == "object":
            yield from typescript_cards(schemas, inner, f"{at}.{key}")


def typescript_columns(schemas: Schemas) -> Iterator[str]:
    for key, schema, _ in schemas.properties("result.schema.json", "phases"):
        if title := schema.get("x-column"):
            whole = f"(step) => step.{schema['x-whole']}" if "x-whole" in schema else "null"
            unit = schema["x-unit"]
            yield f'  {{ key: "{key}", title: "{title}", unit: "{unit}", whole: {whole} }},'


def figures_ts(schemas: Schemas) -> str:
    lines = [f"// {NOTE.format('result.schema.json')}", 'import { maybe, number, numbers, object, text } from "./json";', ""]
    lines += typescript_parts(schemas, "memory", "kOwners", "Owner")
    lines += typescript_parts(schemas, "energy", "kComponents", "Component")
    for name in INTERFACES:
        lines += typescript_record(schemas, name)
    lines += ["/// The cards of the key figures.",
              "export const kCards: { key: string; label: string; unit: string; value: (step: StepFigures) => number; compare: boolean }[] = [",
              *typescript_cards(schemas, "step"), "];", "",
              "/// The numbers of the table of phases; a phase has a part of the whole step's figure.",
              "export const kPhaseColumns = [", *typescript_columns(schemas),
              "] as const satisfies readonly { key: keyof PhaseFigures; title: string; unit: string; whole: ((step: StepFigures) => number) | null }[];"]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    check = parser.parse_args().check
    schemas = Schemas()
    made = dict(pages(schemas))
    made[ROOT / "src/report/summary_rows.inc"] = summary_rows_inc(schemas)
    made[ROOT / "src/explore/shared/run_figures.inc"] = run_figures_inc(schemas)
    made[ROOT / "python/monet/figures.py"] = figures_py(schemas)
    made[ROOT / "web/src/figures.ts"] = figures_ts(schemas)
    differing = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in differing:
        if check:
            print(f"{path.relative_to(ROOT)} differs from the schemas: run scripts/generate.sh", file=sys.stderr)
        else:
            path.write_text(made[path])
    return 1 if check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
