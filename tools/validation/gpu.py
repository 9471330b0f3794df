"""Products on an A100."""

from typing import Any

from validation.section import CHIP, FITTED, Block, Row, Section, Tool

HERTZ = 1.41e9
COMMAND = "monet core --hardware data/hardware/a100.yaml --workload examples/core/a100_products.yaml --json -"
PLAIN = COMMAND.replace(" --json", " --choice instruction-costs=off --json")
LEAST = 512  # minimum of each dimension of a large product

# Microseconds in fp16, one product at a time (LLMCompass, Zhang et al., ISCA 2024: its measurements of an A100).
MEASURED = {(64, 12288, 12288): 190.0, (128, 12288, 12288): 200.3, (256, 12288, 12288): 318.5, (512, 12288, 12288): 611.8,
            (1024, 12288, 12288): 1199.0, (2048, 12288, 12288): 2358.6, (4096, 12288, 12288): 4457.6,
            (8192, 12288, 12288): 8621.6, (16384, 12288, 12288): 17030.7, (32768, 12288, 12288): 35440.7, (8192, 64, 64): 29.6,
            (8192, 128, 128): 31.0, (8192, 256, 256): 35.6, (8192, 512, 512): 47.1, (8192, 1024, 1024): 92.7,
            (8192, 2048, 2048): 281.8, (8192, 4096, 4096): 1021.0, (8192, 8192, 8192): 3961.4, (8192, 16384, 16384): 15008.7,
            (8192, 32768, 32768): 61134.6}
HOST_FROM = (8192, 64, 64)  # the product that the host's time is fitted to


def microseconds(result: dict[str, Any]) -> dict[str, float]:
    return {layer["name"]: layer["latency_cycles"] / HERTZ * 1e6 for layer in result["layers"]}


def name(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


def section(tool: Tool) -> Section:
    ours, plain = map(microseconds, tool.run_all([COMMAND, PLAIN]))
    large = [size for size in MEASURED if min(size) >= LEAST]
    taken = "`latency_cycles` of `layers` at 1.41 GHz"

    def row(size: tuple[int, int, int], kind: str) -> Row:
        return Row(f"{name(size)}", [(MEASURED[size], ours[name(size)])], [COMMAND], taken, "us", kind)

    def together(what: str, figures: dict[str, float], command: str, counted: bool) -> Row:
        pairs = [(MEASURED[size], figures[name(size)]) for size in large]
        return Row(what, pairs, [command], taken, "us", CHIP, counted)

    small = [size for size in MEASURED if size not in large]
    return Section(
        "Products on an A100",
        """\
Products (rows x columns x terms) in fp16, one at a time, as measured for LLMCompass (Zhang et al., ISCA 2024).
`data/hardware/a100.yaml` has 108 multiprocessors with 20 MB of shared memory, 40 MB of cache and 2,039 GB/s, tiles in
waves, and a host that starts every kernel (docs/reference/hardware.md, *Processors and GPUs*).

Tiles and their shares are cuBLAS's. `sustained` is from another source's fastest product. The host's 26 us are the
overhead of the smallest product in this table, so that figure is fitted.""",
        [
            Block(f"Each dimension at least {LEAST}:", [row(size, CHIP) for size in large]),
            Block("Smaller products:", [row(size, FITTED if size == HOST_FROM else CHIP) for size in small]),
            Block(
                f"All products of at least {LEAST}, with the keys of a GPU and as an array that multiplies in every cycle:",
                [together("waves, host and sustained rate", ours, COMMAND, False),
                 together("an array without them", plain, PLAIN, False)],
            ),
        ],  # fmt: skip
        "Ours is slower than the large products by 1 to 7 %: a GPU below its power limit runs faster than\n"
        "the sustained rate, at which another source's search settled. Without the keys, the array multiplies in every cycle\n"
        "that registers and shared memory can feed it, as a dataflow accelerator would, and without a host's launch.",
        "Products of 512 to 2048 whose times do not step at whole waves of tiles; or a stream of\n"
        "small products that takes 26 us each: `host_cycles` would then not be the host's.",
    )
