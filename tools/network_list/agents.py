"""Reinforcement learning."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Network, Residual, conv_norm, floats, mlp, together, tokens


def atari(width: int) -> nn.Sequential:
    """Mnih et al. 2015: four frames, three convolutions."""
    convs = [nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3)]
    return nn.Sequential(*convs, nn.ReLU(), nn.Flatten(), nn.Linear(64 * 49, width), nn.ReLU())


class ChosenAction(nn.Module):
    """DQN in training: the value of the action that was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = atari(512), nn.Linear(512, 6)

    def forward(self, frames: Tensor, action: Tensor) -> Tensor:
        return self.head(self.body(frames)).gather(1, action)


class Dueling(nn.Module):
    """A value and advantages whose mean is taken away (Wang et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = atari(256)
        self.value, self.advantage = mlp(256, 128, 1), mlp(256, 128, 6)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.body(frames)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True)


class Ppo(nn.Module):
    """The clipped objective of actor and critic in the graph (Schulman et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = mlp(8, 64, 64, 2, act=nn.Tanh), mlp(8, 64, 64, 1, act=nn.Tanh)
        self.deviation = nn.Parameter(torch.zeros(2))

    def forward(self, state: Tensor, action: Tensor, before: Tensor, gain: Tensor) -> Tensor:
        mean, value = self.actor(state), self.critic(state)
        score = -((action - mean) ** 2) / (2 * (2 * self.deviation).exp()) - self.deviation
        ratio = torch.exp(score.sum(1, keepdim=True) - before)
        clipped = torch.clamp(ratio, 0.8, 1.2) * gain
        entropy = (self.deviation + 0.5 * math.log(2 * math.pi * math.e)).sum()
        return -torch.min(ratio * gain, clipped).mean() + 0.5 * (value - gain).pow(2).mean() - 0.01 * entropy


class SoftActor(nn.Module):
    """SAC's actor: a squashed normal and its log-probability (Haarnoja et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.mean, self.deviation = mlp(8, 64, 64), nn.Linear(64, 2), nn.Linear(64, 2)

    def forward(self, state: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.body(state))
        mean, log_deviation = self.mean(x), self.deviation(x).clamp(-20, 2)
        drawn = mean + log_deviation.exp() * noise
        action = torch.tanh(drawn)
        score = -0.5 * noise**2 - log_deviation - torch.log(1 - action**2 + 1e-6)
        return action, score.sum(-1)


class TwinCritics(nn.Module):
    """Two values of a state and an action, the smaller counts."""

    def __init__(self) -> None:
        super().__init__()
        self.critics = nn.ModuleList(mlp(10, 64, 64, 1) for _ in range(2))

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        both = torch.cat([state, action], -1)
        return torch.minimum(*(critic(both) for critic in self.critics))


class DecisionTransformer(nn.Module):
    """Returns, states and actions as one sequence (Chen et al. 2021)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.enter = nn.ModuleList(nn.Linear(size, width) for size in (1, 8, 2))
        self.times, self.norm = nn.Embedding(100, width), nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, 0.0, "gelu", batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2), nn.Sequential(nn.Linear(width, 2), nn.Tanh())

    def forward(self, gain: Tensor, state: Tensor, action: Tensor, times: Tensor) -> Tensor:
        time = self.times(times)
        parts = [layer(x) + time for layer, x in zip(self.enter, (gain, state, action))]
        x = torch.stack(parts, 2).flatten(1, 2)
        places = torch.arange(x.shape[1], device=x.device)
        x = self.body(self.norm(x), mask=places[None] > places[:, None])
        return self.head(x[:, 1::3])


class AlphaZero(nn.Module):
    """A residual tower with a policy and a value (Silver et al. 2018)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        blocks = [Residual(nn.Sequential(conv_norm(width, width),
                                         conv_norm(width, width, act=None))) for _ in range(4)]
        self.tower = nn.Sequential(conv_norm(17, width), *blocks, nn.ReLU())
        self.policy = nn.Sequential(conv_norm(width, 2, 1), nn.Flatten(), nn.Linear(128, 362))
        self.value = nn.Sequential(conv_norm(width, 1, 1), nn.Flatten(), mlp(64, 64, 1), nn.Tanh())

    def forward(self, board: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tower(board)
        return self.policy(x), self.value(x)


class WorldModel(nn.Module):
    """A recurrent model of what comes next, as a mixture of normals (Ha and Schmidhuber 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(10, 64, batch_first=True), nn.Linear(64, 3 * 8 * 5)

    def forward(self, codes: Tensor, actions: Tensor, wanted: Tensor) -> Tensor:
        x, _ = self.rnn(torch.cat([codes, actions], -1))
        shares, mean, log_deviation = self.head(x).view(x.shape[0], x.shape[1], 3, 8, 5).unbind(2)
        distance = (wanted.unsqueeze(-1) - mean) * (-log_deviation).exp()
        score = shares.log_softmax(-1) - 0.5 * distance**2 - log_deviation
        return -torch.logsumexp(score, -1).mean()


class Impala(nn.Module):
    """Residual blocks between poolings, an LSTM behind them (Espeholt et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()

        def section(before: int, after: int) -> nn.Module:
            inner = [nn.ReLU(), nn.Conv2d(after, after, 3, padding=1), nn.ReLU(),
                     nn.Conv2d(after, after, 3, padding=1)]
            enter = [nn.Conv2d(before, after, 3, padding=1), nn.MaxPool2d(3, 2, 1)]
            return nn.Sequential(*enter, Residual(nn.Sequential(*inner)))

        self.body = nn.Sequential(section(3, 16), section(16, 32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 64))
        self.core, self.head = nn.LSTM(64, 64, batch_first=True), nn.Linear(64, 16)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.body(frames.flatten(0, 1)).view(frames.shape[0], frames.shape[1], 64)
        return self.head(self.core(x)[0])


FRAMES = floats((4, 84, 84))
NETWORKS: dict[str, Network] = {"dqn": Network(ChosenAction, together(FRAMES, tokens(6, 1)), "mse"),
                                "dueling_dqn": Network(Dueling, FRAMES, "mse"),
                                "ppo_loss_inside": Network(Ppo, floats((8,), (2,), (1,), (1,)), "none", batch=16),
                                "sac_actor": Network(SoftActor, floats((8,), (2,)), "none"),
                                "sac_critics": Network(TwinCritics, floats((8,), (2,)), "mse"),
                                "decision_transformer": Network(DecisionTransformer,
                                                                together(floats((6, 1), (6, 8), (6, 2)),
                                                                         tokens(100, 6)), "mse"),
                                "alphazero": Network(AlphaZero, floats((17, 8, 8)), "none"),
                                "world_model_mdn_rnn": Network(WorldModel, floats((6, 8), (6, 2), (6, 8)), "none"),
                                "impala_lstm": Network(Impala, floats((3, 3, 32, 32)))}
