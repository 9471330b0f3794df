"""Losses of the training file: kinds, settings, several at once; tensors that no gradient passes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real

WEIGHT = [0.5, 2.0, 1.0, 0.25, 1.5]


def cases() -> Iterator[Case]:
    yield from of_elements()
    yield from of_classes()
    yield from of_sequences()
    yield from several()
    yield from with_detached()


class Network(nn.Module):
    """Two layers, and what the loss wants them to end with."""

    def __init__(self, end: nn.Module | None = None) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 5))
        self.end = end

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        return y if self.end is None else self.end(y)


def case(name: str, loss: dict | list, end: nn.Module | None = None, shape: tuple = (3, 6), **more: object) -> Case:
    return Case(f"chosen_{name}", lambda: Network(end), [real("x", *shape)], loss, tags=["loss"], **more)


def of_elements() -> Iterator[Case]:
    yield case("mse_sum", {"type": "mse", "reduction": "sum"})
    yield case("l1", {"type": "l1"}, steps="adam")
    yield case("l1_sum", {"type": "l1", "reduction": "sum"})
    yield case("smooth_l1", {"type": "smooth_l1"})
    yield case("smooth_l1_beta", {"type": "smooth_l1", "beta": 0.25, "reduction": "sum"}, shape=(2, 3, 6))
    yield case("huber", {"type": "huber"})
    yield case("huber_delta", {"type": "huber", "delta": 0.4}, steps="momentum")
    yield case("bce", {"type": "bce"}, nn.Sigmoid())
    yield case("bce_sum", {"type": "bce", "reduction": "sum"}, nn.Sigmoid())
    yield case("bce_with_logits_sum", {"type": "bce_with_logits", "reduction": "sum", "pos_weight": WEIGHT})
    for reduction in ("mean", "sum", "batchmean"):
        yield case(f"kl_div_{reduction}", {"type": "kl_div", "reduction": reduction}, nn.LogSoftmax(-1))
    logs = {"type": "kl_div", "log_target": True, "reduction": "batchmean"}
    yield case("kl_div_of_logs", logs, nn.LogSoftmax(-1), steps="adam")


class Pixels(nn.Module):
    """Classes in axis 1 of four."""

    def __init__(self, end: nn.Module | None = None) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 5, 3)
        self.end = end

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return y if self.end is None else self.end(y)


def of_classes() -> Iterator[Case]:
    weighted = {"weight": WEIGHT}
    for kind, end in (("cross_entropy", None), ("nll", nn.LogSoftmax(-1))):
        yield case(f"{kind}_weighted", {"type": kind, **weighted}, end, steps="adam")
        yield case(f"{kind}_sum", {"type": kind, "reduction": "sum"}, end)
        yield case(f"{kind}_weighted_sum", {"type": kind, "reduction": "sum", **weighted}, end)
        yield case(f"{kind}_weighted_ignored", {"type": kind, "ignore_index": 2, **weighted}, end, (4, 3, 6))
    yield case("nll", {"type": "nll"}, nn.LogSoftmax(-1))
    smooth = {"type": "cross_entropy", "label_smoothing": 0.1}
    yield case("cross_entropy_smooth", smooth, shape=(2, 3, 6), steps="adam")
    yield case("cross_entropy_smooth_weighted", {**smooth, **weighted})
    yield case("cross_entropy_smooth_sum", {**smooth, "reduction": "sum", "ignore_index": 1})
    image, tags = [real("x", 2, 2, 5, 5)], ["loss"]
    pixels = {"type": "cross_entropy", **weighted}
    yield Case("chosen_pixels_weighted", Pixels, image, pixels, tags=tags)
    nll = {"type": "nll", **weighted, "reduction": "sum"}
    yield Case("chosen_pixels_nll", lambda: Pixels(nn.LogSoftmax(1)), image, nll, tags=tags)


class Speech(nn.Module):
    """Log-probabilities of characters, a time after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 6, 3, padding=1)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.head(torch.relu(self.conv(x)).transpose(1, 2))
        return y.log_softmax(-1).transpose(0, 1)


