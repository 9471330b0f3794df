"""Losses of the training file: kinds, settings, several at once; tensors that no gradient passes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, zeros

WEIGHT = [0.5, 2.0, 1.0, 0.25, 1.5]


@net(lambda end=None: dict(net=nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 5)), end=end))
def network(m: Net, x: Tensor) -> Tensor:
    """Two layers, and what the loss wants them to end with."""
    y = m.net(x)
    return y if m.end is None else m.end(y)


def case(name: str, loss: dict | list, end: nn.Module | None = None, shape: tuple = (3, 6), **more: object) -> Case:
    return Case(f"chosen_{name}", lambda: network(end), [real("x", *shape)], loss, **more)


@net(lambda end=None: dict(conv=nn.Conv2d(2, 5, 3), end=end))
def pixels_net(m: Net, x: Tensor) -> Tensor:
    """Classes in axis 1 of four."""
    y = m.conv(x)
    return y if m.end is None else m.end(y)


@net(lambda: dict(conv=nn.Conv1d(3, 6, 3, padding=1), head=nn.Linear(6, 5)))
def speech(m: Net, x: Tensor) -> Tensor:
    """Log-probabilities of characters, a time after the other."""
    y = m.head(torch.relu(m.conv(x)).transpose(1, 2))
    return y.log_softmax(-1).transpose(0, 1)


@net(lambda: dict(trunk=nn.Sequential(nn.Linear(6, 7), nn.ReLU()), classes=nn.Linear(7, 5), box=nn.Linear(7, 4)))
def two_heads(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Classes and boxes of one trunk."""
    y = m.trunk(x)
    return m.classes(y), m.box(y)


