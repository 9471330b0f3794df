"""Products of all kinds, and experts, capsules and gates that choose between them."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros


@net(lambda equation, inputs, shape: dict(equation=equation, layer=nn.Linear(inputs, inputs), weight=zeros(shape)))
def einsum_layer(m: Net, x: Tensor) -> Tensor:
    """A layer, then an einsum of it with a parameter."""
    return torch.einsum(m.equation, torch.tanh(m.layer(x)), m.weight)


@net(lambda: dict(q=zeros(6, 2, 3), k=zeros(6, 2, 3), v=zeros(6, 2, 3), out=zeros(2, 3, 6)))
def einsum_attention(m: Net, x: Tensor) -> Tensor:
    """Scores and sums as einsums, with projections that have an axis of heads."""
    q, k, v = (torch.einsum("btc,chd->bthd", x, weight) for weight in (m.q, m.k, m.v))
    weights = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.5, -1)
    return torch.einsum("bthd,hdc->btc", torch.einsum("bhqk,bkhd->bqhd", weights, v), m.out)


@net(lambda: dict(first=zeros(2, 3, 2), second=zeros(2, 3, 4)))
def einsum_tensors(m: Net, x: Tensor) -> Tensor:
    """A tensor train: three factors of one weight."""
    x = x.view(x.shape[0], 2, 2)
    return torch.einsum("bij,iap,jpc->bac", x, m.first, m.second.reshape(2, 2, 6))


@net(lambda: dict(conv=nn.Conv2d(2, 3, 1), adjacency=zeros(4, 4)))
def einsum_graph(m: Net, x: Tensor) -> Tensor:
    """Features over vertices and time, mixed by a trained adjacency."""
    return torch.einsum("nctv,vw->nctw", F.relu(m.conv(x)), m.adjacency)


@net(lambda: dict(weight=zeros(3, 4, 5), bias=zeros(3)))
def bilinear(m: Net, x: Tensor, y: Tensor) -> Tensor:
    """X^T W y for every output, as a chain of products."""
    made = torch.matmul(x[:, None, None, :], m.weight)
    return torch.matmul(made, y[:, None, :, None]).flatten(1) + m.bias


@net(lambda: dict(linear=nn.Linear(6, 1), factors=zeros(6, 3)))
def factorised(m: Net, x: Tensor) -> Tensor:
    """Pairs of fields (factorisation machine)."""
    square = (x @ m.factors).square()
    return m.linear(x) + 0.5 * (square - x.square() @ m.factors.square()).sum(1, keepdim=True)


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3)))
def gram_matrix(m: Net, x: Tensor) -> Tensor:
    """Products of features with themselves, as in style losses."""
    x = F.relu(m.conv(x)).flatten(2)
    return x @ x.transpose(1, 2) * 0.125


@net(lambda: dict(layers=nn.ModuleList(nn.Linear(5, 5) for _ in range(2))))
def cross_network(m: Net, x: Tensor) -> Tensor:
    """DCN: every layer multiplies with the first input."""
    y = x
    for layer in m.layers:
        y = x * layer(y) + y
    return y


@net(lambda: dict(both=zeros(10, 6), left=zeros(3, 5), right=zeros(2, 5)))
def parameter_product(m: Net, x: Tensor) -> Tensor:
    """A weight that is a slice of a larger one, transposed; another that is joined from two."""
    x = torch.tanh(F.linear(x, m.both[:5]) + x @ m.both[5:].t())
    return F.linear(x, torch.cat([m.left, m.right]))


@net(lambda: dict(body=nn.Linear(6, 4), weight=zeros(5, 4), scale=zeros(1)))
def cosine_head(m: Net, x: Tensor) -> Tensor:
    return m.scale * F.linear(F.normalize(m.body(x)), F.normalize(m.weight))


@net(lambda: dict(body=nn.Linear(6, 4), weight=zeros(5, 4)))
def arc_face(m: Net, x: Tensor, chosen: Tensor) -> Tensor:
    """A margin at the angle of the label's class, which is fed in as one-hot numbers."""
    cosine = F.linear(F.normalize(m.body(x)), F.normalize(m.weight))
    sine = torch.sqrt(1.0 - cosine.square() * 0.875)
    return 8.0 * (cosine + chosen * (cosine * -0.125 - sine * 0.5))


