"""Float buffers, which are never trained, and minimal networks for errors found with fresh networks."""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, net, real, tokens, zeros


@net(lambda: dict(
    mean=torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1), std=torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1),
    conv=nn.Conv2d(3, 4, 3),
))  # fmt: skip
def normalised(m: Net, x: Tensor) -> Tensor:
    """Images are first normalised with mean and standard deviation."""
    return torch.relu(m.conv((x - m.mean) / m.std))


EDGES = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])

BLUR = torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]) / 16.0


@net(lambda: dict(
    sobel=torch.stack([EDGES, EDGES.t()]).unsqueeze(1), gauss=BLUR.expand(4, 1, 3, 3).contiguous(), conv=nn.Conv2d(2, 4, 3)
))  # fmt: skip
def sobel(m: Net, x: Tensor) -> Tensor:
    """Trained features behind a fixed edge filter, and before a fixed blur."""
    edges = F.conv2d(x.mean(1, keepdim=True), m.sobel, padding=1)
    return F.conv2d(torch.relu(m.conv(edges)), m.gauss, stride=2, padding=1, groups=4)


@net(lambda: dict(blur=torch.eye(6) * 0.5 + torch.diag(torch.full((5,), 0.25), -1), conv=nn.Conv2d(2, 3, 1)))
def blur(m: Net, x: Tensor) -> Tensor:
    """Blur as a product with fixed matrices on both sides."""
    return torch.matmul(m.blur, torch.matmul(torch.tanh(m.conv(x)), m.blur.t()))


@net(
    lambda: dict(mean=torch.linspace(-1.0, 1.0, 6), scale=torch.linspace(0.5, 2.0, 6), temperature=torch.tensor(0.5), layer=nn.Linear(5, 6))
)
def whitened(m: Net, x: Tensor) -> Tensor:
    """Features shifted and scaled by statistics that were measured once."""
    return (m.layer(x) - m.mean) * m.scale / m.temperature


@net(lambda: dict(
    head=nn.Conv2d(3, 2 * 4, 1), anchors=torch.tensor([[1.0, 2.0], [3.0, 1.5]]).view(1, 2, 2, 1, 1),
    grid=torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="xy")).view(1, 1, 2, 4, 4),
))  # fmt: skip
def anchors(m: Net, x: Tensor) -> Tensor:
    """Boxes are offsets from anchors, and a grid."""
    made = m.head(x).view(x.shape[0], 2, 4, 4, 4)
    centre = torch.sigmoid(made[:, :, :2]) + m.grid
    return torch.cat([centre, torch.exp(made[:, :, 2:]) * m.anchors], 2)


@net(lambda: dict(head=nn.Conv2d(3, 4 * 5, 1), project=torch.arange(5.0)))
def distribution_focal(m: Net, x: Tensor) -> Tensor:
    """Expected distances: a softmax times a fixed projection, as in YOLOv8."""
    share = torch.softmax(m.head(x).view(x.shape[0], 4, 5, -1), 2)
    return (share.transpose(2, 3) * m.project).sum(-1)


@net(lambda: dict(frequencies=torch.randn(2, 6), net=nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))))
def fourier_features(m: Net, x: Tensor) -> Tensor:
    """A random projection, its sine and cosine."""
    angles = 2.0 * x @ m.frequencies
    return m.net(torch.cat([torch.sin(angles), torch.cos(angles)], -1))


@net(lambda: dict(
    frame=nn.Conv1d(1, 8, 6, stride=3, bias=False), head=nn.Linear(4, 3),
    bank=torch.relu(1.0 - (torch.arange(8.0)[:, None] - torch.linspace(1.0, 6.0, 4)[None, :]).abs() / 2.0),
))  # fmt: skip
def mel_filters(m: Net, x: Tensor) -> Tensor:
    """A learned spectrum through a fixed filter bank, and its logarithm."""
    power = m.frame(x.unsqueeze(1)).square().transpose(1, 2)
    return m.head(torch.log(power @ m.bank + 0.01).mean(1))


