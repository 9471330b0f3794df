"""Losses inside the network, whose only output is then the loss, and losses of the training file."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros

Loss = Callable[..., Tensor]


# PyTorch 1.13 cannot export its own mse_loss, l1_loss and triplet_margin_loss.
def squared(y: Tensor, t: Tensor) -> Tensor:
    return (y - t).square().mean()


def absolute(y: Tensor, t: Tensor) -> Tensor:
    return (y - t).abs().mean()


@net(lambda losses: dict(
    nets=nn.ModuleList(nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 5)) for _ in losses), losses=losses
))  # fmt: skip
def with_losses(m: Net, x: Tensor, *others: Tensor) -> Tensor:
    """The sum of functions of small networks' outputs and of other inputs."""
    return sum(loss(one(x), *others) for one, loss in zip(m.nets, m.losses))


def case(name: str, losses: list[Loss], *others: object) -> Case:
    return Case(name, lambda: with_losses(losses), [real("x", 3, 6), *others], "in_graph")


@net(lambda: dict(conv=nn.Conv2d(2, 4, 3)))
def pixels(m: Net, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy at every pixel."""
    return F.cross_entropy(m.conv(x), labels)


@net(lambda: dict(embed=nn.Embedding(7, 5), mix=nn.Linear(5, 5)))
def language_loss(m: Net, ids: Tensor) -> Tensor:
    """Next tokens: logits and labels are shifted and flattened, as in GPT-2."""
    logits = F.linear(torch.tanh(m.mix(m.embed(ids))), m.embed.weight)
    return F.cross_entropy(logits[:, :-1].reshape(-1, 7), ids[:, 1:].reshape(-1))


@net(lambda: dict(layer=nn.Linear(6, 5), class_weights=torch.linspace(0.5, 2.0, 5)))
def weighted_classes(m: Net, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with a weight for every class, a buffer."""
    return F.cross_entropy(m.layer(x), labels, weight=m.class_weights)


def binary(y: Tensor, t: Tensor) -> Tensor:
    p = torch.sigmoid(y)
    return -(t * torch.log(p) + (1.0 - t) * torch.log(1.0 - p)).mean()


def focal(y: Tensor, t: Tensor) -> Tensor:
    p = torch.sigmoid(y)
    right = p * t + (1.0 - p) * (1.0 - t)
    return (-(1.0 - right).square() * torch.log(right)).mean()


def dice(y: Tensor, t: Tensor) -> Tensor:
    p = torch.sigmoid(y)
    return 1.0 - (2.0 * (p * t).sum() + 1.0) / (p.sum() + t.sum() + 1.0)


def smooth(y: Tensor, t: Tensor) -> Tensor:
    """Huber's loss: a square up to a bound and a line beyond it."""
    size = (y - t).abs()
    near = size.clamp(max=0.5)
    return (0.5 * near.square() + 0.5 * (size - near)).mean()


def huber(x: Tensor) -> Tensor:
    size = x.abs()
    return torch.where(size < 0.5, 0.5 * x.square(), 0.5 * (size - 0.25))


@net(lambda: dict(body=nn.Linear(6, 8), classes=nn.Linear(8, 4), boxes=nn.Linear(8, 4)))
def two_heads(m: Net, x: Tensor, labels: Tensor, boxes: Tensor) -> Tensor:
    """Classes and boxes, weighted and added."""
    x = torch.relu(m.body(x))
    box = absolute(m.boxes(x), boxes)
    return F.cross_entropy(m.classes(x), labels) + 0.5 * box + 0.01 * x.square().mean()


@net(lambda: dict(first=nn.Linear(6, 3), second=nn.Linear(6, 2), first_log=zeros(), second_log=zeros()))
def uncertain(m: Net, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Weights of two losses that are trained themselves, scalars."""
    first, second = squared(m.first(x), y), squared(m.second(x), z)
    weighted = torch.exp(-m.first_log) * first + torch.exp(-m.second_log) * second
    return weighted + m.first_log + m.second_log


@net(lambda: dict(down=nn.Linear(6, 4), up=nn.Linear(2, 6)))
def variational_loss(m: Net, x: Tensor, noise: Tensor) -> Tensor:
    """Reconstruction and divergence."""
    mean, log_variance = m.down(x).chunk(2, 1)
    made = m.up(mean + noise * torch.exp(0.5 * log_variance))
    divergence = -0.5 * (1.0 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
    return squared(made, x) + 0.1 * divergence


@net(lambda: dict(student=nn.Linear(6, 4), teacher=nn.Linear(6, 4).requires_grad_(False)))
def distilled(m: Net, x: Tensor, labels: Tensor) -> Tensor:
    """A student against a frozen teacher."""
    made, wanted = m.student(x), m.teacher(x)
    soft = F.kl_div(F.log_softmax(made * 0.5, 1), F.softmax(wanted * 0.5, 1), reduction="batchmean")
    return F.cross_entropy(made, labels) + 4.0 * soft


@net(lambda: dict(image=nn.Linear(6, 4), text=nn.Linear(5, 4), logit_scale=zeros()))
def clip_loss(m: Net, image: Tensor, text: Tensor) -> Tensor:
    """Both directions, labels from the batch's size."""
    image, text = F.normalize(m.image(image), dim=-1), F.normalize(m.text(text), dim=-1)
    logits = m.logit_scale.exp() * image @ text.t()
    labels = torch.arange(logits.shape[0])
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) * 0.5


@net(lambda: dict(net=nn.Linear(6, 4)))
def info_nce(m: Net, query: Tensor, keys: Tensor) -> Tensor:
    """The first column is the correct one."""
    query, keys = F.normalize(m.net(query), dim=-1), F.normalize(m.net(keys), dim=-1)
    logits = torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1) / 0.125
    return (torch.logsumexp(logits, 1) - logits[:, 0]).mean()


