"""Transformers upon images and other things, and what others have put in attention's place."""

from __future__ import annotations

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Lambda, Network, Residual, conv_norm, floats, mlp, pooled_head, together, tokens

IMAGE = floats((3, 64, 64))


def encoder(width: int, layers: int, *, before: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=before)
    return nn.TransformerEncoder(layer, layers)


class Patches(nn.Module):
    """64 patches of an image as a sequence, with learned places and tokens before them."""

    def __init__(self, width: int, extra: int = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 8, 8)
        self.places = nn.Parameter(torch.zeros(1, 64 + extra, width))
        self.extra = nn.Parameter(torch.zeros(1, extra, width)) if extra else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x).flatten(2).transpose(1, 2)
        if self.extra is not None:
            x = torch.cat([self.extra.expand(x.shape[0], -1, -1), x], 1)
        return x + self.places


class DeiT(nn.Module):
    """A class token and one for distillation (Touvron et al. 2021)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(Patches(width, 2), encoder(width, 3), nn.LayerNorm(width))
        self.heads = nn.ModuleList(nn.Linear(width, 10) for _ in range(2))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.body(x)
        return [head(x[:, i]) for i, head in enumerate(self.heads)]


class Captioner(nn.Module):
    """Words that attend to an image (as BLIP's decoder)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.image = nn.Sequential(Patches(width, 1), encoder(width, 2))
        self.words = nn.Embedding(300, width)
        layer = nn.TransformerDecoderLayer(width, 4, 128, 0.0, "gelu", batch_first=True)
        self.text, self.head = nn.TransformerDecoder(layer, 2), nn.Linear(width, 300)

    def forward(self, image: Tensor, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        mask = places[None] > places[:, None]
        return self.head(self.text(self.words(ids), self.image(image), tgt_mask=mask))


class Detr(nn.Module):
    """Objects as queries of a transformer (Carion et al. 2020), upon ResNet-18."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(*list(torchvision.models.resnet18().children())[:-2])
        self.project = nn.Conv2d(512, width, 1)
        self.rows = nn.Parameter(torch.zeros(4, 1, width // 2))
        self.columns = nn.Parameter(torch.zeros(1, 4, width // 2))
        self.queries = nn.Parameter(torch.zeros(10, width))
        self.transformer = nn.Transformer(width, 4, 1, 1, 128, batch_first=True)
        self.classes, self.boxes = nn.Linear(width, 92), mlp(width, width, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.project(self.body(x)).flatten(2).transpose(1, 2)
        places = torch.cat([self.rows.expand(4, 4, -1), self.columns.expand(4, 4, -1)], -1)
        x = x + places.flatten(0, 1)
        y = self.transformer(x, self.queries.expand(x.shape[0], -1, -1))
        return self.classes(y), self.boxes(y).sigmoid()


class Linformer(nn.Module):
    """Keys and values of a shorter sequence (Wang et al. 2020)."""

    def __init__(self, width: int = 64, length: int = 64) -> None:
        super().__init__()
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.shorter = nn.Parameter(0.1 * torch.randn(2, 16, length))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        key, value = self.shorter[0] @ key, self.shorter[1] @ value
        weights = (query @ key.transpose(1, 2) * 0.125).softmax(-1)
        return x + self.output(weights @ value)


class Performer(nn.Module):
    """Attention by random features, linear in the length (Choromanski et al. 2021)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("features", torch.randn(32, width))

    def feature(self, x: Tensor) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        square = x.pow(2).sum(-1, keepdim=True) / 2
        return torch.exp(F.linear(x, self.features) - square) * 32**-0.5 + 1e-4

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        query, key = self.feature(query), self.feature(key)
        total = key.transpose(1, 2) @ value
        norm = torch.einsum("bnf,bf->bn", query, key.sum(1))
        return x + self.output(query @ total / norm.unsqueeze(-1))


class Perceiver(nn.Module):
    """Few latents read many inputs, then themselves (Jaegle et al. 2021)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter = Patches(width)
        self.latents = nn.Parameter(torch.zeros(8, width))
        self.read = nn.MultiheadAttention(width, 1, batch_first=True)
        self.think, self.head = encoder(width, 2), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        latents = self.latents.unsqueeze(0).expand(x.shape[0], -1, -1)
        latents = latents + self.read(latents, x, x)[0]
        return self.head(self.think(latents).mean(1))


class Compact(nn.Module):
    """Compact convolutional transformer (Hassani et al. 2021): pooling by a sequence's weights."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.body, self.weigh, self.head = encoder(width, 2), nn.Linear(width, 1), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(self.stem(x).flatten(2).transpose(1, 2))
        return self.head((self.weigh(x).softmax(1).transpose(1, 2) @ x).squeeze(1))


class PoolFormer(nn.Module):
    """Pooling in attention's place, branches scaled by layer (Yu et al. 2022)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2))
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.mlp = nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, width, 1))
        self.scales = nn.ParameterList(nn.Parameter(torch.full((width, 1, 1), 1e-5)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.scales[0] * (self.pool(y) - y)
        return x + self.scales[1] * self.mlp(self.norms[1](x))


class MobileViT(nn.Module):
    """Unfolded patches through a transformer and back between convolutions (Mehta et al. 2022)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.local = nn.Sequential(conv_norm(width, width, act=nn.SiLU), nn.Conv2d(width, 64, 1))
        self.body = encoder(64, 2)
        self.back, self.fuse = conv_norm(64, width, 1, act=nn.SiLU), conv_norm(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.local(x)
        height, width = y.shape[2] // 2, y.shape[3] // 2
        y = y.view(-1, 64, height, 2, width, 2).permute(0, 3, 5, 2, 4, 1)
        y = self.body(y.reshape(-1, height * width, 64))
        y = y.view(-1, 2, 2, height, width, 64).permute(0, 5, 3, 1, 4, 2)
        y = self.back(y.reshape(x.shape[0], 64, 2 * height, 2 * width))
        return self.fuse(torch.cat([x, y], 1))


def upon_patches(*layers: nn.Module) -> nn.Module:
    mean = Lambda(lambda x: x.mean(1))
    return nn.Sequential(Patches(64), *layers, nn.LayerNorm(64), mean, nn.Linear(64, 10))


def vit_small() -> nn.Module:
    return torchvision.models.VisionTransformer(64, 8, 4, 3, 96, 384, num_classes=100)


BOTH = together(IMAGE, tokens(300, 16))
NETWORKS: dict[str, Network] = {
    "vit_small_opset_14": Network(vit_small, IMAGE), "deit": Network(DeiT, IMAGE, "none"),
    "blip_captioner": Network(Captioner, BOTH), "detr": Network(Detr, floats((3, 128, 128)), "none"),
    "linformer": Network(lambda: upon_patches(Linformer(), Linformer()), IMAGE),
    "performer": Network(lambda: upon_patches(Performer(), Performer()), IMAGE),
    "perceiver": Network(Perceiver, IMAGE), "compact_transformer": Network(Compact, IMAGE),
    "poolformer": Network(lambda: nn.Sequential(nn.Conv2d(3, 64, 7, 4, 2), PoolFormer(64), PoolFormer(64),
                                                pooled_head(64, 10)), IMAGE),
    "mobilevit": Network(lambda: nn.Sequential(conv_norm(3, 32, 3, 2), Residual(MobileViT()), pooled_head(32, 10)),
                         IMAGE)}