def fourier(name: str, count: int) -> dict[str, Tensor]:
    angle = 2.0 * math.pi / count * torch.outer(torch.arange(float(count)), torch.arange(float(count)))
    return {f"{name}_cos": torch.cos(angle), f"{name}_sin": torch.sin(angle)}


@net(lambda: dict(
    **fourier("tokens", 6), **fourier("channels", 8), norm=nn.LayerNorm(8), up=nn.Linear(8, 12), down=nn.Linear(12, 8)
))  # fmt: skip
def fnet(m: Net, x: Tensor) -> Tensor:
    """Mixing by the real part of two Fourier transforms, as products with fixed matrices."""
    mixed = m.tokens_cos @ x @ m.channels_cos - m.tokens_sin @ x @ m.channels_sin
    x = m.norm(x + mixed)
    return x + m.down(F.gelu(m.up(x)))


@net(lambda: dict(q=nn.Linear(6, 4), k=nn.Linear(6, 4), v=nn.Linear(6, 4), features=torch.randn(4, 5)))
def performer(m: Net, x: Tensor) -> Tensor:
    """Attention through positive random features."""
    made = (torch.exp(y @ m.features - y.square().sum(-1, keepdim=True) * 0.5) + 0.001 for y in (part(x) for part in (m.q, m.k)))
    q, k, v = *made, m.v(x)
    kept = k.transpose(1, 2) @ v
    return q @ kept / (q @ k.sum(1).unsqueeze(-1))


@net(lambda: dict(encode=nn.Linear(6, 4), decode=nn.Linear(4, 6), codebook=torch.randn(7, 4)))
def vector_quantised(m: Net, x: Tensor) -> Tensor:
    """The nearest entry of a codebook updated by averages, with a straight-through gradient."""
    z = m.encode(x)
    distance = (z.unsqueeze(1) - m.codebook.unsqueeze(0)).square().sum(-1)
    chosen = F.embedding(distance.argmin(-1), m.codebook)
    return m.decode(z + (chosen - z) * 0.5)


@net(lambda: dict(encode=nn.Linear(6, 4), codebook=torch.randn(5, 4)))
def soft_codebook(m: Net, x: Tensor) -> Tensor:
    """Shares of fixed codes by their distance."""
    z = m.encode(x)
    return torch.softmax(z @ m.codebook.t(), -1) @ m.codebook


@net(lambda: dict(vectors=torch.randn(9, 5), head=nn.Linear(5, 4)))
def fixed_embedding(m: Net, ids: Tensor) -> Tensor:
    """Word vectors that are not trained."""
    return m.head(F.embedding(ids, m.vectors).mean(1))


@net(lambda: dict(head=nn.Linear(6, 5), center=torch.linspace(-0.5, 0.5, 5).view(1, 5)))
def ema_center(m: Net, x: Tensor) -> Tensor:
    """DINO's centre is subtracted before the softmax."""
    return torch.log_softmax((m.head(x) - m.center) / 0.5, -1)


ROWS = [real("x", 3, 6)]


@net(lambda function: dict(first=nn.Linear(6, 8), second=nn.Linear(8, 3), function=function))
def between_net(m: Net, x: Tensor) -> Tensor:
    """A function between two layers."""
    return m.second(m.function(m.first(x)))


def normalised_of_borders(y: Tensor) -> Tensor:
    variance, mean = torch.var_mean(y, 1, keepdim=True)
    return (y - mean) / torch.sqrt(variance + 0.1)


def mirrored(y: Tensor) -> Tensor:
    y = torch.tanh(y)
    return y * y.flip(1)


@net(lambda: dict(embed=nn.Embedding(9, 4), head=nn.Linear(4, 3)))
def masked_mean(m: Net, ids: Tensor) -> Tensor:
    """The mean of the embeddings of tokens that are not padding, whose number is an integer."""
    mask = ids != 0
    total = (m.embed(ids) * mask.unsqueeze(-1).to(m.head.weight.dtype)).sum(1)
    return m.head(total / (mask.long().sum(1, keepdim=True) + 1).to(total.dtype))