def of_sequences() -> Iterator[Case]:
    x, tags = [real("x", 2, 3, 9)], ["loss"]
    for name, more in (("", {}), ("_sum", {"reduction": "sum"}), ("_zero_infinity", {"zero_infinity": True})):
        loss = {"type": "ctc", "target_length": 3, "blank": 4, **more}
        yield Case(f"chosen_ctc{name}", Speech, x, loss, tags=tags, steps="" if name else "adam")
    tight = {"type": "ctc", "target_length": 4, "blank": 4, "zero_infinity": True}
    yield Case("chosen_ctc_tight", Speech, [real("x", 3, 3, 5)], tight, tags=tags)


class TwoHeads(nn.Module):
    """Classes and boxes of one trunk."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 7), nn.ReLU())
        self.classes = nn.Linear(7, 5)
        self.box = nn.Linear(7, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.trunk(x)
        return self.classes(y), self.box(y)


def several() -> Iterator[Case]:
    tags, x, outputs = ["loss"], [real("x", 3, 6)], ("class", "box")
    of_class = {"type": "cross_entropy", "output": "class", "weight": WEIGHT}
    of_box = {"type": "smooth_l1", "output": "box", "scale": 0.5}
    yield Case("chosen_two_heads", TwoHeads, x, [of_class, of_box], outputs=outputs, tags=tags, steps="adam")
    third = {"type": "mse", "output": "box", "reduction": "sum", "scale": 0.01}
    yield Case("chosen_three_terms", TwoHeads, x, [of_box, of_class, third], outputs=outputs, tags=tags)
    elastic = [{"type": "mse"}, {"type": "l1", "scale": 0.1}]
    yield case("mse_and_l1", elastic, options={"micro_batches": 1})


class StraightThrough(nn.Module):
    """Rounded to a learned codebook forward, passed on as it is backward (VQ-VAE); both terms of the loss outside."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(6, 4)
        self.codes = nn.Parameter(torch.tensor([[0.5, -0.25], [0.125, 0.75], [-0.5, 0.25]]))
        self.decode = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encode(x).reshape(-1, 2)
        nearest = (z[:, None] - self.codes).square().sum(-1).argmin(-1)
        chosen = self.codes[nearest]
        passed = z + (chosen - z).detach()
        return self.decode(passed.reshape(x.shape[0], 4)), (z - chosen.detach()).square().mean()


class Target(nn.Module):
    """Two views; no gradient passes the target's branch (BYOL, SimSiam)."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(6, 5), nn.Tanh())
        self.predict = nn.Linear(5, 5)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        wanted = self.encode(b).detach()
        return -F.cosine_similarity(self.predict(self.encode(a)), wanted).mean()


class Window(nn.Module):
    """Truncated backpropagation through time: the state is cut off after every second step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(4, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], 5, dtype=x.dtype)
        outputs = []
        for step in range(x.shape[1]):
            if step == 2:
                state = state.detach()
            state = self.cell(x[:, step], state)
            outputs.append(self.head(state))
        return torch.stack(outputs, 1)


def with_detached() -> Iterator[Case]:
    tags, x = ["loss", "detach"], real("x", 3, 6)
    views = [real("a", 3, 6), real("b", 3, 6)]
    branch = {"detach": ["/encode/encode.1/Tanh_output_0"]}
    yield Case("detach_target", Target, views, "in_graph", branch, tags)
    state = {"detach": [{"tensor": "/cell_1/Tanh_output_0", "before": "/cell_2/*"}]}
    yield Case("detach_window", Window, [real("x", 2, 4, 4)], "mse", state, tags, steps="adam")
    passed = {"detach": ["/Sub_1_output_0"]}
    both = [{"type": "mse", "output": "output"}]
    yield Case("detach_straight_through", StraightThrough, [x], both, passed, tags, outputs=("output", "commitment"))
