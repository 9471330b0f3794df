"""Recommendation and tables of features."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Network, Residual, floats, mlp, together, tokens

CLICKS = together(floats((13,)), tokens(100, 8))


class Embeddings(nn.Module):
    """One table for each of several categorical features: [batch, features, width]."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(100, width) for _ in range(features))

    def forward(self, ids: Tensor) -> Tensor:
        return torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)


class WideDeep(nn.Module):
    """A linear model beside a deep one (Cheng et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.numbers = Embeddings(8, 1), nn.Linear(13, 1)
        self.deep, self.layers = Embeddings(8, 8), mlp(77, 64, 32, 1)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        deep = self.layers(torch.cat([numbers, self.deep(ids).flatten(1)], 1))
        return self.numbers(numbers) + self.wide(ids).sum(1) + deep


class Collaborative(nn.Module):
    """NCF (He et al. 2017): a product and an MLP of a user and an item."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(200, 32), nn.Embedding(300, 32)
        self.layers, self.head = mlp(32, 32, 16), nn.Linear(32, 1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        user, item = self.users(users[:, 0]), self.items(items[:, 0])
        both = torch.cat([user[:, 16:], item[:, 16:]], 1)
        return self.head(torch.cat([user[:, :16] * item[:, :16], self.layers(both)], 1))


class Interest(nn.Module):
    """DIN (Zhou et al. 2018): a history weighed by what is offered, hidden where it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(300, 16, padding_idx=0)
        self.weigh = nn.Sequential(nn.Linear(64, 32), nn.PReLU(), nn.Linear(32, 1))
        self.head = mlp(32, 32, 1)

    def forward(self, history: Tensor, offered: Tensor) -> Tensor:
        past, now = self.items(history), self.items(offered)
        now = now.expand(-1, past.shape[1], -1)
        weights = self.weigh(torch.cat([now, past, now - past, now * past], -1))
        weights = weights.masked_fill((history == 0).unsqueeze(-1), 0.0)
        return self.head(torch.cat([(weights * past).sum(1), now[:, 0]], -1))


class Retrieval(nn.Module):
    """Two towers; every item of the batch is a choice of every user."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(200, 16), nn.Embedding(300, 16)
        self.user, self.item = mlp(16, 32, 16), mlp(16, 32, 16)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        user, item = self.user(self.users(users[:, 0])), self.item(self.items(items[:, 0]))
        return F.normalize(user, dim=-1) @ F.normalize(item, dim=-1).t() / 0.05


class TabTransformer(nn.Module):
    """Attention among categorical features (Huang et al. 2020)."""

    def __init__(self) -> None:
        super().__init__()
        self.sparse, self.norm = Embeddings(8, 16), nn.LayerNorm(13)
        layer = nn.TransformerEncoderLayer(16, 4, 64, 0.1, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2), mlp(13 + 128, 64, 2, act=nn.SELU)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        return self.head(torch.cat([self.norm(numbers), self.body(self.sparse(ids)).flatten(1)], 1))


class SoftTrees(nn.Module):
    """Oblivious trees with soft decisions (as NODE, Popov et al. 2020): 8 trees of depth 3."""

    def __init__(self) -> None:
        super().__init__()
        self.choose = nn.Parameter(0.1 * torch.randn(13, 24))
        self.thresholds, self.heat = nn.Parameter(torch.zeros(8, 3)), nn.Parameter(torch.ones(8, 3))
        self.leaves = nn.Parameter(torch.zeros(8, 8, 2))

    def forward(self, x: Tensor) -> Tensor:
        chosen = (x @ self.choose.softmax(0)).view(-1, 8, 3)
        right = torch.sigmoid((chosen - self.thresholds) * self.heat.exp())
        sides = torch.stack([1 - right, right], -1)
        first, second, third = sides.unbind(2)
        reached = first[..., None, None] * second[..., None, :, None] * third[..., None, None, :]
        reached = reached.flatten(2)
        return torch.einsum("btl,tlk->bk", reached, self.leaves)


class TabNet(nn.Module):
    """Steps that choose features by masks (Arik and Pfister 2021), softmax for sparsemax."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(13)
        self.shared = nn.Linear(13, 32, bias=False)
        self.steps = nn.ModuleList(nn.Sequential(nn.BatchNorm1d(32), nn.GLU(), nn.Linear(16, 32, bias=False),
                                                 nn.BatchNorm1d(32), nn.GLU()) for _ in range(3))
        self.masks = nn.ModuleList(nn.Sequential(nn.Linear(8, 13), nn.BatchNorm1d(13)) for _ in range(2))
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        prior, masked, total = torch.ones_like(x), x, 0
        for i, step in enumerate(self.steps):
            decision, attention = step(self.shared(masked)).chunk(2, -1)
            total = total + F.relu(decision)
            if i < 2:
                mask = (self.masks[i](attention) * prior).softmax(-1)
                prior, masked = prior * (1.3 - mask), mask * x
        return self.head(total)


class AutoRec(nn.Module):
    """Ratings through a narrow layer, those that are missing left out (Sedhain et al. 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(200, 32), nn.Sigmoid(), nn.Linear(32, 200))

    def forward(self, ratings: Tensor) -> Tensor:
        error = (self.layers(ratings) - ratings) * (ratings != 0)
        return error.pow(2).sum() / (ratings != 0).sum()


def mlp_resnet() -> nn.Module:
    """A residual network upon a table (Gorishniy et al. 2021)."""

    def block() -> nn.Module:
        inner = [nn.BatchNorm1d(64), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64)]
        return Residual(nn.Sequential(*inner, nn.Dropout(0.1)))

    return nn.Sequential(nn.Linear(13, 64), block(), block(), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))


NETWORKS: dict[str, Network] = {
    "mlp": Network(lambda: mlp(784, 512, 256, 10), floats((784,))),
    "mlp_resnet": Network(mlp_resnet, floats((13,)), batch=2), "wide_and_deep": Network(WideDeep, CLICKS, "bce_with_logits"),
    "ncf": Network(Collaborative, tokens(200, 1, 1), "bce_with_logits"),
    "din": Network(Interest, tokens(300, 12, 1), "bce_with_logits"),
    "two_tower_retrieval": Network(Retrieval, tokens(200, 1, 1), batch=8),
    "tab_transformer": Network(TabTransformer, CLICKS), "node_soft_trees": Network(SoftTrees, floats((13,))),
    "tabnet": Network(TabNet, floats((13,)), batch=2),
    "autorec_loss_inside": Network(AutoRec, floats((200,)), "none")}