@net(lambda: dict(net=nn.Linear(6, 4)))
def triplet_loss(m: Net, anchor: Tensor, friend: Tensor, foe: Tensor) -> Tensor:
    anchor, friend, foe = m.net(anchor), m.net(friend), m.net(foe)
    near, far = (anchor - friend).norm(dim=1), (anchor - foe).norm(dim=1)
    return torch.relu(near - far + 1.0).mean()


@net(lambda: dict(net=nn.Linear(6, 4), norm=nn.BatchNorm1d(4, affine=False), eye=torch.eye(4)))
def barlow_twins(m: Net, left: Tensor, right: Tensor) -> Tensor:
    """Correlations of two views, compared with the identity."""
    made = m.norm(m.net(left)).t() @ m.norm(m.net(right)) * 0.25
    return (made - m.eye).square().sum()


WEIGHT = [0.5, 2.0, 1.0, 0.25, 1.5]


@net(lambda ends: dict(nets=nn.ModuleList(nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 5), end) for end in ends)))
def network(m: Net, x: Tensor) -> tuple[Tensor, ...]:
    """Two layers for every loss, with the activation that the loss requires."""
    return tuple(one(x) for one in m.nets)


def case_of_chosen_losses(name: str, losses: list[dict], shape: tuple = (3, 6), **more: object) -> Case:
    """One loss, or several losses of separate outputs."""
    ends = {"bce": nn.Sigmoid(), "kl_div": nn.LogSoftmax(-1), "nll": nn.LogSoftmax(-1)}
    outputs = [f"output_{i}" for i in range(len(losses))] if len(losses) > 1 else ["output"]
    given = [{**loss, "output": output} for loss, output in zip(losses, outputs)] if len(losses) > 1 else losses[0]
    build = lambda: network([ends.get(loss["type"], nn.Identity()) for loss in losses])  # noqa: E731
    return Case(f"chosen_{name}", build, [real("x", *shape)], given, outputs=outputs, **more)


@net(lambda end: dict(conv=nn.Conv2d(2, 5, 3), end=end))
def pixels_net(m: Net, x: Tensor) -> Tensor:
    """Classes in axis 1 of four."""
    return m.end(m.conv(x))


