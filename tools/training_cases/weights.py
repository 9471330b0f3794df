"""Computed weights, shared weights, weights read by several calls, and trained scalars of shape [] and [1]."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, beside, net, real, tokens, zeros

IMAGE = real("x", 2, 3, 8, 8)


@net(lambda: dict(first=nn.utils.weight_norm(nn.Linear(6, 8)), second=nn.utils.weight_norm(nn.Linear(8, 3))))
def weight_norm_linear(m: Net, x: Tensor) -> Tensor:
    return m.second(torch.tanh(m.first(x)))


@net(lambda: dict(first=nn.utils.weight_norm(nn.Conv2d(3, 4, 3, padding=1)), second=nn.utils.weight_norm(nn.Conv1d(4, 5, 3))))
def weight_norm_conv(m: Net, x: Tensor) -> Tensor:
    return m.second(F.leaky_relu(m.first(x), 0.1).flatten(2))


@net(lambda: dict(first=nn.Linear(5, 6), weight=zeros(4, 6), u=F.normalize(torch.arange(1.0, 5.0), dim=0)))
def spectral_linear(m: Net, x: Tensor) -> Tensor:
    """A linear layer divided by its largest singular value, after power iterations with fixed vectors."""
    v = F.normalize(torch.matmul(m.weight.t(), m.u.unsqueeze(1)), dim=0)
    u = torch.matmul(m.weight, v)
    sigma = (m.u.unsqueeze(1) * u).sum()
    return F.linear(torch.relu(m.first(x)), m.weight / sigma)


@net(lambda: dict(weight=zeros(4, 3, 3, 3), norm=nn.GroupNorm(2, 4)))
def standardised_conv(m: Net, x: Tensor) -> Tensor:
    """Weight standardisation."""
    weight = m.weight - m.weight.mean((1, 2, 3), keepdim=True)
    weight = weight / torch.sqrt((weight * weight).mean((1, 2, 3), keepdim=True) + 0.001)
    return m.norm(F.conv2d(x, weight, padding=1))


@net(lambda: dict(first=zeros(8, 6), second=zeros(3, 8)))
def equalised_linear(m: Net, x: Tensor) -> Tensor:
    """Weights scaled when they are used, as in StyleGAN."""
    return F.linear(F.leaky_relu(F.linear(x, m.first * 0.5), 0.2), m.second * 0.25)


@net(lambda kind, *shape: dict(
    kind=kind, shape=shape, stem=nn.Conv2d(3, 4, 3, padding=1), code=zeros(1, 5), maker=nn.Linear(5, math.prod(shape))
))  # fmt: skip
def hyper_conv(m: Net, x: Tensor) -> Tensor:
    """A convolution whose weight another network computes from an embedding."""
    x = torch.relu(m.stem(x))
    weight = m.maker(torch.tanh(m.code)).view(m.shape)
    if m.kind == "transposed":
        return F.conv_transpose2d(x, weight, stride=2)
    return F.conv2d(x, weight, padding=1, groups=4 if m.kind == "depthwise" else 1)


@net(lambda: dict(maker=nn.Linear(4, 6 * 5 + 5)))
def hyper_linear(m: Net, x: Tensor, task: Tensor) -> Tensor:
    """Weights that depend on a second input, one matrix for every sample."""
    made = m.maker(task)
    weight = made[:, :30].reshape(-1, 6, 5)
    return torch.bmm(x, weight) + made[:, 30:].unsqueeze(1)


@net(lambda: dict(left=zeros(5, 2), right=zeros(2, 6), bias=zeros(5)))
def hyper_shared(m: Net, x: Tensor) -> Tensor:
    """One computed matrix for all samples."""
    return F.linear(x, torch.tanh(m.left @ m.right), m.bias)


@net(lambda: dict(choice=nn.Linear(4, 3), kernels=zeros(3, 5 * 4 * 3 * 3)))
def dynamic_conv(m: Net, x: Tensor) -> Tensor:
    """A mixture of kernels, chosen by the image, applied as one grouped convolution."""
    batch, channels, height, width = x.shape
    share = torch.softmax(m.choice(x.mean((2, 3))), -1)
    weight = (share @ m.kernels).view(batch * 5, channels, 3, 3)
    made = F.conv2d(x.reshape(1, batch * channels, height, width), weight, padding=1, groups=batch)
    return made.view(batch, 5, height, width)


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), head=nn.Linear(4, 6)))
def siamese(m: Net, *images: Tensor) -> Tensor:
    """One encoder with one batch normalisation, called on two or three inputs."""
    first, *others = [m.head(torch.relu(m.norm(m.conv(x))).mean((2, 3))) for x in images]
    for other in others:
        first = first - other
    return first * first


@net(lambda: dict(first=nn.Linear(6, 6), second=nn.Linear(6, 6), norm=nn.BatchNorm1d(6)))
def twice_normalised(m: Net, x: Tensor) -> Tensor:
    """One batch normalisation in two places of one network."""
    return m.norm(m.second(torch.relu(m.norm(m.first(x)))))


@net(lambda: dict(
    make=nn.ConvTranspose2d(4, 3, 4),
    judge=nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(4, 1)),
))  # fmt: skip
def discriminator(m: Net, image: Tensor, noise: Tensor) -> Tensor:
    """Called on real and on generated images."""
    fake = torch.tanh(m.make(noise))
    return torch.cat([m.judge(image), m.judge(fake)], 1)


@net(lambda layer, times: dict(layer=layer, times=times))
def recursive(m: Net, x: Tensor) -> Tensor:
    """One layer, applied several times."""
    for _ in range(m.times):
        x = x + torch.tanh(m.layer(x))
    return x


@net(lambda: dict(norm=nn.LayerNorm(6), first=nn.Linear(6, 6), second=nn.Linear(6, 6)))
def shared_norm(m: Net, x: Tensor) -> Tensor:
    """Layer and group normalisations with one scale for several places."""
    x = x + m.first(m.norm(x))
    return m.norm(x + m.second(m.norm(x)))


@net(lambda: dict(embed=nn.Embedding(11, 6), mix=nn.Linear(6, 6), head=nn.Linear(6, 11, bias=False)))
def tied(m: Net, ids: Tensor) -> Tensor:
    """An embedding that the head reads too."""
    return m.head(torch.relu(m.mix(m.embed(ids))))


def tie(m: Net) -> Net:
    m.head.weight = m.embed.weight
    return m


@net(lambda: dict(weight=zeros(4, 7), down=zeros(4), up=zeros(7)))
def tied_autoencoder(m: Net, x: Tensor) -> Tensor:
    """The decoder is the encoder transposed."""
    return F.linear(torch.sigmoid(F.linear(x, m.weight, m.down)), m.weight.t(), m.up)


@net(lambda: dict(down=nn.Linear(8, 2, bias=False), up=nn.Linear(2, 7)))
def low_rank_net(m: Net, x: Tensor) -> Tensor:
    return m.up(m.down(x))


@net(lambda: dict(base=nn.Linear(8, 6).requires_grad_(False), down=zeros(2, 8), up=zeros(6, 2)))
def lora_linear(m: Net, x: Tensor) -> Tensor:
    """A frozen linear layer with a parallel adapter."""
    return m.base(x) + F.linear(F.linear(x, m.down), m.up) * 2.0


@net(lambda: dict(base=nn.Linear(8, 6).requires_grad_(False), down=zeros(2, 8), up=zeros(6, 2)))
def lora_merged(m: Net, x: Tensor) -> Tensor:
    """The adapter is added to the weight."""
    return F.linear(x, m.base.weight + m.up @ m.down, m.base.bias)


@net(lambda: dict(first=lora_linear(), second=lora_linear(), back=nn.Linear(6, 8).requires_grad_(False)))
def lora_stack(m: Net, x: Tensor) -> Tensor:
    return m.second(torch.relu(m.back(m.first(x))))


def scalar(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


@net(lambda *shape: dict(first=nn.Linear(6, 6), second=nn.Linear(6, 6), alpha=scalar(*shape), beta=scalar(*shape)))
def rezero(m: Net, x: Tensor) -> Tensor:
    """Residual branches with a gate."""
    x = x + m.alpha * torch.relu(m.first(x))
    return x + torch.relu(m.second(x)) * m.beta


@net(lambda: dict(conv=nn.Conv2d(3, 3, 3, padding=1), gate=scalar()))
def rezero_conv(m: Net, x: Tensor) -> Tensor:
    return x + torch.tanh(m.gate) * m.conv(x)


@net(lambda: dict(layers=nn.ModuleList(nn.Linear(5, 5) for _ in range(3)), weights=zeros(3), gamma=scalar(1)))
def weighted_sum(m: Net, x: Tensor) -> Tensor:
    """Branches with weights that are elements of one vector, and of a softmax of it (ELMo)."""
    share = torch.softmax(m.weights, 0)
    total = 0
    for i, layer in enumerate(m.layers):
        x = torch.tanh(layer(x))
        total = total + share[i] * x
    return m.gamma * total


@net(lambda: dict(left=nn.Conv2d(2, 3, 1), right=nn.Conv2d(2, 3, 1), weights=zeros(2)))
def fast_fusion(m: Net, x: Tensor, y: Tensor) -> Tensor:
    """BiFPN's weights: positive, divided by their sum."""
    w = torch.relu(m.weights)
    w = w / (w.sum() + 0.0001)
    return torch.relu(w[0] * m.left(x) + w[1] * m.right(y))


