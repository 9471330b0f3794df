"""Number formats and emulated units, bit by bit."""

import ast
import math
import struct
import tarfile

from validation.section import MODEL, Block, Pair, Row, Section, Tool

FIXTURES = "tests/fixtures/numerics.tar"
CODES = {"<f4": "f", "<f8": "d", "|u1": "B"}
# Columns: reference file, operands, and the options of `monet formats` for the unit.
PRODUCTS = (("e5m2_mulE5M2_addE6M5_sub", "e5m2", "--mul e5m2 --acc e6m5"),
            ("e5m2_mulE6M5_addE6M5_sub", "e5m2", "--mul e6m5 --acc e6m5"),
            ("e4m3_mulE4M3_addE5M10_sub", "e4m3", "--mul e4m3 --acc e5m10"),
            ("e4m2_mulE5M5_addE5M5_sub", "e4m2", "--mul e5m5 --acc e5m5"),
            ("e5m2_fmaE5M10_sub", "e5m2", "--mul exact --acc e5m10 --fma"), ("e5m2_fxp_Q8.13", "e5m2", "--mul q8.13 --acc q8.13"))
# Columns: element, shape of the blocks in file names, and the options of `monet formats`.
BLOCKS = (("fp4_e2m1", "row1x32", "--format mxfp4_e2m1"), ("fp8_e5m2", "row1x32", "--format mxfp8_e5m2"),
          ("int8", "row1x32", "--format mxint8"), ("fp8_e4m3", "sq8x8", "--format mxfp8_e4m3 --block 8x8"))


def array_of(data: bytes) -> list[float]:
    """Returns the numbers of a .npy file."""
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + size].decode())
    count = math.prod(header["shape"])
    return list(struct.unpack_from(f"<{count}{CODES[header['descr']]}", data, 10 + size))


def read_array(tool: Tool, name: str) -> list[float]:
    return array_of(tool.path(name).read_bytes())


def bits(theirs: list[float], ours: list[float]) -> list[Pair]:
    """Pairs the numbers. Equal numbers count as equal, and so do two NaNs; signs of zeros are ignored."""
    return [(1.0, 1.0) if one == other or one != one and other != other else (one, other) for one, other in zip(theirs, ours, strict=True)]


def unpack(tool: Tool) -> dict[str, str]:
    """Extracts the archive and returns the names of its members in commands."""
    with tarfile.open(tool.root / FIXTURES) as archive:
        return {member.name: tool.file(f"numerics/given/{member.name}", archive.extractfile(member).read()) for member in archive}


def product_rows(tool: Tool, given: dict[str, str]) -> list[Row]:
    asked = []
    for name, operands, unit in PRODUCTS:
        out = tool.file(f"numerics/{name}.npy", b"")
        command = f"monet formats --gemm {given[f'gemm_A_{operands}.npy']} {given[f'gemm_B_{operands}.npy']} {unit} -o {out} --json -"
        asked.append((name, unit, out, command))
    tool.run_all(command for *_, command in asked)
    return [
        Row(f"24 x 96 by 96 x 20 in {name.split('_')[0]}, {unit}", bits(read_array(tool, given[f"gemm_{name}.npy"]), read_array(tool, out)),
            [command], "the file of `-o`", kind=MODEL)
        for name, unit, out, command in asked
    ]  # fmt: skip


def block_rows(tool: Tool, given: dict[str, str]) -> list[Row]:
    rows = []
    for element, shape, format_ in BLOCKS:
        files = {what: tool.file(f"numerics/{element}_{what}.npy", b"") for what in ("values", "scales", "codes")}
        command = (f"monet formats --quantise {given['mx_input_64x96.npy']} {format_} -o {files['values']} --scales {files['scales']}"
                   f" --codes {files['codes']} --json -")  # fmt: skip
        tool.run(command)
        references = {"values": f"exact_{element}_even_{shape}", "scales": f"exact_{element}_scaleE8M0_{shape}", "codes": f"codes_{element}_even_{shape}"}
        pairs = {what: bits(read_array(tool, given[f"{name}.npy"]), read_array(tool, files[what])) for what, name in references.items()
                 if f"{name}.npy" in given}  # fmt: skip
        rows += [Row(f"{element} in blocks {shape.lstrip('rowsq')}: {what}", some, [command], f"the file of `{'-o' if what == 'values' else '--' + what}`", kind=MODEL)
                 for what, some in pairs.items()]  # fmt: skip
    return rows


def section(tool: Tool) -> Section:
    given = unpack(tool)
    return Section(
        "Number formats",
        f"""\
Products of units in few bits, as `mptorch` computes them: sums in its order, with a rounding for every product and
sum; floating, fused and fixed. Microscaling blocks by the rules of the OCP's specification, of 64 rows with heavy
tails, zeros, subnormal numbers, ties and numbers near the largest (`{FIXTURES}`). Every number,
scale and code is compared.""",
        [Block("**Units:**", product_rows(tool, given)), Block("**Blocks:**", block_rows(tool, given))],
        "Nothing is left to explain. `readers_test --gtest_filter='Mac*'` also compares every code and\n"
        "every pair of codes of the six published variants of multipliers.",
        "A product, a block or a code that differs in one bit, although format, order of sums and\n"
        "rounding are the same.",
    )
