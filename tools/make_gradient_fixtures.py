#!/usr/bin/env python3
"""Write tests/fixtures/gradients/: what PyTorch computes for the cases in tools/gradient_cases/.

Each family's file holds one case per line. The same library versions write the same bytes.
"""

import argparse
import importlib
import json
import sys
from collections import Counter
from pathlib import Path

import torch

REPOSITORY = Path(__file__).resolve().parent.parent
NOT_FAMILIES = {"__init__", "framework", "onnx_check"}


def families() -> list[str]:
    folder = REPOSITORY / "tools" / "gradient_cases"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in NOT_FAMILIES)


def write_family(family: str, directory: Path) -> None:
    module = importlib.import_module(f"gradient_cases.{family}")
    records = []
    for case in module.cases():
        try:
            records.append(case.record())
        except Exception as error:
            raise RuntimeError(f"{family}: case '{case.name}': {error}") from error
    names = Counter(record["name"] for record in records)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise ValueError(f"{family}: names used twice: {', '.join(repeated)}")
    lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
    text = f'{{"family":"{family}","cases":[\n{lines}\n]}}\n'
    (directory / f"{family}.json").write_text(text, encoding="utf-8")
    print(f"{family}: {len(records)} cases, {len(text)} bytes")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="FAMILY", action="append", choices=families())
    parser.add_argument("--output", metavar="DIR", type=Path, default=REPOSITORY / "tests" / "fixtures" / "gradients",
                        help="where the files go (default: tests/fixtures/gradients)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for family in arguments.only or families():
        write_family(family, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