@net(lambda: dict(row=zeros(1, 6), layer=nn.Linear(6, 3)))
def repeated(m: Net, x: Tensor) -> Tensor:
    """A learned row, once for every sample."""
    return m.layer(m.row.repeat(3, 1)) + x[:, :3]


@net(
    lambda equation: dict(a=nn.Linear(6, 3), b=nn.Linear(6, 3), head=nn.Linear(9 if equation == "bi,bj->bij" else 3, 2), equation=equation)
)
def outer(m: Net, x: Tensor) -> Tensor:
    """The outer product of two layers, and their product element by element."""
    return m.head(torch.einsum(m.equation, m.a(x), m.b(x)).flatten(1))


@net(lambda layers: dict(layers=layers, a=nn.Linear(6, 5), scale=zeros(5), shift=zeros(5)))
def made_scale(m: Net, x: Tensor) -> Tensor:
    """Normalisations whose scale is computed."""
    y = m.a(x)
    if m.layers:
        return F.layer_norm(y, (5,), 1.0 + m.scale, m.shift)
    return F.batch_norm(y, None, None, m.scale * 0.5, m.shift, True, 0.0, 0.001)


@net(lambda: dict(weight=zeros(3, 6)))
def flipped_weight(m: Net, x: Tensor) -> Tensor:
    return F.linear(x, m.weight.flip(1))


@net(lambda: dict(mix=zeros(5, 4), a=nn.Linear(6, 3)))
def matrix_times_stack(m: Net, x: Tensor) -> Tensor:
    return m.mix @ torch.tanh(m.a(x))


@net(lambda: dict(a=nn.Linear(6, 6)))
def trace(m: Net, x: Tensor) -> Tensor:
    """An identity matrix, which the export computes from another matrix."""
    return m.a(x) @ (torch.eye(6, dtype=x.dtype) + m.a.weight)


@net(lambda gathers: dict(gathers=gathers, a=nn.Linear(6, 4), b=nn.Linear(4, 2), rows=torch.tensor([0, 2, 0, 1] if gathers else [0, 1, 0])))
def expanded(m: Net, x: Tensor) -> Tensor:
    """Rows gathered, or scattered, by indices that are expanded along the columns."""
    rows, y = m.rows[:, None].expand(-1, 4), m.a(x)
    made = y.gather(0, rows) if m.gathers else x.new_zeros(2, 4).scatter_add(0, rows, y)
    return m.b(made)


@net(lambda: dict(table=zeros(5, 5), a=nn.Linear(1, 3)))
def pairs(m: Net, i: Tensor, j: Tensor) -> Tensor:
    """Elements of a matrix by rows and columns."""
    return m.a(m.table[i, j].unsqueeze(1))


@net(lambda numbers: dict(a=nn.Linear(6, numbers.shape[-1]), table=numbers, b=nn.Linear(numbers.shape[-1], 2)))
def table(m: Net, x: Tensor) -> Tensor:
    """A buffer with an uninformative name that is multiplied, or a filter or matrix of a product."""
    y = m.a(x)
    y = torch.sin(y * m.table) if m.table.dim() == 1 else torch.relu(F.linear(y, m.table))
    return m.b(y)


@net(lambda: dict(conv=nn.Conv2d(2, 2, 3), ones=torch.ones(1, 2, 3, 3)))
def counted(m: Net, x: Tensor, mask: Tensor) -> Tensor:
    """The valid share of each window: a convolution with ones, as in partial convolutions."""
    return m.conv(x * mask) / (F.conv2d(mask, m.ones) + 1.0)


def hippo(size: int) -> Tensor:
    root = torch.sqrt(2.0 * torch.arange(size) + 1.0)
    return -(torch.tril(torch.outer(root, root), -1) + torch.diag(torch.arange(size) + 1.0))


