"""Small networks in unusual files: quantised, half precision, with a loss, frozen, shared."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from net import Net, net

from .framework import Network, residual, conv_norm, floats, mlp, pooled_head, tokens
from .language import Decoder, Style

IMAGE = floats((3, 32, 32))


@net(lambda: dict(model=Decoder(Style(packed=True))))
def shifted_loss(m: Net, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """A language model that compares its words with the next ones, as in Hugging Face."""
    logits = m.model(ids)
    wanted = labels[:, 1:].reshape(-1)
    return F.cross_entropy(logits[:, :-1].reshape(wanted.shape[0], -1), wanted), logits


@net(lambda inner, loss: dict(inner=inner, loss=loss))
def with_loss(m: Net, x: Tensor, wanted: Tensor) -> Tensor:
    """A network that returns its loss."""
    return m.loss(m.inner(x), wanted)


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


@net(lambda before, after: dict(
    weight=nn.Parameter(0.1 * torch.randn(after, before)), left=F.normalize(torch.randn(after, 1), dim=0),
))  # fmt: skip
def spectral_norm(m: Net, x: Tensor) -> Tensor:
    """A weight divided by its largest singular value, estimated by one iteration."""
    right = F.normalize(m.weight.t() @ m.left, dim=0)
    stretched = m.weight @ right
    left = F.normalize(stretched, dim=0)
    return F.linear(x, m.weight / (left.t() @ stretched))


def mini_resnet() -> nn.Module:
    block = residual(nn.Sequential(conv_norm(16, 16), conv_norm(16, 16, act=None)))
    return nn.Sequential(conv_norm(3, 16), block, nn.ReLU(), pooled_head(16, 10))


def labelled(batch: int) -> tuple[Tensor, ...]:
    return torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))


NETWORKS: dict[str, Network] = {
    "half_cnn": Network(mini_resnet, IMAGE, precision="half"),
    "half_transformer": Network(HalfTransformer, tokens(100, 16), precision="half"),
    "bfloat16_cnn": Network(mini_resnet, IMAGE, precision="bfloat16"),
    "cross_entropy_inside": Network(lambda: with_loss(mini_resnet(), nn.CrossEntropyLoss()), labelled, "none"),
    "gpt2_loss_inside": Network(shifted_loss, tokens(500, 16, 16), "none"),
    "spectral_norm_mlp": Network(lambda: nn.Sequential(spectral_norm(16, 32), nn.ReLU(), spectral_norm(32, 2)),
                                 floats((16,))),
    "fixed_batch_cnn": Network(mini_resnet, IMAGE, batch=4, fixed=True, opset=11)}
