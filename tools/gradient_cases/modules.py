"""PyTorch modules as torch.onnx writes them: the chains in users' files."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import Case, Input, data, exported, f32, in_turn, integer
from net import Net, function_net, net

EPSILON = f32(1e-5)


def named(name: str, case: Case) -> Case:
    case.counts_as = f"exported {name}"
    return case


def function(name: str, call: Callable[..., Tensor], *inputs: Input) -> Case:
    double = "celu" not in name  # ONNX defines it for single precision only
    return named("function", exported(name, function_net(call), inputs, double=double))


def batch_norm(channels: int) -> nn.BatchNorm2d:
    momentum = 1.0 - f32(0.9)  # the file holds 0.9 in single precision
    return nn.BatchNorm2d(channels, eps=EPSILON, momentum=momentum)


def cases() -> Iterator[Case]:
    return in_turn(convolutional, attention, rearranging, arithmetic, indexing)


@net(lambda channels: dict(pool=nn.AdaptiveAvgPool2d(1), down=nn.Conv2d(channels, 2, 1), up=nn.Conv2d(2, channels, 1)))
def squeeze_excite(m: Net, x: Tensor) -> Tensor:
    return x * torch.sigmoid(m.up(torch.relu(m.down(m.pool(x)))))


@net(lambda: dict(layers=nn.Sequential(
    nn.Conv2d(4, 8, 1, bias=False), batch_norm(8), nn.ReLU6(), nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
    batch_norm(8), nn.ReLU6(), nn.Conv2d(8, 4, 1, bias=False), batch_norm(4),
)))  # fmt: skip
def inverted(m: Net, x: Tensor) -> Tensor:
    """MobileNet's block."""
    return x + m.layers(x)


@net(lambda channels: dict(
    depthwise=nn.Conv2d(channels, channels, 5, padding=2, groups=channels), norm=nn.LayerNorm(channels, eps=EPSILON),
    up=nn.Linear(channels, 3 * channels), down=nn.Linear(3 * channels, channels),
    scale=nn.Parameter(torch.ones(channels, 1, 1)),
))  # fmt: skip
def conv_next_block(m: Net, x: Tensor) -> Tensor:
    h = m.norm(m.depthwise(x).permute(0, 2, 3, 1))
    h = m.down(F.gelu(m.up(h))).permute(0, 3, 1, 2)
    return x + m.scale * h


def convolutional() -> Iterator[Case]:
    image = data("x", (2, 4, 6, 5))
    modules = {"squeeze_excite": squeeze_excite(4), "inverted_residual": inverted(), "convnext": conv_next_block(4),
               "conv_bn_relu": nn.Sequential(nn.Conv2d(4, 6, 3, stride=2), batch_norm(6), nn.ReLU()),
               "conv_groups": nn.Conv2d(4, 6, (3, 2), groups=2, dilation=(2, 1), padding=(2, 1)),
               "conv_reflect": nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"),
               "conv_replicate": nn.Conv2d(4, 3, 3, padding=1, padding_mode="replicate"),
               "conv_transposed": nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
               "max_pool_ceil": nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
               "max_pool_indices": nn.Sequential(nn.Conv2d(4, 4, 3), nn.MaxPool2d(2)),
               "average_pool": nn.AvgPool2d(3, stride=2, padding=1),
               "average_pool_inside": nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
               "adaptive_pool": nn.AdaptiveAvgPool2d((3, 5)), "adaptive_max_pool": nn.AdaptiveMaxPool2d(1),
               "local_response": nn.Sequential(nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4, eps=EPSILON)),
               "instance_norm": nn.InstanceNorm2d(4, eps=EPSILON, affine=True),
               "instance_norm_plain": nn.InstanceNorm2d(4, eps=EPSILON),
               "upsample_nearest": nn.Upsample(scale_factor=2, mode="nearest"),
               "upsample_bilinear": nn.Upsample(scale_factor=2, mode="bilinear"),
               "upsample_corners": nn.Upsample(size=(9, 7), mode="bilinear", align_corners=True),
               "pixel_shuffle": nn.PixelShuffle(2), "flatten_linear": nn.Sequential(nn.Flatten(), nn.Linear(120, 3)),
               "zero_pad": nn.ZeroPad2d((1, 2, 0, 3)), "reflection_pad": nn.ReflectionPad2d((1, 2, 0, 3)),
               "constant_pad": nn.ConstantPad2d((1, -1, 2, 0), 0.5), "prelu": nn.PReLU(4),
               "unfold_stride": nn.Conv2d(4, 6, 2, stride=2, bias=False)}
    for name, module in modules.items():
        yield named("convolutional module", exported(f"conv_{name}", module, [image]))
    for rank, layer, pool in ((1, nn.Conv1d, nn.MaxPool1d), (3, nn.Conv3d, nn.MaxPool3d)):
        module = nn.Sequential(layer(3, 4, 3, padding=1), nn.Tanh(), pool(2))
        signal = data("x", (2, 3, *(6, 5, 4)[:rank]))
        yield named("convolutional module", exported(f"conv_rank{rank}", module, [signal]))