def cosines(size: int) -> Tensor:
    places = torch.arange(size, dtype=torch.float32)
    return torch.cos(math.pi / size * (places[None] + 0.5) * places[:, None])


def cases() -> Iterator[Case]:
    yield Case("image_mean_std", normalised, [real("x", 2, 3, 6, 6)])
    yield Case("sobel_and_gauss_filters", sobel, [real("x", 2, 3, 7, 7)])
    yield Case("blur_matrices", blur, [real("x", 2, 2, 6, 6)])
    yield Case("statistics_of_features", whitened, [real("x", 3, 5)])
    yield Case("detection_anchors", anchors, [real("x", 2, 3, 4, 4)])
    yield Case("distribution_focal", distribution_focal, [real("x", 2, 3, 3, 3)])
    yield Case("fourier_features", fourier_features, [real("x", 5, 2)])
    yield Case("mel_filter_bank", mel_filters, [real("x", 2, 24)], loss="cross_entropy")
    yield Case("fnet_dft_matrices", fnet, [real("x", 2, 6, 8)])
    yield Case("performer_features", performer, [real("x", 2, 5, 6)])
    yield Case("vq_codebook", vector_quantised, [real("x", 3, 6)])
    yield Case("soft_codebook", soft_codebook, [real("x", 3, 6)])
    yield Case("fixed_embedding", fixed_embedding, [tokens("ids", 3, 4, below=9)], loss="cross_entropy")
    yield Case("dino_center", ema_center, [real("x", 3, 6)])
    functions = (
        lambda y: y * y.var(1, keepdim=True),
        lambda y: y * y.std(1, keepdim=True),
        lambda y: y / y.std(),
        lambda y: y * y.var(1, unbiased=False, keepdim=True),
        normalised_of_borders,
        mirrored,
        lambda y: 1 / (y * y + 2.0),
        lambda y: 2 / (y * y + 2.0),
        lambda y: y * 1.0,
        lambda y: torch.sign(y) * torch.exp(y),
        lambda y: F.hardshrink(y, 0.25),
        lambda y: y * (y > 0).to(y.dtype),
    )
    yield Case("border_functions", lambda: beside(*map(between_net, functions)), ROWS, opset=13)
    ids = [tokens("ids", 3, 5, below=9)]
    yield Case("border_masked_mean", masked_mean, ids, "cross_entropy", opset=13)
    yield Case("border_repeated_row", repeated, ROWS, opset=13)
    yield Case("border_einsums", lambda: beside(outer("bi,bj->bij"), outer("bi,bi->bi")), ROWS, opset=13)
    yield Case("border_made_scale_batch", lambda: made_scale(False), ROWS, opset=14)
    yield Case("border_made_scale_layer", lambda: made_scale(True), ROWS)
    yield Case("border_flipped_weight", flipped_weight, ROWS, opset=13)
    yield Case("border_matrix_times_stack", matrix_times_stack, [real("x", 2, 4, 6)], opset=13)
    yield Case("border_identity", trace, ROWS, opset=14)
    yield Case("border_gather_expanded", lambda: expanded(True), ROWS, opset=16)
    yield Case("border_scatter_expanded", lambda: expanded(False), ROWS, opset=16)
    places = [tokens("i", 4, below=5), tokens("j", 4, below=5)]
    yield Case("border_pairs", pairs, places, opset=13)
    tables = (
        torch.tensor([-1.0, 0.0, 1.0]),
        torch.tensor([1.0, 0.25, 0.0625]),
        torch.tensor([0.25, 0.5, 0.25]),
        torch.hann_window(6, periodic=False),
        hippo(4),
        cosines(4),
    )
    yield Case("border_tables", lambda: beside(*(table(numbers.clone()) for numbers in tables)), ROWS, opset=13)
    image = [real("x", 2, 2, 5, 5), real("mask", 2, 2, 5, 5, offset=0.5, scale=0.5)]
    yield Case("border_ones_filter", counted, image, opset=13)
