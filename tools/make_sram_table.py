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
FIGURES = ("read_pj_per_access", "write_pj_per_access", "area_mm2", "access_ns")


def exponent(value: str) -> int:
    number = int(value)
    if number & (number - 1):
        raise ValueError(f"{number} is no power of two")
    return number.bit_length() - 1


def main() -> None:
    lines = ["// Written by tools/make_sram_table.py: node, ports, log2 of bytes and of bits a word; read and write pJ, mm2, ns.\n"]
    with open(sys.argv[1], newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            ports = 1 if row["rw_ports"] == "1" else 2
            figures = ", ".join(row[name] for name in FIGURES)
            lines.append(
                f"{{{row['node_nm']}, {ports}, {exponent(row['size_bytes'])}, {exponent(row['word_bits'])}, {figures}}},\n"
            )
    TARGET.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