@net(lambda width, heads: dict(attention=nn.MultiheadAttention(width, heads, batch_first=True)))
def cross_attention(m: Net, x: Tensor, memory: Tensor) -> Tensor:
    return m.attention(x, memory, memory, need_weights=False)[0]


def attention() -> Iterator[Case]:
    x = data("x", (2, 5, 8))
    memory = data("memory", (2, 3, 8))
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, layer_norm_eps=EPSILON)
    yield named("attention", exported("attention_encoder_layer", layer, [x]))
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, activation="gelu", norm_first=True,
                                       layer_norm_eps=EPSILON)
    yield named("attention", exported("attention_encoder_prenorm", layer, [x]))
    layer = nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True, layer_norm_eps=EPSILON)
    yield named("attention", exported("attention_decoder_layer", layer, [x, memory]))
    yield named("attention", exported("attention_cross", cross_attention(8, 4), [x, memory]))

    def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.transpose(-2, -1) * 0.5
        mask = torch.full((4, 4), -1e4, dtype=scores.dtype).triu(1)
        return torch.softmax(scores + mask, -1) @ value

    heads = [data(name, (2, 3, 4, 5)) for name in ("q", "k", "v")]
    yield function("attention_additive_mask", causal, *heads)

    def relative(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return torch.softmax(query @ key.transpose(-2, -1) / 2.0 + bias, -1) @ value

    yield function("attention_bias", relative, *heads, data("b", (3, 4, 4)))


def rearranging() -> Iterator[Case]:
    x = data("x", (2, 3, 4, 6))
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "chunk": lambda x: torch.cat([part * i for i, part in enumerate(x.chunk(3, 3), 1)], 1),
        "split_unequal": lambda x: torch.cat([p.sum(3) for p in x.split([1, 3, 2], 3)], 2),
        "slice_steps": lambda x: x[:, ::2, 1:4:2, -3:] * 2.0, "slice_negative": lambda x: x[:, -2:, :-1].tanh(),
        "flip": lambda x: x.flip(3).flip(1) * 2.0, "roll": lambda x: x.roll(2, 3) + x,
        "select": lambda x: x[:, 1] * x[:, 2], "stack": lambda x: torch.stack([x[:, 0], x[:, 2]], 1),
        "unbind": lambda x: sum(part * (i + 1.0) for i, part in enumerate(x.unbind(1))),
        "expand": lambda x: x[:, :1].expand(2, 5, 4, 6) * 3.0, "repeat": lambda x: x.repeat(1, 2, 1, 3),
        "tile_new_axis": lambda x: x.repeat(2, 1, 1, 1, 1),
        "view_transpose": lambda x: x.view(2, 12, 6).transpose(1, 2).reshape(2, 6, 3, 4),
        "movedim": lambda x: x.movedim(1, 3).flatten(1, 2).softmax(1),
        "squeeze": lambda x: x.sum(1, keepdim=True).squeeze(1).unsqueeze(-1) * 2.0,
        "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2), "tril": lambda x: x.tril(1) + x.triu(-1),
        "window": lambda x: x.view(2, 3, 2, 2, 3, 2).permute(0, 2, 4, 3, 5, 1).reshape(12, 4, 3),
        "cumsum": lambda x: x.cumsum(2)}
    for name, call in calls.items():
        yield function(f"rearrange_{name}", call, x)
    y = data("y", (2, 1, 6))
    yield function("rearrange_concat", lambda x, y: torch.cat([x.sum(1), y, y * 2.0], 1), x, y)
    yield function("rearrange_concat_self", lambda y: torch.cat([y, y, y.exp()], 1), y)


