"""Networks missing in torchvision: a U-Net, an LSTM classifier, residual networks for small images,
and small networks for tests."""

import math

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock

from net import Net, net


def two_convolutions(channels_in: int, channels: int) -> nn.Sequential:
    """Twice 3x3 convolution, batch normalisation and ReLU; the size is kept."""
    layers: list[nn.Module] = []
    for width in (channels_in, channels):
        layers += [nn.Conv2d(width, channels, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(channels),
                   nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Ronneberger et al. 2015, padded and with batch normalisation; the size is kept.

    Max pooling reduces the size. A transposed convolution, or bilinear interpolation and a 1x1
    convolution, restores it. The features of the way down are concatenated.
    """

    def __init__(self, channels: int, levels: int, classes: int, *, interpolate: bool) -> None:
        super().__init__()
        widths = [channels << level for level in range(levels + 1)]
        self.pool = nn.MaxPool2d(2)
        self.down = nn.ModuleList(two_convolutions(before, after) for before, after in zip([3, *widths], widths))
        self.up = nn.ModuleList(
            nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                          nn.Conv2d(2 * width, width, kernel_size=1))
            if interpolate
            else nn.ConvTranspose2d(2 * width, width, kernel_size=2, stride=2) for width in widths[:-1])
        self.merge = nn.ModuleList(two_convolutions(2 * width, width) for width in widths[:-1])
        self.head = nn.Conv2d(channels, classes, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        skipped = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            skipped.append(x)
        for level in reversed(range(len(self.up))):
            x = self.merge[level](torch.cat([skipped[level], self.up[level](x)], dim=1))
        return self.head(x)


def projection(before: int, after: int, *, normalised: bool) -> nn.Sequential:
    """A 1x1 convolution of stride 2 as the shortcut of a block: with batch normalisation, or with a bias."""
    convolution = nn.Conv2d(before, after, kernel_size=1, stride=2, bias=not normalised)
    return nn.Sequential(convolution, *([nn.BatchNorm2d(after)] if normalised else []))


class SmallResNet(nn.Module):
    """He et al. 2016, section 4.2: three stages of basic blocks with 16, 32 and 64 channels behind
    a 3x3 stem, the mean over positions, a linear classifier. The second and third stage halve the
    size and project their shortcut (the paper's option B).
    """

    def __init__(self, blocks: int, classes: int, *, normalised_shortcut: bool) -> None:
        super().__init__()
        widths = (16, 32, 64)
        self.conv1 = nn.Conv2d(3, widths[0], kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU()
        stages = []
        for before, width in zip((widths[0], *widths), widths):
            shortcut = None
            if width != before:
                shortcut = projection(before, width, normalised=normalised_shortcut)
            stage = [BasicBlock(before, width, 1 if shortcut is None else 2, shortcut)]
            stage += [BasicBlock(width, width) for _ in range(blocks - 1)]
            stages.append(nn.Sequential(*stage))
        self.layer1, self.layer2, self.layer3 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@net(lambda vocabulary, width, layers, classes: dict(
    embedding=nn.Embedding(vocabulary, width), lstm=nn.LSTM(width, width, num_layers=layers, batch_first=True),
    head=nn.Linear(width, classes),
))  # fmt: skip
def lstm_classifier(m: Net, input_ids: Tensor) -> Tensor:
    """Tokens, their embedding, stacked LSTM layers, classes from the last output."""
    output, _ = m.lstm(m.embedding(input_ids))
    return m.head(output[:, -1])


@net(lambda channels, groups: dict(
    stem=nn.Conv2d(3, channels, kernel_size=3, padding=1), norm1=nn.GroupNorm(groups, channels),
    conv1=nn.Conv2d(channels, 2 * channels, kernel_size=3, padding=1), norm2=nn.GroupNorm(groups, 2 * channels),
    conv2=nn.Conv2d(2 * channels, 2 * channels, kernel_size=3, stride=2, padding=1),
    shortcut=nn.Conv2d(channels, 2 * channels, kernel_size=1, stride=2), norm3=nn.GroupNorm(groups, 2 * channels),
    qkv=nn.Conv2d(2 * channels, 6 * channels, kernel_size=1),
    project=nn.Conv2d(2 * channels, 2 * channels, kernel_size=1), upsample=nn.Upsample(scale_factor=2, mode="nearest"),
    head=nn.Conv2d(2 * channels, 3, kernel_size=3, padding=1), act=nn.SiLU(),
))  # fmt: skip
def diffusion_block(m: Net, x: Tensor) -> Tensor:
    """Residual blocks and attention over positions as in diffusion networks: GroupNorm, SiLU."""
    x = m.stem(x)
    h = m.conv1(m.act(m.norm1(x)))
    x = m.conv2(m.act(m.norm2(h))) + m.shortcut(x)
    query, key, value = m.qkv(m.norm3(x)).flatten(2).chunk(3, dim=1)
    # Channels are a square number, so that the scale is exact in single precision.
    scores = query.transpose(1, 2) @ key / math.sqrt(query.shape[1])
    attended = value @ torch.softmax(scores, dim=-1).transpose(1, 2)
    x = x + m.project(attended.view(x.shape))
    return m.head(m.act(m.upsample(x)))


@net(lambda width: dict(weight=nn.Parameter(torch.ones(width)), eps=1e-5))
def rms_norm(m: Net, x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.eps) * m.weight


class LlamaBlock(nn.Module):
    """A transformer layer with RMSNorm, rotary positions, grouped queries and SwiGLU."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.head_width = heads, groups, width // heads
        self.attention_norm = rms_norm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.head_width, bias=False)
        self.value = nn.Linear(width, groups * self.head_width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.mlp_norm = rms_norm(width)
        self.gate = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def rotate(self, x: Tensor) -> Tensor:
        """Positions 0, 1, ... rotate the two halves of each head; angles are powers of two."""
        half = self.head_width // 2
        position = torch.arange(x.shape[2], device=x.device).unsqueeze(1)
        angle = position * torch.tensor([2.0 ** -(i + 1) for i in range(half)], dtype=x.dtype)
        cosine, sine = torch.cos(angle), torch.sin(angle)
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)

    def repeat(self, x: Tensor) -> Tensor:
        """Repeats each group's keys or values for all heads that share them."""
        batch, groups, sequence, width = x.shape
        shared = self.heads // groups
        expanded = x[:, :, None].expand(batch, groups, shared, sequence, width)
        return expanded.reshape(batch, self.heads, sequence, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, sequence, width = x.shape
        h = self.attention_norm(x)
        query = self.query(h).view(batch, sequence, self.heads, -1).transpose(1, 2)
        key = self.key(h).view(batch, sequence, self.groups, -1).transpose(1, 2)
        value = self.value(h).view(batch, sequence, self.groups, -1).transpose(1, 2)
        query, key = self.rotate(query), self.rotate(key)
        scores = query @ self.repeat(key).transpose(2, 3) / math.sqrt(self.head_width)
        future = torch.ones(sequence, sequence, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
        attended = (weights @ self.repeat(value)).transpose(1, 2).reshape(batch, sequence, width)
        x = x + self.output(attended)
        h = self.mlp_norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


@net(lambda vocabulary, width, layers: dict(
    embedding=nn.Embedding(vocabulary, width),
    layers=nn.ModuleList(LlamaBlock(width, heads=4, groups=2) for _ in range(layers)), norm=rms_norm(width),
    head=nn.Linear(width, vocabulary, bias=False),
))  # fmt: skip
def llama(m: Net, input_ids: Tensor) -> Tensor:
    """A language model with few of these layers; head and embedding are separate."""
    x = m.embedding(input_ids)
    for layer in m.layers:
        x = layer(x)
    return m.head(m.norm(x))


def make_vit_micro() -> nn.Module:
    """The architecture of ViT-Ti/16 with fewer, narrower layers and smaller images."""
    return torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=3, num_heads=3,
                                                hidden_dim=48, mlp_dim=192, num_classes=10)