@net(lambda: dict(image=nn.Linear(6, 4), text=nn.Linear(5, 4), logit_scale=scalar()))
def clip(m: Net, image: Tensor, text: Tensor) -> Tensor:
    """Cosines of images and texts, times the exponential of a scalar."""
    image, text = m.image(image), m.text(text)
    image = image / image.norm(dim=1, keepdim=True)
    text = text / text.norm(dim=1, keepdim=True)
    return m.logit_scale.exp() * image @ text.t()


@net(lambda: dict(image=nn.Linear(6, 4), text=nn.Linear(5, 4), logit_scale=scalar(), logit_bias=scalar()))
def siglip(m: Net, image: Tensor, text: Tensor) -> Tensor:
    """Cosines with a scale and a bias."""
    image = F.normalize(m.image(image), dim=-1)
    text = F.normalize(m.text(text), dim=-1)
    return image @ text.t() * m.logit_scale.exp() + m.logit_bias


@net(lambda *shape: dict(head=nn.Linear(6, 4), temperature=scalar(*shape)))
def temperature(m: Net, x: Tensor) -> Tensor:
    """Logits divided by a trained temperature."""
    return m.head(x) / m.temperature


@net(lambda: dict(qkv=nn.Linear(8, 24, bias=False), temperature=zeros(2, 1, 1), out=nn.Linear(8, 8)))
def temperature_attention(m: Net, x: Tensor) -> Tensor:
    """One temperature for every head, as XCiT and Swin v2 have."""
    batch, count, width = x.shape
    q, k, v = m.qkv(x).reshape(batch, count, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    scores = torch.softmax(q @ k.transpose(-2, -1) * m.temperature, -1)
    return m.out((scores @ v).transpose(1, 2).reshape(batch, count, width))


@net(lambda *shape: dict(conv=nn.Conv2d(3, 4, 3), p=scalar(*shape), head=nn.Linear(4, 5)))
def gem(m: Net, x: Tensor) -> Tensor:
    """Generalised-mean pooling with a trained exponent."""
    x = torch.sigmoid(m.conv(x)).clamp(min=0.001).pow(m.p)
    return m.head(x.mean((2, 3)).pow(1.0 / m.p))


PLACES = ("add", "sub", "under", "mul", "div", "over", "exponent", "base")


@net(lambda *shape: dict(layer=nn.Linear(5, 4), **{name: scalar(*shape) for name in PLACES}))
def everywhere(m: Net, x: Tensor) -> Tensor:
    """Scalars on either side of Add, Sub, Mul, Div and Pow."""
    x = torch.sigmoid(m.layer(x)) + m.add
    x = (m.sub - x) * m.mul - m.under
    x = m.over / (1.0 + x * x) + x / m.div
    return torch.pow(x * x + 0.5, m.exponent) + torch.pow(m.base, x)


@net(lambda: dict(slope=scalar(), shift=scalar()))
def scalars_only(m: Net, x: Tensor) -> Tensor:
    """Functions of one input; only scalars are trained."""
    return torch.tanh(x * m.slope + m.shift)


@net(lambda: dict(first=nn.Linear(5, 5), scale=scalar(), offset=scalar()))
def shared_scalar(m: Net, x: Tensor) -> Tensor:
    """One scalar, read at several places and by other scalars."""
    both = m.scale * m.offset
    return torch.relu(m.first(x * m.scale)) * both + m.scale - m.offset.square()


@net(lambda channels_last: dict(
    channels_last=channels_last, depthwise=nn.Conv2d(4, 4, 3, padding=1, groups=4), norm=nn.LayerNorm(4), up=nn.Linear(4, 8),
    down=nn.Linear(8, 4), layer_scale=nn.Parameter(torch.zeros(4) if channels_last else torch.zeros(4, 1, 1)),
))  # fmt: skip
def convnext(m: Net, x: Tensor) -> Tensor:
    """A block with a layer scale of [C] or [C, 1, 1]."""
    y = m.norm(m.depthwise(x).permute(0, 2, 3, 1))
    y = m.down(F.gelu(m.up(y)))
    if m.channels_last:
        return x + (m.layer_scale * y).permute(0, 3, 1, 2)
    return x + m.layer_scale * y.permute(0, 3, 1, 2)


@net(lambda: dict(layer=nn.Linear(6, 6), slope=nn.PReLU(), g=scalar(1)))
def learned_norm(m: Net, x: Tensor) -> Tensor:
    """Normalisation with a single scale (ScaleNorm), and PReLU with a single slope."""
    x = m.slope(m.layer(x))
    return m.g * x / (torch.norm(x, dim=-1, keepdim=True) + 0.001)


def cases() -> Iterator[Case]:
    yield Case("weight_norm_linear", weight_norm_linear, [real("x", 3, 6)])
    yield Case("weight_norm_conv", weight_norm_conv, [real("x", 2, 3, 5, 5)])
    yield Case("spectral_norm", spectral_linear, [real("x", 3, 5)])
    yield Case("weight_standardisation", standardised_conv, [IMAGE])
    yield Case("equalised_weights", equalised_linear, [real("x", 3, 6)])
    shapes = {"conv": (6, 4, 3, 3), "depthwise": (4, 1, 3, 3), "transposed": (4, 3, 2, 2)}
    for kind, shape in shapes.items():
        yield Case(f"hyper_{kind}", lambda kind=kind, shape=shape: hyper_conv(kind, *shape), [IMAGE])
    yield Case("hyper_linear_per_sample", hyper_linear, [real("x", 2, 3, 6), real("task", 2, 4)])
    yield Case("hyper_linear_shared", hyper_shared, [real("x", 3, 6)])
    yield Case("dynamic_conv", dynamic_conv, [real("x", 2, 4, 6, 6)])
    pair = [real("left", 2, 3, 6, 6), real("right", 2, 3, 6, 6)]
    yield Case("siamese_batch_norm_twice", siamese, pair)
    yield Case("siamese_batch_norm_thrice", siamese, [*pair, real("third", 2, 3, 6, 6)])
    yield Case("batch_norm_in_two_places", twice_normalised, [real("x", 5, 6)])
    yield Case("discriminator_twice", discriminator, [real("image", 2, 3, 4, 4), real("noise", 2, 4, 1, 1)], loss="bce_with_logits")
    yield Case("layer_three_times", lambda: recursive(nn.Linear(6, 6), 3), [real("x", 3, 6)])
    yield Case("conv_three_times", lambda: recursive(nn.Conv2d(3, 3, 3, padding=1), 3), [real("x", 2, 3, 5, 5)])
    yield Case("layer_norm_shared", shared_norm, [real("x", 2, 3, 6)])
    yield Case("embedding_tied", lambda: tie(tied()), [tokens("ids", 2, 4, below=11)], loss="cross_entropy")
    yield Case("autoencoder_tied", tied_autoencoder, [real("x", 3, 7)])
    frozen = {"trainable": {"freeze": ["*base*", "back*"]}}
    yield Case("low_rank", low_rank_net, [real("x", 2, 3, 8)])
    yield Case("lora_in_pytorch", lora_stack, [real("x", 2, 3, 8)], options=frozen)
    yield Case("lora_merged", lora_merged, [real("x", 3, 8)], options={"trainable": {"freeze": ["base*"]}})
    yield Case("rezero", lambda: beside(rezero(), rezero(1)), [real("x", 3, 6)])
    yield Case("rezero_conv_tanh", rezero_conv, [real("x", 2, 3, 5, 5)])
    yield Case("weighted_sum_of_layers", weighted_sum, [real("x", 3, 5)])
    yield Case("fast_normalised_fusion", fast_fusion, [real("x", 2, 2, 4, 4), real("y", 2, 2, 4, 4)], fills={"weights": (1.0, 0.5)})
    pair = [real("image", 3, 6), real("text", 3, 5)]
    yield Case("clip", clip, pair, loss="cross_entropy")
    yield Case("siglip", siglip, pair, loss="bce_with_logits")
    yield Case("temperature", lambda: beside(temperature(), temperature(1)), [real("x", 3, 6)], loss="cross_entropy")
    yield Case("temperature_per_head", temperature_attention, [real("x", 2, 5, 8)], fills={"temperature": (1.0, 0.5)})
    image = [real("x", 2, 3, 6, 6)]
    yield Case("gem", lambda: beside(gem(), gem(1)), image, loss="cross_entropy", fills={"*.p": (3.0, 0.5)})
    fills = {"*.div": (2.0, 0.25), "*.base": (1.5, 0.25), "*.exponent": (1.5, 0.25)}
    yield Case("scalars_everywhere", lambda: beside(everywhere(), everywhere(1)), [real("x", 3, 5)], fills=fills)
    yield Case("scalars_only", scalars_only, [real("x", 3, 4)])
    yield Case("scalar_shared", shared_scalar, [real("x", 3, 5)])
    image = [real("x", 2, 4, 5, 5)]
    yield Case("convnext_layer_scale", lambda: beside(convnext(True), convnext(False)), image)
    yield Case("scale_norm_prelu", learned_norm, [real("x", 3, 6)])