@net(lambda: dict(conv=nn.Conv1d(3, 6, 3, padding=1), head=nn.Linear(6, 5)))
def speech(m: Net, x: Tensor) -> Tensor:
    """Log-probabilities of characters over time."""
    y = m.head(torch.relu(m.conv(x)).transpose(1, 2))
    return y.log_softmax(-1).transpose(0, 1)


@net(lambda: dict(trunk=nn.Sequential(nn.Linear(6, 7), nn.ReLU()), classes=nn.Linear(7, 5), box=nn.Linear(7, 4)))
def two_heads_of_chosen_losses(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Classes and boxes of one trunk."""
    y = m.trunk(x)
    return m.classes(y), m.box(y)


@net(lambda: dict(
    encode=nn.Linear(6, 4), codes=nn.Parameter(torch.tensor([[0.5, -0.25], [0.125, 0.75], [-0.5, 0.25]])), decode=nn.Linear(4, 3),
))  # fmt: skip
def straight_through(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Rounding to a learned codebook with a straight-through gradient (VQ-VAE); both terms of the loss are outside."""
    z = m.encode(x).reshape(-1, 2)
    nearest = (z[:, None] - m.codes).square().sum(-1).argmin(-1)
    chosen = m.codes[nearest]
    passed = z + (chosen - z).detach()
    return m.decode(passed.reshape(x.shape[0], 4)), (z - chosen.detach()).square().mean()


@net(lambda: dict(encode=nn.Sequential(nn.Linear(6, 5), nn.Tanh()), predict=nn.Linear(5, 5)))
def target(m: Net, a: Tensor, b: Tensor) -> Tensor:
    """Two views without a gradient through the target's branch (BYOL, SimSiam)."""
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
    labels = tokens("labels", 3, below=5)
    yield case("loss_cross_entropy", [F.cross_entropy], labels)
    of_classes = [
        lambda y, t: F.cross_entropy(y, t, reduction="sum"),
        lambda y, t: F.cross_entropy(y, t, ignore_index=2),
        lambda y, t: F.cross_entropy(y, t, reduction="none").mean(),
        lambda y, t: F.nll_loss(F.log_softmax(y, 1), t),
        lambda y, t: -F.log_softmax(y, 1).gather(1, t.unsqueeze(1)).mean(),
        lambda y, t: 0.9 * F.cross_entropy(y, t) - 0.02 * F.log_softmax(y, 1).sum(1).mean(),
    ]
    yield case("loss_of_classes", of_classes, labels)
    yield Case("loss_pixels", pixels, [real("x", 2, 2, 5, 5), tokens("labels", 2, 3, 3, below=4)], "in_graph")
    yield Case("loss_language", language_loss, [tokens("ids", 2, 5, below=7)], "in_graph")
    yield Case("loss_class_weights", weighted_classes, [real("x", 3, 6), labels], "in_graph")
    wanted = real("wanted", 3, 5)
    yield case("loss_mse", [squared], wanted)
    of_numbers = [
        lambda y, t: (y - t).pow(2).sum(),
        absolute,
        lambda y, t: huber(y - t).mean(),
        smooth,
        lambda y, t: torch.sqrt((y - t).square() + 0.001).mean(),
        lambda y, t: (y - t + F.softplus(-2.0 * (y - t))).mean(),
        lambda y, t: torch.relu(1.0 - y * t).mean(),
    ]
    yield case("loss_of_numbers", of_numbers, wanted)
    of_shares = [
        lambda y, p: -(p * F.log_softmax(y, 1)).sum(1).mean(),
        F.binary_cross_entropy_with_logits,
        focal,
        dice,
        lambda y, p: F.kl_div(F.log_softmax(y, 1), p, reduction="batchmean"),
        lambda y, t: (torch.exp(y) - t * y).mean(),
    ]
    shares = real("share", 3, 5, offset=0.5, scale=0.375)
    yield case("loss_of_shares", of_shares, shares)
    yield case("loss_bce_by_hand", [binary], shares)
    labels = tokens("labels", 3, below=4)
    yield Case("loss_two_heads", two_heads, [real("x", 3, 6), labels, real("boxes", 3, 4)], "in_graph")
    yield Case("loss_uncertainty_weights", uncertain, [real("x", 3, 6), real("y", 3, 3), real("z", 3, 2)], "in_graph")
    yield Case("loss_variational", variational_loss, [real("x", 3, 6), real("noise", 3, 2)], "in_graph")
    frozen = {"trainable": {"freeze": ["teacher*"]}}
    yield Case("loss_distillation", distilled, [real("x", 3, 6), labels], "in_graph", options=frozen)
    pair = [real("image", 3, 6), real("text", 3, 5)]
    yield Case("loss_clip", clip_loss, pair, "in_graph")
    yield Case("loss_info_nce", info_nce, [real("query", 3, 6), real("keys", 3, 4, 6)], "in_graph")
    yield Case("loss_triplet", triplet_loss, [real(name, 3, 6) for name in ("anchor", "friend", "foe")], "in_graph")
    yield Case("loss_barlow_twins", barlow_twins, [real("left", 4, 6), real("right", 4, 6)], "in_graph")
    of_elements = [
        {"type": "mse", "reduction": "sum"},
        {"type": "l1"},
        {"type": "l1", "reduction": "sum"},
        {"type": "smooth_l1"},
        {"type": "huber"},
        {"type": "huber", "delta": 0.4},
        {"type": "bce"},
        {"type": "bce", "reduction": "sum"},
        {"type": "bce_with_logits", "reduction": "sum", "pos_weight": WEIGHT},
        *({"type": "kl_div", "reduction": reduction} for reduction in ("mean", "sum", "batchmean")),
        {"type": "kl_div", "log_target": True, "reduction": "batchmean"},
    ]
    yield case_of_chosen_losses("of_elements", of_elements)
    weighted = {"weight": WEIGHT}
    smoothing = {"type": "cross_entropy", "label_smoothing": 0.1}
    of_classes = [{**smoothing, **weighted}, {**smoothing, "reduction": "sum", "ignore_index": 1}, {"type": "nll"}]
    for kind in ("cross_entropy", "nll"):
        of_classes += [{"type": kind, **weighted}, {"type": kind, "reduction": "sum"}, {"type": kind, "reduction": "sum", **weighted}]
    yield case_of_chosen_losses("of_classes", of_classes)
    ignored = [{"type": kind, "ignore_index": 2, **weighted} for kind in ("cross_entropy", "nll")]
    yield case_of_chosen_losses("of_sequences", [smoothing, *ignored, {"type": "smooth_l1", "beta": 0.25, "reduction": "sum"}], (4, 3, 6))
    yield case_of_chosen_losses("huber", [{"type": "huber", "delta": 0.4}])
    yield case_of_chosen_losses("cross_entropy_weighted", [{"type": "cross_entropy", **weighted}])
    image = [real("x", 2, 2, 5, 5)]
    of_pixels = {"type": "cross_entropy", **weighted}
    yield Case("chosen_pixels_weighted", lambda: pixels_net(nn.Identity()), image, of_pixels)
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
    yield Case("chosen_two_heads", two_heads_of_chosen_losses, x, [of_class, of_box], outputs=outputs)
    third = {"type": "mse", "output": "box", "reduction": "sum", "scale": 0.01}
    yield Case("chosen_three_terms", two_heads_of_chosen_losses, x, [of_box, of_class, third], outputs=outputs)
    elastic = [{"type": "mse"}, {"type": "l1", "scale": 0.1}]
    yield Case("chosen_mse_and_l1", lambda: nn.Linear(6, 5), x, elastic, options={"micro_batches": 1})
    x = real("x", 3, 6)
    views = [real("a", 3, 6), real("b", 3, 6)]
    branch = {"detach": ["/encode/encode.1/Tanh_output_0"]}
    yield Case("detach_target", target, views, "in_graph", branch)
    state = {"detach": [{"tensor": "/cell_1/Tanh_output_0", "before": "/cell_2/*"}]}
    yield Case("detach_window", window, [real("x", 2, 4, 4)], "mse", state)
    passed = {"detach": ["/Sub_1_output_0"]}
    both = [{"type": "mse", "output": "output"}]
    yield Case("detach_straight_through", straight_through, [x], both, passed, outputs=("output", "commitment"))