@net(lambda kind: dict(kind=kind, net=nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))))
def pairwise(m: Net, left: Tensor, right: Tensor) -> Tensor:
    """Cosines, or distances, of two embeddings."""
    left, right = m.net(left), m.net(right)
    if m.kind == "cosine":
        return F.cosine_similarity(left, right, dim=1)
    if m.kind == "all_pairs":
        return (left.unsqueeze(1) - right.unsqueeze(0)).square().sum(-1)
    return (left - right).abs().sum(1).neg().exp()


@net(lambda: dict(net=nn.Linear(6, 4)))
def triplet(m: Net, anchor: Tensor, friend: Tensor, foe: Tensor) -> Tensor:
    """Distances to a positive and to a negative example, and their difference above the margin."""
    anchor, friend, foe = m.net(anchor), m.net(friend), m.net(foe)
    near = (anchor - friend).norm(dim=1)
    return torch.relu(near - (anchor - foe).norm(dim=1) + 0.5)


@net(lambda: dict(net=nn.Linear(6, 4)))
def prototypes(m: Net, examples: Tensor, questions: Tensor) -> Tensor:
    """Classes are means of their examples' features."""
    classes = m.net(examples).mean(1)
    return -(m.net(questions).unsqueeze(1) - classes.unsqueeze(0)).square().sum(-1)


@net(lambda: dict(embed=nn.Embedding(9, 5), head=nn.Linear(5, 4)))
def bag_of_words(m: Net, ids: Tensor) -> Tensor:
    """The mean of word vectors."""
    return m.head(m.embed(ids).mean(1))


@net(lambda: dict(
    user_embed=nn.Embedding(6, 4), item_embed=nn.Embedding(7, 4), user_bias=nn.Embedding(6, 1), dense=nn.Linear(3, 4),
    head=nn.Linear(4 + 3, 1),
))  # fmt: skip
def recommender(m: Net, user: Tensor, item: Tensor, dense: Tensor) -> Tensor:
    """Products of users' and items' vectors, biases, and a dense part (DLRM)."""
    u, i, d = m.user_embed(user), m.item_embed(item), torch.relu(m.dense(dense))
    pairs = torch.stack([(u * i).sum(1), (u * d).sum(1), (i * d).sum(1)], 1)
    return m.head(torch.cat([d, pairs], 1)) + m.user_bias(user)


@net(lambda: dict(embed=nn.Embedding(9, 4), convs=nn.ModuleList(nn.Conv1d(4, 3, width) for width in (2, 3)), head=nn.Linear(6, 4)))
def word_convolutions(m: Net, ids: Tensor) -> Tensor:
    """Widths two and three, the largest over time (TextCNN)."""
    x = m.embed(ids).transpose(1, 2)
    return m.head(torch.cat([torch.relu(conv(x)).max(-1)[0] for conv in m.convs], 1))


@net(lambda: dict(embed=nn.Embedding(5, 4), head=nn.Linear(4, 3)))
def hashed_embedding(m: Net, ids: Tensor, others: Tensor) -> Tensor:
    """Every word is the sum of two rows of one table."""
    return m.head(m.embed(ids) + m.embed(others))


@net(
    lambda: dict(gate=nn.Linear(5, 3), experts=nn.ModuleList(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)) for _ in range(3)))
)
def soft_experts(m: Net, x: Tensor) -> Tensor:
    """All experts compute; their results are weighted."""
    share = torch.softmax(m.gate(x), -1)
    made = torch.stack([expert(x) for expert in m.experts], 1)
    return (share.unsqueeze(-1) * made).sum(1)


@net(lambda: dict(gate=nn.Linear(5, 3, bias=False), up=zeros(3, 5, 6), down=zeros(3, 6, 4)))
def batched_experts(m: Net, x: Tensor) -> Tensor:
    """Weights of all experts in one tensor, einsums over it."""
    share = torch.softmax(m.gate(x), -1)
    made = F.gelu(torch.einsum("td,edh->eth", x, m.up))
    return torch.einsum("eth,eho,te->to", made, m.down, share)


@net(lambda: dict(gate=nn.Linear(5, 4), up=zeros(4, 5, 6)))
def top_experts(m: Net, x: Tensor) -> Tensor:
    """The two best experts: the others' shares are made zero by comparing with the second best."""
    scores = m.gate(x)
    least = scores.topk(2, -1)[0][:, 1:]
    share = torch.softmax(scores.masked_fill(scores < least, float("-inf")), -1)
    return (torch.matmul(x, m.up) * share.t().unsqueeze(-1)).sum(0)


