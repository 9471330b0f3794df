"""Products in other guises, and heads: einsums, bilinear forms, cosines, margins, embeddings."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, real, tokens


def cases() -> Iterator[Case]:
    yield from einsums()
    yield from matrices()
    yield from heads()
    yield from embeddings()


# --- Einsums ---------------------------------------------------------------------------------


class EinsumLayer(nn.Module):
    """A layer, then an einsum of it with a parameter."""

    def __init__(self, equation: str, inputs: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.equation = equation
        self.layer = nn.Linear(inputs, inputs)
        self.weight = nn.Parameter(torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum(self.equation, torch.tanh(self.layer(x)), self.weight)


class EinsumAttention(nn.Module):
    """Scores and sums as einsums, with projections that have an axis of heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.zeros(6, 2, 3))
        self.k = nn.Parameter(torch.zeros(6, 2, 3))
        self.v = nn.Parameter(torch.zeros(6, 2, 3))
        self.out = nn.Parameter(torch.zeros(2, 3, 6))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (torch.einsum("btc,chd->bthd", x, weight) for weight in (self.q, self.k, self.v))
        weights = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.5, -1)
        return torch.einsum("bthd,hdc->btc", torch.einsum("bhqk,bkhd->bqhd", weights, v), self.out)


class EinsumTensors(nn.Module):
    """A tensor train: three factors of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.zeros(2, 3, 2))
        self.second = nn.Parameter(torch.zeros(2, 3, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(x.shape[0], 2, 2)
        return torch.einsum("bij,iap,jpc->bac", x, self.first, self.second.reshape(2, 2, 6))


class EinsumGraph(nn.Module):
    """Features over vertices and time, mixed by a trained adjacency."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.adjacency = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("nctv,vw->nctw", F.relu(self.conv(x)), self.adjacency)


def einsums() -> Iterator[Case]:
    tags = ["einsum"]
    made = {
        "linear": ("bi,oi->bo", (3, 5), (4, 5)),
        "last_of_three": ("bti,io->bto", (2, 3, 5), (5, 4)),
        "heads": ("bti,ihd->bhtd", (2, 3, 5), (5, 2, 4)),
        "first_axis_kept": ("ebi,eio->ebo", (3, 2, 5), (3, 5, 4)),
        "turned": ("bti,ti->bt", (2, 3, 5), (3, 5)),
        "grouped": ("bgi,goi->bgo", (2, 3, 5), (3, 4, 5)),
    }
    for name, (equation, given, shape) in made.items():
        yield Case(
            f"einsum_{name}",
            lambda equation=equation, given=given, shape=shape: EinsumLayer(equation, given[-1], shape),
            [real("x", *given)],
            tags=tags,
            steps="momentum" if name == "heads" else "",
        )
    yield Case("einsum_attention", EinsumAttention, [real("x", 2, 4, 6)], tags=tags, steps="adam")
    yield Case("einsum_tensor_train", EinsumTensors, [real("x", 3, 4)], tags=tags)
    yield Case("einsum_skeleton_graph", EinsumGraph, [real("x", 2, 2, 3, 4)], tags=tags)


# --- Matrices --------------------------------------------------------------------------------


