#!/usr/bin/env python3
"""Write tests/fixtures/losses.json: losses and gradients of the logits as PyTorch computes them.

The loss is part of the training step, not of the network, so these are not cases of
make_gradient_fixtures.py. Their numbers are from the same generator and summarised in the same way.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F

from gradient_cases.framework import Numbers, fnv1a64, summary

REPOSITORY = Path(__file__).resolve().parent.parent


def case(name: str, kind: str, shape: tuple[int, ...], scale: float = 2.0, **options) -> dict:
    """`options` are those of the training file; labels of -1 stand for the ignored class."""
    seed = fnv1a64(name) & 0xFFFFFFFF
    count = torch.Size(shape).numel()
    logits = torch.from_numpy(scale * Numbers("logits", seed).uniform(count)).reshape(shape)
    logits.requires_grad_()
    if kind == "cross_entropy":
        axis = options.get("class_axis", -1 if len(shape) == 3 else 1) % len(shape)
        labels = [size for i, size in enumerate(shape) if i != axis]
        classes = shape[axis]
        ignored = options.get("ignore_index")
        choices = classes + (1 if ignored is not None else 0)
        target = torch.from_numpy(Numbers("labels", seed).below(count // classes, choices))
        if ignored is not None:
            target = torch.where(target == classes, ignored, target)
        target = target.reshape(labels)
        loss = F.cross_entropy(logits.movedim(axis, 1), target, label_smoothing=options.get("label_smoothing", 0.0),
                               ignore_index=-100 if ignored is None else ignored)
    else:
        target = torch.from_numpy(Numbers("targets", seed).uniform(count)).reshape(shape)
        if kind == "mse":
            loss = F.mse_loss(logits, target)
        else:
            target = (target + 1) / 2
            weight = options.get("pos_weight")
            weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
            loss = F.binary_cross_entropy_with_logits(logits, target, pos_weight=weight)
    loss.backward()
    return {"name": name, "seed": seed, "kind": kind, "shape": list(shape), "scale": scale, "options": options,
            "labels": target.reshape(-1).tolist() if kind == "cross_entropy" else [], "loss": summary(loss, "loss"),
            "gradient": summary(logits.grad, "logits")}


def cases() -> list[dict]:
    found = []
    for shape in ((4, 5), (1, 2), (2, 3, 5), (2, 5, 3, 4), (2, 3, 2, 2, 2), (3, 1)):
        name = "x".join(map(str, shape))
        for smoothing in (0.0, 0.1, 1.0):
            for ignored in (None, -100, 1):
                if ignored is not None and shape in ((1, 2), (3, 1)):
                    continue
                options = {"label_smoothing": smoothing} if smoothing else {}
                if ignored is not None:
                    options["ignore_index"] = ignored
                label = f"cross_entropy_{name}_{smoothing}_{ignored}"
                found.append(case(label, "cross_entropy", shape, **options))
    found.append(case("cross_entropy_axis1_of_3", "cross_entropy", (2, 4, 5), class_axis=1))
    found.append(case("smoothed_axis1_of_3", "cross_entropy", (2, 4, 5), class_axis=1, label_smoothing=0.2))
    found.append(case("cross_entropy_last_of_4", "cross_entropy", (2, 3, 2, 5), class_axis=-1))
    found.append(case("cross_entropy_far", "cross_entropy", (4, 5), 900.0))
    for shape in ((4,), (2, 3), (2, 3, 4), (1, 1, 2, 2)):
        name = "x".join(map(str, shape))
        found.append(case(f"mse_{name}", "mse", shape))
        found.append(case(f"bce_{name}", "bce_with_logits", shape))
        found.append(case(f"bce_weighted_{name}", "bce_with_logits", shape, pos_weight=2.5))
    weights = [0.5, 1.0, 3.0]
    found.append(case("bce_weights", "bce_with_logits", (4, 3), pos_weight=weights))
    found.append(case("bce_far", "bce_with_logits", (3, 3), 900.0))
    found.append(case("bce_far_weighted", "bce_with_logits", (3, 3), 900.0, pos_weight=weights))
    return found


def main() -> None:
    lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in cases())
    path = REPOSITORY / "tests" / "fixtures" / "losses.json"
    path.write_text(f'{{"cases":[\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(cases())} cases")


if __name__ == "__main__":
    main()
