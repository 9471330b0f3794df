#!/usr/bin/env python3
"""Write tests/fixtures/training/: small networks with their weights, and the expected results of a step.

The cases are in training_cases/, and the figures are PyTorch's. networks.tar has NAME.onnx of every
case, FAMILY.json a line of facts for each case. The same library versions write the same bytes.
"""

import argparse
import importlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import torch

from gradient_cases.framework import Input
from make_network_fixtures import REPOSITORY, shortened, tensor_record
from training_cases.framework import SEED, Case, double_model, export, file_names, terms, updated_statistics
from training_cases.oracle import Facts, facts

FOLDER = REPOSITORY / "tests" / "fixtures" / "training"
FAMILIES = (
    "buffers control convolutions generative losses precision products recurrent scans transformers weights".split()
)


def all_cases() -> Iterator[tuple[str, Case]]:
    """Returns the cases of all families. Their names are unique."""
    seen: set[str] = set()
    for family in FAMILIES:
        for case in importlib.import_module(f"training_cases.{family}").cases():
            if case.name in seen:
                raise ValueError(f"two cases are called '{case.name}'")
            seen.add(case.name)
            yield family, case


def input_record(given: Input) -> dict:
    record = {"name": given.name, "shape": list(given.shape)}
    if given.kind == "integer":
        return {**record, "range": given.range}
    return {**record, "offset": float(given.offset), "scale": float(given.scale)}


def target_record(case: Case, made: Facts) -> dict | list | None:
    """Describes the target in the form of the inputs; a list if there are several losses."""
    records = []
    for term, (name, numbers) in zip(terms(case), made.targets.items()):
        record = {"name": name, "shape": list(numbers.shape)}
        if term.of_classes:
            record["range"] = made.classes[name]
        else:
            record["offset"], record["scale"] = term.target_fill()
        records.append(record)
    return records if len(records) > 1 else records[0] if records else None


def statistics_record(made: Facts, names: dict[str, str], replaced: dict[str, str]) -> list[dict]:
    """Returns the running statistics after the step, and the tensors that hold them."""
    return [
        {**tensor_record(names[name], made.buffers[name]), "updated": replaced[names[name]]}
        for name in sorted(made.updated)
    ]


def numbers_record(made: Facts, names: dict[str, str], replaced: dict[str, str]) -> dict:
    gradients = []
    for name, gradient in made.trained.items():
        record = tensor_record(names[name], gradient)
        if made.is_rounding(name):
            record = {"name": names[name], "shape": list(gradient.shape), "rounding": True}
        gradients.append(record)
    return {"loss": made.loss, "gradients": gradients, "buffers": statistics_record(made, names, replaced)}


def record(family: str, case: Case, exported: onnx.ModelProto) -> dict:
    made = facts(case)
    names = file_names(exported, double_model(case))
    result = {
        "name": case.name,
        "family": family,
        "seed": SEED,
        "inputs": [input_record(given) for given in case.inputs],
        "loss_kind": case.loss,
        "target": target_record(case, made),
        "options": case.options,
        "parameters": made.parameters,
        "trained": [names[name] for name in made.trained],
        "float_buffers": [names[name] for name in made.buffers if name in names],
        "macs": made.macs,
        "eager_bytes": made.eager_bytes,
        "compare": case.compare,
    }
    if case.compare:
        result.update(numbers_record(made, names, updated_statistics(exported)))
    return shortened(result)


def made_case(family: str, case: Case) -> tuple[str, bytes]:
    """Returns the facts of a case as lines of text, and its network."""
    exported = export(case)
    text = json.dumps(record(family, case, exported), separators=(",", ":"))
    for key in ("parameters", "loss", "gradients", "buffers"):
        text = text.replace(f',"{key}":', f',\n"{key}":', 1)
    return text, exported.SerializeToString(deterministic=True)


def write_facts(family: str, texts: list[str], directory: Path) -> None:
    lines = ",\n".join(texts)
    (directory / f"{family}.json").write_text(f'{{"family":"{family}","cases":[\n{lines}\n]}}\n', encoding="utf-8")


def write_networks(networks: dict[str, bytes], directory: Path) -> None:
    with tarfile.open(directory / "networks.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(networks.items()):
            member = tarfile.TarInfo(f"{name}.onnx")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="DIR", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    texts: dict[str, list[str]] = {}
    networks = {}
    for family, case in all_cases():
        text, networks[case.name] = made_case(family, case)
        texts.setdefault(family, []).append(text)
    for family, lines in texts.items():
        write_facts(family, lines, arguments.output)
    write_networks(networks, arguments.output)
    print(f"{len(networks)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