@net(lambda: dict(gate=nn.Linear(5, 3), up=zeros(3, 5, 6)))
def gathered_experts(m: Net, x: Tensor) -> Tensor:
    """Selects the matrix of the best expert for every token."""
    share, chosen = torch.softmax(m.gate(x), -1).max(-1, keepdim=True)
    return torch.bmm(x.unsqueeze(1), m.up[chosen.squeeze(-1)]).squeeze(1) * share


@net(lambda: dict(gate=nn.Linear(5, 4), experts=nn.ModuleList(nn.Linear(5, 3) for _ in range(4))))
def normalised_top(m: Net, x: Tensor) -> Tensor:
    """Shares of the two best experts, scattered back (Mixtral)."""
    scores = m.gate(x)
    best, chosen = scores.topk(2, -1)
    share = torch.zeros_like(scores).scatter(1, chosen, torch.softmax(best, -1))
    made = torch.stack([expert(x) for expert in m.experts], 1)
    return torch.bmm(share.unsqueeze(1), made).squeeze(1)


def squashed(x: Tensor) -> Tensor:
    square = x.square().sum(-1, keepdim=True)
    return x * square / ((1.0 + square) * torch.sqrt(square + 0.001))


@net(lambda: dict(weight=zeros(1, 4, 3, 5, 2)))
def capsules(m: Net, x: Tensor) -> Tensor:
    """Dynamic routing between capsules, three rounds."""
    votes = torch.matmul(m.weight, squashed(x)[:, :, None, :, None]).squeeze(-1)
    logits = x.new_zeros(x.shape[0], 4, 3)
    for i in range(3):
        made = squashed((torch.softmax(logits, -1).unsqueeze(-1) * votes).sum(1))
        if i < 2:
            logits = logits + (votes * made.unsqueeze(1)).sum(-1)
    return made.norm(dim=-1)


@net(lambda: dict(
    slots=zeros(1, 3, 4), inputs=nn.LayerNorm(5), norm=nn.LayerNorm(4), q=nn.Linear(4, 4, bias=False),
    k=nn.Linear(5, 4, bias=False), v=nn.Linear(5, 4, bias=False), cell=nn.GRUCell(4, 4),
))  # fmt: skip
def slot_attention(m: Net, x: Tensor) -> Tensor:
    """Slots compete for inputs and are updated by a cell."""
    x = m.inputs(x)
    k, v = m.k(x), m.v(x)
    slots = m.slots.expand(x.shape[0], 3, 4)
    for _ in range(2):
        scores = torch.softmax(torch.bmm(k, m.q(m.norm(slots)).transpose(1, 2)) * 0.5, -1) + 0.001
        weights = scores / scores.sum(1, keepdim=True)
        updates = torch.bmm(weights.transpose(1, 2), v)
        slots = m.cell(updates.reshape(-1, 4), slots.reshape(-1, 4)).view(-1, 3, 4)
    return slots


@net(lambda: dict(assign=nn.Conv2d(4, 3, 1), centres=zeros(3, 4)))
def net_vlad(m: Net, x: Tensor) -> Tensor:
    """Residuals from trained centres, by soft assignment."""
    batch, channels = x.shape[:2]
    x = F.normalize(x, dim=1)
    share = torch.softmax(m.assign(x).view(batch, 3, -1), 1)
    flat = x.view(batch, channels, -1)
    residual = flat.unsqueeze(1) - m.centres.unsqueeze(0).unsqueeze(-1)
    made = (residual * share.unsqueeze(2)).sum(-1)
    return F.normalize(F.normalize(made, dim=2).view(batch, -1), dim=1)


@net(lambda: dict(conv=nn.Conv2d(3, 6, 3), down=nn.Conv2d(6, 2, 1), up=nn.Conv2d(2, 6, 1)))
def squeeze_excite(m: Net, x: Tensor) -> Tensor:
    x = F.silu(m.conv(x))
    gate = torch.sigmoid(m.up(F.silu(m.down(F.adaptive_avg_pool2d(x, 1)))))
    return x * gate


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), mean_share=zeros(3), variance_share=zeros(3), weight=zeros(1, 4, 1, 1), bias=zeros(1, 4, 1, 1)))
def switchable_norm(net_: Net, x: Tensor) -> Tensor:
    """A mixture of the statistics of instances, layers and the batch."""
    x = net_.conv(x)
    instance = x.mean((2, 3), keepdim=True)
    spread = (x - instance).square().mean((2, 3), keepdim=True)
    square = spread + instance.square()
    layer, batch = instance.mean(1, keepdim=True), instance.mean(0, keepdim=True)
    of_layer = square.mean(1, keepdim=True) - layer.square()
    of_batch = square.mean(0, keepdim=True) - batch.square()
    m, v = torch.softmax(net_.mean_share, 0), torch.softmax(net_.variance_share, 0)
    mean = m[0] * instance + m[1] * layer + m[2] * batch
    variance = v[0] * spread + v[1] * of_layer + v[2] * of_batch
    return (x - mean) / torch.sqrt(variance + 0.001) * net_.weight + net_.bias


