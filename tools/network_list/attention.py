"""Transformers for images and other data, and replacements of attention."""

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

from net import Net, function_net, net

from .framework import Network, residual, conv_norm, floats, mlp, pooled_head, together, tokens

IMAGE = floats((3, 64, 64))


def encoder(width: int, layers: int, *, before: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=before)
    return nn.TransformerEncoder(layer, layers)


@net(lambda width, extra=0: dict(
    conv=nn.Conv2d(3, width, 8, 8), places=nn.Parameter(torch.zeros(1, 64 + extra, width)),
    extra=nn.Parameter(torch.zeros(1, extra, width)) if extra else None,
))  # fmt: skip
def patches(m: Net, x: Tensor) -> Tensor:
    """64 patches of an image as a sequence, with learned positions, preceded by tokens."""
    x = m.conv(x).flatten(2).transpose(1, 2)
    if m.extra is not None:
        x = torch.cat([m.extra.expand(x.shape[0], -1, -1), x], 1)
    return x + m.places


@net(lambda width=64: dict(
    body=nn.Sequential(patches(width, 2), encoder(width, 3), nn.LayerNorm(width)),
    heads=nn.ModuleList(nn.Linear(width, 10) for _ in range(2)),
))  # fmt: skip
def deit(m: Net, x: Tensor) -> list[Tensor]:
    """A class token and one for distillation (Touvron et al. 2021)."""
    x = m.body(x)
    return [head(x[:, i]) for i, head in enumerate(m.heads)]


class Captioner(nn.Module):
    """Words that attend to an image (as BLIP's decoder)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.image = nn.Sequential(patches(width, 1), encoder(width, 2))
        self.words = nn.Embedding(300, width)
        layer = nn.TransformerDecoderLayer(width, 4, 128, 0.0, "gelu", batch_first=True)
        self.text, self.head = nn.TransformerDecoder(layer, 2), nn.Linear(width, 300)

    def forward(self, image: Tensor, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        mask = places[None] > places[:, None]
        return self.head(self.text(self.words(ids), self.image(image), tgt_mask=mask))


@net(lambda width=64: dict(
    body=nn.Sequential(*list(torchvision.models.resnet18().children())[:-2]), project=nn.Conv2d(512, width, 1),
    rows=nn.Parameter(torch.zeros(4, 1, width // 2)), columns=nn.Parameter(torch.zeros(1, 4, width // 2)),
    queries=nn.Parameter(torch.zeros(10, width)), transformer=nn.Transformer(width, 4, 1, 1, 128, batch_first=True),
    classes=nn.Linear(width, 92), boxes=mlp(width, width, 4),
))  # fmt: skip
def detr(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    """Objects as queries of a transformer (Carion et al. 2020), with ResNet-18 as backbone."""
    x = m.project(m.body(x)).flatten(2).transpose(1, 2)
    places = torch.cat([m.rows.expand(4, 4, -1), m.columns.expand(4, 4, -1)], -1)
    x = x + places.flatten(0, 1)
    y = m.transformer(x, m.queries.expand(x.shape[0], -1, -1))
    return m.classes(y), m.boxes(y).sigmoid()


@net(lambda width=64, length=64: dict(
    qkv=nn.Linear(width, 3 * width), output=nn.Linear(width, width),
    shorter=nn.Parameter(0.1 * torch.randn(2, 16, length)),
))  # fmt: skip
def linformer(m: Net, x: Tensor) -> Tensor:
    """Keys and values of a shorter sequence (Wang et al. 2020)."""
    query, key, value = m.qkv(x).chunk(3, -1)
    key, value = m.shorter[0] @ key, m.shorter[1] @ value
    weights = (query @ key.transpose(1, 2) * 0.125).softmax(-1)
    return x + m.output(weights @ value)


def random_features(x: Tensor, features: Tensor) -> Tensor:
    x = x * x.shape[-1] ** -0.25
    square = x.pow(2).sum(-1, keepdim=True) / 2
    return torch.exp(F.linear(x, features) - square) * 32**-0.5 + 1e-4


@net(lambda width=64: dict(
    qkv=nn.Linear(width, 3 * width), output=nn.Linear(width, width), features=torch.randn(32, width),
))  # fmt: skip
def performer(m: Net, x: Tensor) -> Tensor:
    """Attention by random features, linear in the length (Choromanski et al. 2021)."""
    query, key, value = m.qkv(x).chunk(3, -1)
    query, key = random_features(query, m.features), random_features(key, m.features)
    total = key.transpose(1, 2) @ value
    norm = torch.einsum("bnf,bf->bn", query, key.sum(1))
    return x + m.output(query @ total / norm.unsqueeze(-1))


@net(lambda width=64: dict(
    enter=patches(width), latents=nn.Parameter(torch.zeros(8, width)),
    read=nn.MultiheadAttention(width, 1, batch_first=True), think=encoder(width, 2), head=nn.Linear(width, 10),
))  # fmt: skip
def perceiver(m: Net, x: Tensor) -> Tensor:
    """A few latents attend to many inputs, then to each other (Jaegle et al. 2021)."""
    x = m.enter(x)
    latents = m.latents.unsqueeze(0).expand(x.shape[0], -1, -1)
    latents = latents + m.read(latents, x, x)[0]
    return m.head(m.think(latents).mean(1))


@net(lambda width=64: dict(
    stem=nn.Sequential(nn.Conv2d(3, width, 7, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)), body=encoder(width, 2),
    weigh=nn.Linear(width, 1), head=nn.Linear(width, 10),
))  # fmt: skip
def compact(m: Net, x: Tensor) -> Tensor:
    """Compact convolutional transformer (Hassani et al. 2021): pooling by a sequence's weights."""
    x = m.body(m.stem(x).flatten(2).transpose(1, 2))
    return m.head((m.weigh(x).softmax(1).transpose(1, 2) @ x).squeeze(1))


