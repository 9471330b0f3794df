"""The families by name, and their cases."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from training_cases.framework import Case

FAMILIES = (
    "weights",
    "scalars",
    "buffers",
    "transformers",
    "recurrent",
    "scans",
    "routing",
    "control",
    "convolutions",
    "products",
    "generative",
    "graphs",
    "losses",
    "chosen_losses",
    "precision",
    "quantised",
    "borders",
    "sampled",
)


def all_cases(families: list[str] | None = None) -> Iterator[tuple[str, Case]]:
    seen: set[str] = set()
    for family in families or FAMILIES:
        for case in importlib.import_module(f"training_cases.{family}").cases():
            if case.name in seen:
                raise ValueError(f"two cases are called '{case.name}'")
            seen.add(case.name)
            yield family, case
