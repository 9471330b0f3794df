"""Small networks in unusual files: quantised, half precision, with a loss, frozen, shared."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver, default_weight_fake_quant
from torch.nn import functional as F

from .framework import Network, Residual, conv_norm, floats, mlp, pooled_head, tokens
from .language import Decoder, Style

IMAGE = floats((3, 32, 32))


def fake_quantize(*, weight: bool) -> nn.Module:
    """With ranges that are known already, as after calibration."""
    if weight:
        quantize = default_weight_fake_quant()
    else:
        quantize = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
    quantize.scale.fill_(0.05)
    quantize.disable_observer()
    return quantize


class QuantizedConv(nn.Conv2d):
    """Weight and result rounded to 8 bits, gradients passed through."""

    def __init__(self, *arguments: int, **options: int) -> None:
        super().__init__(*arguments, **options)
        self.of_weight, self.of_result = fake_quantize(weight=True), fake_quantize(weight=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.conv2d(x, self.of_weight(self.weight), self.bias, self.stride, self.padding)
        return self.of_result(y)


def quantization_aware() -> nn.Module:
    convs = [QuantizedConv(3, 16, 3, 2, 1), nn.ReLU(), QuantizedConv(16, 32, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(fake_quantize(weight=False), *convs, pooled_head(32, 10))


class PerChannel(nn.Conv2d):
    """Weight rounded with a scale for each channel, result with a number for its scale."""

    def __init__(self, *arguments: int, **options: int) -> None:
        super().__init__(*arguments, **options)
        self.register_buffer("scale", torch.full((self.out_channels,), 0.05))
        self.register_buffer("zero", torch.zeros(self.out_channels, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.fake_quantize_per_channel_affine(self.weight, self.scale, self.zero, 0, -128, 127)
        y = F.conv2d(x, weight, self.bias, self.stride, self.padding)
        return torch.fake_quantize_per_tensor_affine(F.relu(y), 0.05, 0, 0, 255)


class ShiftedLoss(nn.Module):
    """A language model that compares its words with the next ones, as Hugging Face's do."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Decoder(Style(packed=True))

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(ids)
        wanted = labels[:, 1:].reshape(-1)
        return F.cross_entropy(logits[:, :-1].reshape(wanted.shape[0], -1), wanted), logits


class WithLoss(nn.Module):
    """Returns its own loss."""

    def __init__(self, inner: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.inner, self.loss = inner, loss

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        return self.loss(self.inner(x), wanted)


class Huber(nn.Module):
    """Squares of small errors, magnitudes of large ones."""

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        error = (x - wanted).abs()
        return torch.where(error < 1, 0.5 * error**2, error - 0.5).mean()


class HalfTransformer(nn.Module):
    """A transformer layer and a classifier."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(100, width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mlp, self.head = mlp(width, 128, width, act=nn.GELU), nn.Linear(width, 10)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        y = self.norm(x)
        scores = self.query(y) @ self.key(y).transpose(1, 2) / 8
        x = x + scores.softmax(-1) @ self.value(y)
        return self.head((x + self.mlp(x)).mean(1))


class SpectralNorm(nn.Module):
    """A weight divided by its largest singular value, estimated by one iteration."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(after, before))
        self.register_buffer("left", F.normalize(torch.randn(after, 1), dim=0))

    def forward(self, x: Tensor) -> Tensor:
        right = F.normalize(self.weight.t() @ self.left, dim=0)
        stretched = self.weight @ right
        left = F.normalize(stretched, dim=0)
        return F.linear(x, self.weight / (left.t() @ stretched))


class Standardized(nn.Conv2d):
    """Weight standardisation (Qiao et al. 2019)."""

    def forward(self, x: Tensor) -> Tensor:
        mean = self.weight.mean((1, 2, 3), keepdim=True)
        deviation = self.weight.std((1, 2, 3), keepdim=True, unbiased=False)
        weight = (self.weight - mean) / (deviation + 1e-5)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding)


class Shared(nn.Module):
    """ALBERT: one layer, used three times; the embedding is factored."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.widen = nn.Embedding(300, 16), nn.Linear(16, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.widen(self.words(ids))
        for _ in range(3):
            x = self.layer(x)
        return (x @ self.widen.weight) @ self.words.weight.t()


class LowRank(nn.Module):
    """LoRA written into the network; its base is frozen."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.base = nn.Linear(width, width)
        self.down, self.up = nn.Linear(width, 4, bias=False), nn.Linear(4, width, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2 * self.up(self.down(x))


def mini_resnet() -> nn.Module:
    block = Residual(nn.Sequential(conv_norm(16, 16), conv_norm(16, 16, act=None)))
    return nn.Sequential(conv_norm(3, 16), block, nn.ReLU(), pooled_head(16, 10))


def labelled(batch: int) -> tuple[Tensor, ...]:
    return torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))


NETWORKS: dict[str, Network] = {
    "quantization_aware_cnn": Network(quantization_aware, IMAGE),
    "quantization_aware_per_channel": Network(
        lambda: nn.Sequential(PerChannel(3, 16, 3, 2, 1), PerChannel(16, 32, 3, 2, 1), pooled_head(32, 10)), IMAGE),
    "half_cnn": Network(mini_resnet, IMAGE, precision="half"),
    "half_transformer": Network(HalfTransformer, tokens(100, 16), precision="half"),
    "bfloat16_cnn": Network(mini_resnet, IMAGE, precision="bfloat16"),
    "cross_entropy_inside": Network(lambda: WithLoss(mini_resnet(), nn.CrossEntropyLoss()), labelled, "none"),
    "gpt2_loss_inside": Network(ShiftedLoss, tokens(500, 16, 16), "none"),
    "nll_loss_inside": Network(lambda: WithLoss(nn.Sequential(mini_resnet(), nn.LogSoftmax(1)), nn.NLLLoss()),
                               labelled, "none"),
    "bce_loss_inside": Network(lambda: WithLoss(mlp(8, 32, 1), nn.BCEWithLogitsLoss()), floats((8,), (1,)), "none"),
    "huber_loss_inside": Network(lambda: WithLoss(mlp(8, 32, 1), Huber()), floats((8,), (1,)), "none"),
    "spectral_norm_mlp": Network(lambda: nn.Sequential(SpectralNorm(16, 32), nn.ReLU(), SpectralNorm(32, 2)),
                                 floats((16,))),
    "weight_standardised_cnn": Network(lambda: nn.Sequential(Standardized(3, 16, 3, 2, 1), nn.GroupNorm(4, 16),
                                                             nn.ReLU(), pooled_head(16, 10)), IMAGE),
    "albert_shared_layer": Network(Shared, tokens(300, 16)),
    "lora_inside": Network(lambda: nn.Sequential(LowRank(), nn.ReLU(), LowRank(), nn.Linear(64, 10)), floats((64,)),
                           freeze=("*.base.*",)),
    "fixed_batch_cnn": Network(mini_resnet, IMAGE, batch=4, fixed=True, opset=11)}