@net(lambda: dict(
    encode=nn.Linear(6, 4), codes=nn.Parameter(torch.tensor([[0.5, -0.25], [0.125, 0.75], [-0.5, 0.25]])), decode=nn.Linear(4, 3),
))  # fmt: skip
def straight_through(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Rounded to a learned codebook forward, passed on as it is backward (VQ-VAE); both terms of the loss outside."""
    z = m.encode(x).reshape(-1, 2)
    nearest = (z[:, None] - m.codes).square().sum(-1).argmin(-1)
    chosen = m.codes[nearest]
    passed = z + (chosen - z).detach()
    return m.decode(passed.reshape(x.shape[0], 4)), (z - chosen.detach()).square().mean()


@net(lambda: dict(encode=nn.Sequential(nn.Linear(6, 5), nn.Tanh()), predict=nn.Linear(5, 5)))
def target(m: Net, a: Tensor, b: Tensor) -> Tensor:
    """Two views; no gradient passes the target's branch (BYOL, SimSiam)."""
    wanted = m.encode(b).detach()
    return -F.cosine_similarity(m.predict(m.encode(a)), wanted).mean()


@net(lambda: dict(cell=nn.RNNCell(4, 5), head=nn.Linear(5, 3)))
def window(m: Net, x: Tensor) -> Tensor:
    """Truncated backpropagation through time: the state is cut off after every second step."""
    state = torch.zeros(x.shape[0], 5, dtype=x.dtype)
    outputs = []
    for step in range(x.shape[1]):
        if step == 2:
            state = state.detach()
        state = m.cell(x[:, step], state)
        outputs.append(m.head(state))
    return torch.stack(outputs, 1)


def cases() -> Iterator[Case]:
    yield case("mse_sum", {"type": "mse", "reduction": "sum"})
    yield case("l1", {"type": "l1"})
    yield case("l1_sum", {"type": "l1", "reduction": "sum"})
    yield case("smooth_l1", {"type": "smooth_l1"})
    yield case("smooth_l1_beta", {"type": "smooth_l1", "beta": 0.25, "reduction": "sum"}, shape=(2, 3, 6))
    yield case("huber", {"type": "huber"})
    yield case("huber_delta", {"type": "huber", "delta": 0.4})
    yield case("bce", {"type": "bce"}, nn.Sigmoid())
    yield case("bce_sum", {"type": "bce", "reduction": "sum"}, nn.Sigmoid())
    yield case("bce_with_logits_sum", {"type": "bce_with_logits", "reduction": "sum", "pos_weight": WEIGHT})
    for reduction in ("mean", "sum", "batchmean"):
        yield case(f"kl_div_{reduction}", {"type": "kl_div", "reduction": reduction}, nn.LogSoftmax(-1))
    logs = {"type": "kl_div", "log_target": True, "reduction": "batchmean"}
    yield case("kl_div_of_logs", logs, nn.LogSoftmax(-1))
    weighted = {"weight": WEIGHT}
    for kind, end in (("cross_entropy", None), ("nll", nn.LogSoftmax(-1))):
        yield case(f"{kind}_weighted", {"type": kind, **weighted}, end)
        yield case(f"{kind}_sum", {"type": kind, "reduction": "sum"}, end)
        yield case(f"{kind}_weighted_sum", {"type": kind, "reduction": "sum", **weighted}, end)
        yield case(f"{kind}_weighted_ignored", {"type": kind, "ignore_index": 2, **weighted}, end, (4, 3, 6))
    yield case("nll", {"type": "nll"}, nn.LogSoftmax(-1))
    smooth = {"type": "cross_entropy", "label_smoothing": 0.1}
    yield case("cross_entropy_smooth", smooth, shape=(2, 3, 6))
    yield case("cross_entropy_smooth_weighted", {**smooth, **weighted})
    yield case("cross_entropy_smooth_sum", {**smooth, "reduction": "sum", "ignore_index": 1})
    image = [real("x", 2, 2, 5, 5)]
    pixels = {"type": "cross_entropy", **weighted}
    yield Case("chosen_pixels_weighted", pixels_net, image, pixels)
    nll = {"type": "nll", **weighted, "reduction": "sum"}
    yield Case("chosen_pixels_nll", lambda: pixels_net(nn.LogSoftmax(1)), image, nll)
    x = [real("x", 2, 3, 9)]
    for name, more in (("", {}), ("_sum", {"reduction": "sum"}), ("_zero_infinity", {"zero_infinity": True})):
        loss = {"type": "ctc", "target_length": 3, "blank": 4, **more}
        yield Case(f"chosen_ctc{name}", speech, x, loss)
    tight = {"type": "ctc", "target_length": 4, "blank": 4, "zero_infinity": True}
    yield Case("chosen_ctc_tight", speech, [real("x", 3, 3, 5)], tight)
    x, outputs = [real("x", 3, 6)], ("class", "box")
    of_class = {"type": "cross_entropy", "output": "class", "weight": WEIGHT}
    of_box = {"type": "smooth_l1", "output": "box", "scale": 0.5}
    yield Case("chosen_two_heads", two_heads, x, [of_class, of_box], outputs=outputs)
    third = {"type": "mse", "output": "box", "reduction": "sum", "scale": 0.01}
    yield Case("chosen_three_terms", two_heads, x, [of_box, of_class, third], outputs=outputs)
    elastic = [{"type": "mse"}, {"type": "l1", "scale": 0.1}]
    yield case("mse_and_l1", elastic, options={"micro_batches": 1})
    x = real("x", 3, 6)
    views = [real("a", 3, 6), real("b", 3, 6)]
    branch = {"detach": ["/encode/encode.1/Tanh_output_0"]}
    yield Case("detach_target", target, views, "in_graph", branch)
    state = {"detach": [{"tensor": "/cell_1/Tanh_output_0", "before": "/cell_2/*"}]}
    yield Case("detach_window", window, [real("x", 2, 4, 4)], "mse", state)
    passed = {"detach": ["/Sub_1_output_0"]}
    both = [{"type": "mse", "output": "output"}]
    yield Case("detach_straight_through", straight_through, [x], both, passed, outputs=("output", "commitment"))
