"""Losses inside of the network: its only output is the loss, a scalar."""

from __future__ import annotations

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


@net(lambda loss, width=5: dict(net=nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, width)), loss=loss))
def with_loss(m: Net, x: Tensor, *others: Tensor) -> Tensor:
    """A small network and a function of what it makes and of what else is fed in."""
    return m.loss(m.net(x), *others)


def case(name: str, loss: Loss, *others: object, x: tuple[int, ...] = (3, 6)) -> Case:
    return Case(name, lambda: with_loss(loss), [real("x", *x), *others], "in_graph")


@net(lambda: dict(conv=nn.Conv2d(2, 4, 3)))
def pixels(m: Net, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy at every pixel."""
    return F.cross_entropy(m.conv(x), labels)


@net(lambda: dict(embed=nn.Embedding(7, 5), mix=nn.Linear(5, 5)))
def language_loss(m: Net, ids: Tensor) -> Tensor:
    """Next tokens: logits and labels are shifted against each other and flattened, as in GPT-2."""
    logits = F.linear(torch.tanh(m.mix(m.embed(ids))), m.embed.weight)
    return F.cross_entropy(logits[:, :-1].reshape(-1, 7), ids[:, 1:].reshape(-1))


@net(lambda: dict(layer=nn.Linear(6, 5), class_weights=torch.linspace(0.5, 2.0, 5)))
def weighted_classes(m: Net, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with a weight for every class, a buffer."""
    return F.cross_entropy(m.layer(x), labels, weight=m.class_weights)


def smoothed(y: Tensor, t: Tensor) -> Tensor:
    return 0.9 * F.cross_entropy(y, t) - 0.02 * F.log_softmax(y, 1).sum(1).mean()


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
    """Huber's loss as a square up to a bound and a line behind it."""
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
    """The first column is the right one."""
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
    """Correlations of two views against the identity."""
    made = m.norm(m.net(left)).t() @ m.norm(m.net(right)) * 0.25
    return (made - m.eye).square().sum()


def cases() -> Iterator[Case]:
    labels = tokens("labels", 3, below=5)
    yield case("loss_cross_entropy", F.cross_entropy, labels)
    yield case("loss_cross_entropy_sum", lambda y, t: F.cross_entropy(y, t, reduction="sum"), labels)
    yield case("loss_cross_entropy_ignore", lambda y, t: F.cross_entropy(y, t, ignore_index=2), labels)
    yield case("loss_nll", lambda y, t: F.nll_loss(F.log_softmax(y, 1), t), labels)
    yield case("loss_cross_entropy_none_mean", lambda y, t: F.cross_entropy(y, t, reduction="none").mean(), labels)
    yield case("loss_gathered", lambda y, t: -F.log_softmax(y, 1).gather(1, t.unsqueeze(1)).mean(), labels)
    yield case("loss_smoothed", smoothed, labels)
    yield Case("loss_pixels", pixels, [real("x", 2, 2, 5, 5), tokens("labels", 2, 3, 3, below=4)], "in_graph")
    yield Case("loss_language", language_loss, [tokens("ids", 2, 5, below=7)], "in_graph")
    yield Case("loss_class_weights", weighted_classes, [real("x", 3, 6), labels], "in_graph")
    shares = real("p", 3, 5, offset=0.5, scale=0.5)
    yield case("loss_soft_labels", lambda y, p: -(p * F.log_softmax(y, 1)).sum(1).mean(), shares)
    wanted = real("wanted", 3, 5)
    share = real("share", 3, 5, offset=0.5, scale=0.5)
    yield case("loss_mse", squared, wanted)
    yield case("loss_mse_pow_sum", lambda y, t: (y - t).pow(2).sum(), wanted)
    yield case("loss_l1", absolute, wanted)
    yield case("loss_huber", lambda y, t: huber(y - t).mean(), wanted)
    yield case("loss_smooth_l1_clamped", smooth, wanted)
    yield case("loss_charbonnier", lambda y, t: torch.sqrt((y - t).square() + 0.001).mean(), wanted)
    yield case("loss_log_cosh", lambda y, t: (y - t + F.softplus(-2.0 * (y - t))).mean(), wanted)
    yield case("loss_bce_with_logits", F.binary_cross_entropy_with_logits, share)
    yield case("loss_bce_by_hand", binary, share)
    yield case("loss_focal", focal, share)
    yield case("loss_dice", dice, share)
    positive = real("p", 3, 5, offset=0.5, scale=0.375)
    yield case("loss_kl", lambda y, p: F.kl_div(F.log_softmax(y, 1), p, reduction="batchmean"), positive)
    yield case("loss_poisson", lambda y, t: (torch.exp(y) - t * y).mean(), share)
    yield case("loss_hinge", lambda y, t: torch.relu(1.0 - y * t).mean(), wanted)
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