@net(lambda width: dict(
    norms=nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2)), pool=nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    mlp=nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, width, 1)),
    scales=nn.ParameterList(nn.Parameter(torch.full((width, 1, 1), 1e-5)) for _ in range(2)),
))  # fmt: skip
def pool_former(m: Net, x: Tensor) -> Tensor:
    """Pooling in attention's place, branches scaled by layer (Yu et al. 2022)."""
    y = m.norms[0](x)
    x = x + m.scales[0] * (m.pool(y) - y)
    return x + m.scales[1] * m.mlp(m.norms[1](x))


@net(lambda width=32: dict(
    local=nn.Sequential(conv_norm(width, width, act=nn.SiLU), nn.Conv2d(width, 64, 1)), body=encoder(64, 2),
    back=conv_norm(64, width, 1, act=nn.SiLU), fuse=conv_norm(2 * width, width),
))  # fmt: skip
def mobile_vit(m: Net, x: Tensor) -> Tensor:
    """Unfolded patches through a transformer and back between convolutions (Mehta et al. 2022)."""
    y = m.local(x)
    height, width = y.shape[2] // 2, y.shape[3] // 2
    y = y.view(-1, 64, height, 2, width, 2).permute(0, 3, 5, 2, 4, 1)
    y = m.body(y.reshape(-1, height * width, 64))
    y = y.view(-1, 2, 2, height, width, 64).permute(0, 5, 3, 1, 4, 2)
    y = m.back(y.reshape(x.shape[0], 64, 2 * height, 2 * width))
    return m.fuse(torch.cat([x, y], 1))


def upon_patches(*layers: nn.Module) -> nn.Module:
    mean = function_net(lambda x: x.mean(1))
    return nn.Sequential(patches(64), *layers, nn.LayerNorm(64), mean, nn.Linear(64, 10))


def vit_small() -> nn.Module:
    return torchvision.models.VisionTransformer(64, 8, 4, 3, 96, 384, num_classes=100)


BOTH = together(IMAGE, tokens(300, 16))
NETWORKS: dict[str, Network] = {
    "vit_small_opset_14": Network(vit_small, IMAGE), "deit": Network(deit, IMAGE, "none"),
    "blip_captioner": Network(Captioner, BOTH), "detr": Network(detr, floats((3, 128, 128)), "none"),
    "linformer": Network(lambda: upon_patches(linformer(), linformer()), IMAGE),
    "performer": Network(lambda: upon_patches(performer(), performer()), IMAGE),
    "perceiver": Network(perceiver, IMAGE), "compact_transformer": Network(compact, IMAGE),
    "poolformer": Network(lambda: nn.Sequential(nn.Conv2d(3, 64, 7, 4, 2), pool_former(64), pool_former(64),
                                                pooled_head(64, 10)), IMAGE),
    "mobilevit": Network(lambda: nn.Sequential(conv_norm(3, 32, 3, 2), residual(mobile_vit()), pooled_head(32, 10)),
                         IMAGE)}