class Bilinear(nn.Module):
    """x^T W y for every output, as a chain of products."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 4, 5))
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        made = torch.matmul(x[:, None, None, :], self.weight)
        return torch.matmul(made, y[:, None, :, None]).flatten(1) + self.bias


class Factorised(nn.Module):
    """Pairs of fields (factorisation machine)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 1)
        self.factors = nn.Parameter(torch.zeros(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        square = (x @ self.factors).square()
        return self.linear(x) + 0.5 * (square - x.square() @ self.factors.square()).sum(1, keepdim=True)


class GramMatrix(nn.Module):
    """Products of features with themselves, as style losses have."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv(x)).flatten(2)
        return x @ x.transpose(1, 2) * 0.125


class CrossNetwork(nn.Module):
    """DCN: every layer multiplies with the first input."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for layer in self.layers:
            y = x * layer(y) + y
        return y


class ParameterProduct(nn.Module):
    """A weight that is a slice of a larger one, transposed; another that is joined from two."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Parameter(torch.zeros(10, 6))
        self.left = nn.Parameter(torch.zeros(3, 5))
        self.right = nn.Parameter(torch.zeros(2, 5))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(F.linear(x, self.both[:5]) + x @ self.both[5:].t())
        return F.linear(x, torch.cat([self.left, self.right]))


def matrices() -> Iterator[Case]:
    yield Case("bilinear_form", Bilinear, [real("x", 2, 4), real("y", 2, 5)])
    yield Case("factorisation_machine", Factorised, [real("x", 3, 6)], loss="bce_with_logits", steps="adam")
    yield Case("gram_matrix", GramMatrix, [real("x", 2, 3, 5, 5)])
    yield Case("cross_network", CrossNetwork, [real("x", 3, 5)])
    yield Case("slices_of_weights", ParameterProduct, [real("x", 3, 6)], steps="momentum")


# --- Heads -----------------------------------------------------------------------------------


class CosineHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 4)
        self.weight = nn.Parameter(torch.zeros(5, 4))
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * F.linear(F.normalize(self.body(x)), F.normalize(self.weight))


class ArcFace(nn.Module):
    """A margin at the angle of the label's class, which is fed in as one-hot numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 4)
        self.weight = nn.Parameter(torch.zeros(5, 4))

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        cosine = F.linear(F.normalize(self.body(x)), F.normalize(self.weight))
        sine = torch.sqrt(1.0 - cosine.square() * 0.875)
        return 8.0 * (cosine + chosen * (cosine * -0.125 - sine * 0.5))


class Pairwise(nn.Module):
    """Cosines, or distances, of two embeddings."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        left, right = self.net(left), self.net(right)
        if self.kind == "cosine":
            return F.cosine_similarity(left, right, dim=1)
        if self.kind == "all_pairs":
            return (left.unsqueeze(1) - right.unsqueeze(0)).square().sum(-1)
        return (left - right).abs().sum(1).neg().exp()


class Triplet(nn.Module):
    """Distances to a friend and to a foe, and what the margin leaves of them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 4)

    def forward(self, anchor: Tensor, friend: Tensor, foe: Tensor) -> Tensor:
        anchor, friend, foe = self.net(anchor), self.net(friend), self.net(foe)
        near = (anchor - friend).norm(dim=1)
        return torch.relu(near - (anchor - foe).norm(dim=1) + 0.5)


class Prototypes(nn.Module):
    """Classes are means of their examples' features."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 4)

    def forward(self, examples: Tensor, questions: Tensor) -> Tensor:
        classes = self.net(examples).mean(1)
        return -(self.net(questions).unsqueeze(1) - classes.unsqueeze(0)).square().sum(-1)


def heads() -> Iterator[Case]:
    pair = [real("left", 3, 6), real("right", 3, 6)]
    yield Case("cosine_head", CosineHead, [real("x", 3, 6)], loss="cross_entropy", steps="adam")
    chosen = real("chosen", 3, 5, offset=0.5, scale=0.5)
    yield Case("arc_face", ArcFace, [real("x", 3, 6), chosen], loss="cross_entropy")
    for kind in ("cosine", "all_pairs", "manhattan"):
        yield Case(f"pairwise_{kind}", lambda kind=kind: Pairwise(kind), pair)
    yield Case("triplet", Triplet, [real(name, 3, 6) for name in ("anchor", "friend", "foe")])
    yield Case(
        "prototypes", Prototypes, [real("examples", 3, 2, 6), real("questions", 2, 6)], loss="cross_entropy"
    )


# --- Embeddings ------------------------------------------------------------------------------


class BagOfWords(nn.Module):
    """The mean of word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 5)
        self.head = nn.Linear(5, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embed(ids).mean(1))


class Recommender(nn.Module):
    """Products of users' and items' vectors, biases, and a dense part (DLRM)."""

    def __init__(self) -> None:
        super().__init__()
        self.user_embed = nn.Embedding(6, 4)
        self.item_embed = nn.Embedding(7, 4)
        self.user_bias = nn.Embedding(6, 1)
        self.dense = nn.Linear(3, 4)
        self.head = nn.Linear(4 + 3, 1)

    def forward(self, user: Tensor, item: Tensor, dense: Tensor) -> Tensor:
        u, i, d = self.user_embed(user), self.item_embed(item), torch.relu(self.dense(dense))
        pairs = torch.stack([(u * i).sum(1), (u * d).sum(1), (i * d).sum(1)], 1)
        return self.head(torch.cat([d, pairs], 1)) + self.user_bias(user)


class WordConvolutions(nn.Module):
    """Widths two and three, the largest over time (TextCNN)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.convs = nn.ModuleList(nn.Conv1d(4, 3, width) for width in (2, 3))
        self.head = nn.Linear(6, 4)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids).transpose(1, 2)
        return self.head(torch.cat([torch.relu(conv(x)).max(-1)[0] for conv in self.convs], 1))


class HashedEmbedding(nn.Module):
    """Every word is the sum of two rows of one table."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, ids: Tensor, others: Tensor) -> Tensor:
        return self.head(self.embed(ids) + self.embed(others))


def embeddings() -> Iterator[Case]:
    ids = [tokens("ids", 2, 4, below=9)]
    yield Case("embedding_mean", BagOfWords, ids, loss="cross_entropy", steps="adam")
    yield Case(
        "recommender",
        Recommender,
        [tokens("user", 3, below=6), tokens("item", 3, below=7), real("dense", 3, 3)],
        loss="bce_with_logits",
        steps="momentum",
    )
    yield Case("text_cnn", WordConvolutions, ids, loss="cross_entropy")
    yield Case(
        "embedding_hashed",
        HashedEmbedding,
        [tokens("ids", 2, 3, below=5), tokens("others", 2, 3, below=5)],
        loss="cross_entropy",
    )