def arithmetic() -> Iterator[Case]:
    x = data("x", (3, 4, 5))
    positive = data("x", (3, 4, 5), offset=1.5)
    y = data("y", (4, 1), offset=2.0, scale=0.5)
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish,
        "hardswish": lambda x: F.hardswish(4.0 * x), "hardsigmoid": lambda x: F.hardtanh(0.25 * x + 0.5, 0.0, 1.0),
        "softplus": F.softplus, "softsign": F.softsign, "elu": lambda x: F.elu(x, 0.5), "selu": F.selu,
        "celu": lambda x: F.celu(x, 0.5), "glu": lambda x: F.glu(x, 1), "logsigmoid": F.logsigmoid,
        "tanhshrink": F.tanhshrink, "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.25),
        "relu6": lambda x: F.relu6(8.0 * x), "leaky_relu": lambda x: F.leaky_relu(x, 0.25),
        "clamp": lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.25) + x.clamp(max=0.1), "square": lambda x: x**2 + x**3,
        "variance": lambda x: x.var(-1) + x.var(-1, unbiased=False),
        "standardised": lambda x: (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 0.5),
        "norm": lambda x: F.normalize(x, dim=1), "frobenius": lambda x: x.norm(dim=(1, 2)) * 2.0,
        "logsumexp": lambda x: torch.logsumexp(x, 1), "softmin": lambda x: F.softmin(x, 1),
        "log_softmax": lambda x: F.log_softmax(x, 1), "amax": lambda x: x.amax(1) + x.amin(1),
        "max_all": lambda x: x.amax((0, 2)) * 2.0, "mean_all": lambda x: x.mean() * x,
        "sum_axes": lambda x: x.sum((0, 2)) * x.sum((0, 2), keepdim=True).mean(), "product": lambda x: x.prod(1),
        "abs_neg": lambda x: -x.abs() + x.neg(), "sin_cos": lambda x: x.sin() * x.cos(),
        "where": lambda x: torch.where(x > 0.25, x * 2.0, x - 1.0),
        "masked_fill": lambda x: x.masked_fill(x < 0.0, 0.5) * x,
        "einsum_trace": lambda x: torch.einsum("ijk,ljk->il", x, x), "self_product": lambda x: x @ x.transpose(1, 2),
        "shared": lambda x: x * x + x * x.sum() - x / 2.0, "dead_branch": lambda x: x * 2.0 + (x > 0.0).to(x.dtype)}
    for name, call in calls.items():
        yield function(f"math_{name}", call, x)
    for name, call in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
                       "power": lambda x: x**1.5 + x**-0.5 + 2.0**x, "log1p": torch.log1p}.items():
        yield function(f"math_{name}", call, positive)
    for name, call in {"mul_div": lambda x, y: x * y / (y + 1.0), "pow_tensor": lambda x, y: (x + 2.0) ** y,
                       "maximum": torch.maximum, "minimum": lambda x, y: torch.minimum(x, y - 2.0),
                       "rsub": lambda x, y: 1.0 - x - y, "lerp": lambda x, y: x + 0.25 * (y - x),
                       "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, 0.25 * y.expand_as(x)),
                       "cosine": lambda x, y: F.cosine_similarity(x, y.expand_as(x), dim=1)}.items():
        yield function(f"math_{name}", call, x, y)
    yield from products()


@net(lambda: dict(embedding=nn.Embedding(7, 4)))
def tied(m: Net, tokens: Tensor) -> Tensor:
    return torch.tanh(m.embedding(tokens)) @ m.embedding.weight.T


def products() -> Iterator[Case]:
    left, right = data("x", (2, 3, 4)), data("y", (2, 4, 5))
    calls: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "bmm": torch.bmm, "matmul_transposed": lambda x, y: y.transpose(-2, -1) @ x.transpose(-2, -1),
        "einsum_batch": lambda x, y: torch.einsum("bij,bjk->bik", x, y),
        "einsum_sum": lambda x, y: torch.einsum("bij,bjk->k", x, y),
        "einsum_outer": lambda x, y: torch.einsum("bij,ckl->bcl", x, y),
        "vector": lambda x, y: x @ y[0, :, 1], "dot": lambda x, y: torch.dot(x[0, 0], y[1, :, 2])}
    for name, call in calls.items():
        yield function(f"product_{name}", call, left, right)
    x = data("x", (2, 3, 4))
    yield named("linear", exported("product_linear", nn.Linear(4, 3), [x]))
    yield named("linear", exported("product_linear_flat", nn.Linear(4, 3), [data("x", (5, 4))]))
    bare = nn.Linear(4, 3, bias=False)
    yield named("linear", exported("product_linear_bare", bare, [data("x", (5, 4))]))
    yield named("linear", exported("product_tied", tied(), [integer("tokens", (2, 3), 7)]))


def indexing() -> Iterator[Case]:
    x = data("x", (4, 5, 3))
    rows = integer("i", (2, 3), 4)
    yield function("index_rows", lambda x, i: x[i], x, rows)
    yield function("index_select", lambda x, i: x.index_select(1, i[0]), x, rows)
    columns = integer("i", (4, 2, 3), 5)
    yield function("index_gather", lambda x, i: x.gather(1, i), x, columns)
    yield function("index_pair", lambda x, i: x[i[0], i[1]], x, integer("i", (2, 6), 4))
    chosen = integer("i", (3, 1), 6)
    yield function("index_scatter", scatter, data("x", (3, 6)), data("y", (3, 1)), chosen)


def scatter(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
    return x.scatter(1, i, y) * 2.0
