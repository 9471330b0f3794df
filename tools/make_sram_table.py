#!/usr/bin/env python3
"""Write src/hardware/sram_table.inc from a table of CACTI runs: tools/make_sram_table.py SRAM.csv

Columns used: node_nm, size_bytes, word_bits, rw_ports, read_pj_per_access, write_pj_per_access, area_mm2, access_ns.
Leakage is left out: it depends a thousandfold on the cells that a designer chooses.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src" / "hardware" / "sram_table.inc"
NODES = ("90", "65", "45", "32", "22")
FIGURES = ("read_pj_per_access", "write_pj_per_access", "area_mm2", "access_ns")


def exponent(value: str) -> int:
    number = int(value)
    if number & (number - 1):
        raise ValueError(f"{number} is no power of two")
    return number.bit_length() - 1


def main() -> None:
    cells: dict[tuple[int, int, int], dict[str, str]] = {}
    with open(sys.argv[1], newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            key = (1 if row["rw_ports"] == "1" else 2, exponent(row["size_bytes"]), exponent(row["word_bits"]))
            cells.setdefault(key, {})[row["node_nm"]] = ", ".join(row[name] for name in FIGURES)
    lines = ["// Written by tools/make_sram_table.py. A row: ports, log2 of bytes and of bits a word; then of each node,\n"
             f"// {', '.join(NODES)} nm: read and write pJ, mm2, ns. {{}}: CACTI gives none.\n"]
    for (ports, size, word), known in sorted(cells.items()):
        figures = [f"{{{known.get(node, '')}}}" for node in NODES]
        padded = " ".join(f"{text + ',':41}" for text in figures[:-1])
        lines.append(f"{{{ports}, {size}, {word:2}, {{{padded} {figures[-1]}}}}},\n")
    TARGET.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
