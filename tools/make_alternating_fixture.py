#!/usr/bin/env python3
"""Write tests/fixtures/alternating/: a small GAN with alternating steps, and its weights after three iterations.

An iteration has two steps of the discriminator and one of the generator. The same library versions write the same bytes.
"""

import json

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from make_network_fixtures import REPOSITORY
from net import exported_model, restore_statistics

FOLDER = REPOSITORY / "tests" / "fixtures" / "alternating"
ITERATIONS, TURNS = 3, 2
RATES = {"discriminator": 0.02, "generator": 0.01}


class Gan(nn.Module):
    """Returns both losses of a pass. Settings are exact in single precision, and no bias has a gradient of rounding only."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6, eps=2**-17, momentum=0.125),
                                       nn.ReLU(), nn.Linear(6, 4, bias=False))
        self.discriminator = nn.Sequential(nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5, eps=2**-17, momentum=0.125),
                                           nn.LeakyReLU(0.25), nn.Linear(5, 1))

    def forward(self, noise: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        return self.discriminator_loss(noise, real), self.generator_loss(noise)

    def discriminator_loss(self, noise: Tensor, real: Tensor) -> Tensor:
        fake = self.generator(noise).detach()
        return (F.softplus(-self.discriminator(real)) + F.softplus(self.discriminator(fake))).mean()

    def generator_loss(self, noise: Tensor) -> Tensor:
        return F.softplus(-self.discriminator(self.generator(noise))).mean()


def seeded() -> Gan:
    torch.manual_seed(3)
    return Gan()


def exported() -> bytes:
    model = exported_model(seeded(), (torch.zeros(5, 3), torch.zeros(5, 4)), 17, input_names=["noise", "real"],
                           output_names=["discriminator_loss", "generator_loss"])
    restore_statistics(model, seeded())
    return model.SerializeToString(deterministic=True)


def trained(noise: Tensor, real: Tensor) -> tuple[Gan, list[dict]]:
    gan = seeded().double()
    players = {"discriminator": gan.discriminator, "generator": gan.generator}
    optimizers = {name: torch.optim.Adam(player.parameters(), lr=RATES[name]) for name, player in players.items()}
    losses = []
    for _ in range(ITERATIONS):
        row = {}
        for name, turns in (("discriminator", TURNS), ("generator", 1)):
            for _ in range(turns):
                gan.zero_grad()
                loss = gan.discriminator_loss(noise, real) if name == "discriminator" else gan.generator_loss(noise)
                loss.backward()
                optimizers[name].step()
            row[name] = loss.item()
        losses.append(row)
    return gan, losses


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "gan.onnx").write_bytes(exported())
    noise = torch.sin(torch.arange(15, dtype=torch.float64)).reshape(5, 3)
    real = torch.cos(torch.arange(20, dtype=torch.float64)).reshape(5, 4)
    gan, losses = trained(noise, real)
    state = {name: tensor for name, tensor in gan.state_dict().items() if tensor.is_floating_point()}
    record = {"iterations": ITERATIONS, "turns": TURNS, "rates": RATES, "noise": noise.flatten().tolist(),
              "real": real.flatten().tolist(), "losses": losses,
              "state": {name: tensor.detach().flatten().tolist() for name, tensor in state.items()}}
    (FOLDER / "gan.json").write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