@net(lambda: dict(first=nn.Conv2d(3, 4, 3, padding=1), gate=nn.Conv2d(2, 1, 3, padding=1)))
def spatial_attention(m: Net, x: Tensor) -> Tensor:
    """CBAM: attention over positions from the mean and the largest of all channels."""
    x = m.first(x)
    pooled = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
    return x * torch.sigmoid(m.gate(pooled))


def cases() -> Iterator[Case]:
    made = {
        "linear": ("bi,oi->bo", (3, 5), (4, 5)),
        "last_of_three": ("bti,io->bto", (2, 3, 5), (5, 4)),
        "heads": ("bti,ihd->bhtd", (2, 3, 5), (5, 2, 4)),
        "first_axis_kept": ("ebi,eio->ebo", (3, 2, 5), (3, 5, 4)),
        "turned": ("bti,ti->bt", (2, 3, 5), (3, 5)),
        "grouped": ("bgi,goi->bgo", (2, 3, 5), (3, 4, 5)),
    }
    for name, (equation, given, shape) in made.items():
        yield Case(f"einsum_{name}", partial(einsum_layer, equation, given[-1], shape), [real("x", *given)])
    yield Case("einsum_attention", einsum_attention, [real("x", 2, 4, 6)])
    yield Case("einsum_tensor_train", einsum_tensors, [real("x", 3, 4)])
    yield Case("einsum_skeleton_graph", einsum_graph, [real("x", 2, 2, 3, 4)])
    yield Case("bilinear_form", bilinear, [real("x", 2, 4), real("y", 2, 5)])
    yield Case("factorisation_machine", factorised, [real("x", 3, 6)], loss="bce_with_logits")
    yield Case("gram_matrix", gram_matrix, [real("x", 2, 3, 5, 5)])
    yield Case("cross_network", cross_network, [real("x", 3, 5)])
    yield Case("slices_of_weights", parameter_product, [real("x", 3, 6)])
    pair = [real("left", 3, 6), real("right", 3, 6)]
    yield Case("cosine_head", cosine_head, [real("x", 3, 6)], loss="cross_entropy")
    chosen = real("chosen", 3, 5, offset=0.5, scale=0.5)
    yield Case("arc_face", arc_face, [real("x", 3, 6), chosen], loss="cross_entropy")
    for kind in ("cosine", "all_pairs", "manhattan"):
        yield Case(f"pairwise_{kind}", lambda kind=kind: pairwise(kind), pair)
    yield Case("triplet", triplet, [real(name, 3, 6) for name in ("anchor", "friend", "foe")])
    yield Case("prototypes", prototypes, [real("examples", 3, 2, 6), real("questions", 2, 6)], loss="cross_entropy")
    ids = [tokens("ids", 2, 4, below=9)]
    yield Case("embedding_mean", bag_of_words, ids, loss="cross_entropy")
    yield Case(
        "recommender", recommender, [tokens("user", 3, below=6), tokens("item", 3, below=7), real("dense", 3, 3)], loss="bce_with_logits"
    )
    yield Case("text_cnn", word_convolutions, ids, loss="cross_entropy")
    yield Case("embedding_hashed", hashed_embedding, [tokens("ids", 2, 3, below=5), tokens("others", 2, 3, below=5)], loss="cross_entropy")
    x = [real("x", 4, 5)]
    yield Case("experts_soft", soft_experts, x)
    yield Case("experts_batched", batched_experts, x)
    yield Case("experts_top_two", top_experts, x)
    yield Case("experts_gathered", gathered_experts, x)
    yield Case("experts_scattered", normalised_top, x)
    yield Case("capsule_routing", capsules, [real("x", 2, 4, 2)])
    yield Case("slot_attention", slot_attention, [real("x", 2, 5, 5)])
    yield Case("net_vlad", net_vlad, [real("x", 2, 4, 3, 3)])
    image = [real("x", 2, 3, 6, 6)]
    yield Case("squeeze_excite", squeeze_excite, image)
    yield Case("switchable_norm", switchable_norm, image)
    yield Case("spatial_attention", spatial_attention, image)
