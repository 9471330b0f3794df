"""Speech, sound and time series."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .framework import Lambda, Network, Residual, floats, mlp, together, tokens

VOCABULARY = 300
SOUND = floats((1, 2048))


class Causal(nn.Module):
    """A dilated convolution that sees what is before it."""

    def __init__(self, before: int, after: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(before, after, 2, dilation=dilation)
        self.dilation = dilation

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (self.dilation, 0)))


def temporal() -> nn.Module:
    """TCN (Bai et al. 2018), its weights normalised."""

    def block(dilation: int) -> nn.Module:
        convs = [nn.utils.weight_norm(nn.Conv1d(24, 24, 3, padding=2 * dilation,
                                                dilation=dilation)) for _ in range(2)]
        cut = Lambda(lambda x: x[..., : -2 * dilation].contiguous())
        return Residual(nn.Sequential(convs[0], cut, nn.ReLU(), nn.Dropout(0.1), convs[1], cut, nn.ReLU()))

    last = Lambda(lambda x: x[..., -1])
    return nn.Sequential(nn.Conv1d(2, 24, 1), block(1), block(2), block(4), last, nn.Linear(24, 1))


class WaveNet(nn.Module):
    """Gated dilated convolutions with skips (Van den Oord et al. 2016)."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter = Causal(1, width, 1)
        self.dilated = nn.ModuleList(Causal(width, 2 * width, 1 << i) for i in range(6))
        self.stay = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(5))
        self.skip = nn.ModuleList(nn.Conv1d(width, 32, 1) for _ in range(6))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(32, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.enter(x), 0
        for i, (dilated, skip) in enumerate(zip(self.dilated, self.skip)):
            one, other = dilated(x).chunk(2, 1)
            gated = one.tanh() * other.sigmoid()
            total = total + skip(gated)
            if i < 5:
                x = x + self.stay[i](gated)
        return self.head(total)


class ConvTasNet(nn.Module):
    """Separates two voices by masks upon a learned transform (Luo and Mesgarani 2019)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, width, 16, 8, bias=False)
        self.norm, self.enter = nn.GroupNorm(1, width), nn.Conv1d(width, 24, 1)
        self.blocks = nn.Sequential(*(Residual(self.block(1 << i)) for i in range(4)))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(24, 2 * width, 1), nn.Sigmoid())
        self.decode = nn.ConvTranspose1d(width, 1, 16, 8, bias=False)

    @staticmethod
    def block(dilation: int) -> nn.Module:
        depthwise = nn.Conv1d(48, 48, 3, padding=dilation, dilation=dilation, groups=48)
        layers = [nn.Conv1d(24, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48, eps=1e-8), depthwise]
        return nn.Sequential(*layers, nn.PReLU(), nn.GroupNorm(1, 48, eps=1e-8), nn.Conv1d(48, 24, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.encode(x)
        masks = self.masks(self.blocks(self.enter(self.norm(x))))
        voices = x.unsqueeze(1) * masks.view(x.shape[0], 2, x.shape[1], x.shape[2])
        return self.decode(voices.flatten(0, 1)).view(x.shape[0], 2, -1)


class DeepSpeech(nn.Module):
    """Convolutions upon a spectrogram, recurrent layers in both directions (Amodei et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        first, second = nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2)), nn.Conv2d(8, 8, (11, 5), (1, 2), (5, 2))
        self.convs = nn.Sequential(first, nn.BatchNorm2d(8), nn.Hardtanh(0, 20), second, nn.Hardtanh(0, 20))
        self.rnn = nn.GRU(8 * 10, 32, num_layers=2, bidirectional=True)
        self.head = nn.Linear(64, 29)

    def forward(self, x: Tensor) -> Tensor:
        x = self.convs(x).permute(2, 0, 1, 3).flatten(2)
        return F.log_softmax(self.head(self.rnn(x)[0]), -1)


def speech_encoder(width: int, layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers)


class Wav2Vec(nn.Module):
    """Convolutions upon sound, positions by a grouped one, a transformer (Baevski et al. 2020)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv1d(1, width, 10, 5, bias=False), nn.GroupNorm(width, width), nn.GELU()]
        for kernel in (3, 3, 2):
            layers += [nn.Conv1d(width, width, kernel, 2, bias=False), nn.GELU()]
        self.stem, self.norm = nn.Sequential(*layers), nn.LayerNorm(width)
        self.places = nn.utils.weight_norm(nn.Conv1d(width, width, 16, padding=8, groups=4), dim=2)
        self.body, self.head = speech_encoder(width, 2), nn.Linear(width, 32)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x).transpose(1, 2))
        places = F.gelu(self.places(x.transpose(1, 2))[..., :-1])
        return self.head(self.body(x + places.transpose(1, 2)))


class Whisper(nn.Module):
    """A spectrogram's encoder and a decoder of words (Radford et al. 2022)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.stem = nn.Sequential(*(nn.Conv1d(80, width, 3, padding=1), nn.GELU(), nn.Conv1d(width, width, 3, 2, 1),
                                    nn.GELU()))
        self.register_buffer("sines", torch.sin(torch.outer(torch.arange(32.0), torch.arange(float(width)))))
        self.encoder, self.words = speech_encoder(width, 2), nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(16, width))
        layer = nn.TransformerDecoderLayer(width, 4, 96, 0.0, "gelu", batch_first=True, norm_first=True)
        self.decoder, self.norm = nn.TransformerDecoder(layer, 2), nn.LayerNorm(width)

    def forward(self, sound: Tensor, ids: Tensor) -> Tensor:
        memory = self.encoder(self.stem(sound).transpose(1, 2) + self.sines)
        mask = torch.full((16, 16), -math.inf, device=ids.device).triu(1)
        x = self.decoder(self.words(ids) + self.places, memory, tgt_mask=mask)
        return self.norm(x) @ self.words.weight.t()


class Conformer(nn.Module):
    """Half steps of MLPs around attention and a gated convolution (Gulati et al. 2020)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.halves = nn.ModuleList(nn.Sequential(nn.LayerNorm(width),
                                                  mlp(width, 96, width, act=nn.SiLU)) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        depthwise = nn.Conv1d(width, width, 15, padding=7, groups=width)
        layers = [nn.Conv1d(width, 2 * width, 1), nn.GLU(1), depthwise, nn.BatchNorm1d(width), nn.SiLU()]
        self.convs = nn.Sequential(*layers, nn.Conv1d(width, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.halves[0](x)
        y = self.norms[0](x)
        x = x + self.attention(y, y, y)[0]
        x = x + self.convs(self.norms[1](x).transpose(1, 2)).transpose(1, 2)
        return self.norms[2](x + 0.5 * self.halves[1](x))


def hifi_gan() -> nn.Module:
    """Kong et al. 2020: raises a spectrogram to sound."""

    def block(width: int) -> nn.Module:
        convs = [nn.Conv1d(width, width, 3, padding=d, dilation=d) for d in (1, 3)]
        return nn.Sequential(*(Residual(nn.Sequential(nn.LeakyReLU(0.1), conv)) for conv in convs))

    layers: list[nn.Module] = [nn.Conv1d(80, 64, 7, padding=3)]
    for width in (64, 32):
        layers += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(width, width // 2, 8, 4, 2), block(width // 2)]
    return nn.Sequential(*layers, nn.LeakyReLU(), nn.Conv1d(16, 1, 7, padding=3), nn.Tanh())


class NBeats(nn.Module):
    """Blocks that explain a series and hand on what is left (Oreshkin et al. 2020)."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(mlp(40, 64, 64, 12) for _ in range(3))
        back, ahead = torch.arange(40.0) / 40, torch.arange(8.0) / 8
        self.register_buffer("back", torch.stack([back**i for i in range(6)]))
        self.register_buffer("ahead", torch.stack([ahead**i for i in range(6)]))

    def forward(self, x: Tensor) -> Tensor:
        total = 0
        for block in self.blocks:
            back, ahead = block(x).chunk(2, -1)
            total = total + ahead @ self.ahead
            if block is not self.blocks[-1]:
                x = x - back @ self.back
        return total


class PatchSeries(nn.Module):
    """PatchTST (Nie et al. 2023): channels apart, patches by unfolding, reversible norm."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter, self.places = nn.Linear(16, width), nn.Parameter(torch.zeros(11, width))
        self.body, self.head = speech_encoder(width, 2), nn.Linear(11 * width, 24)

    def forward(self, x: Tensor) -> Tensor:
        mean, deviation = x.mean(-1, keepdim=True), torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
        patches = ((x - mean) / deviation).unfold(2, 16, 8).flatten(0, 1)
        y = self.head(self.body(self.enter(patches) + self.places).flatten(1))
        return y.view(x.shape[0], x.shape[1], 24) * deviation + mean


class Distilling(nn.Module):
    """Informer's encoder (Zhou et al. 2021): attention, then half of the length by pooling."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter = nn.Conv1d(7, width, 3, padding=1, padding_mode="circular")
        self.first, self.second = speech_encoder(width, 1), speech_encoder(width, 1)
        conv = nn.Conv1d(width, width, 3, padding=1, padding_mode="circular")
        self.distil = nn.Sequential(conv, nn.BatchNorm1d(width), nn.ELU(), nn.MaxPool1d(3, 2, 1))
        self.head = nn.Linear(width, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.enter(x).transpose(1, 2))
        return self.head(self.second(self.distil(x.transpose(1, 2)).transpose(1, 2)))


NETWORKS: dict[str, Network] = {
    "tcn": Network(temporal, floats((2, 32)), "mse"), "wavenet": Network(WaveNet, floats((1, 256)), "mse"),
    "conv_tasnet": Network(ConvTasNet, SOUND, "mse"),
    "deepspeech2": Network(DeepSpeech, floats((1, 32, 40)), "none"), "wav2vec2": Network(Wav2Vec, SOUND),
    "whisper": Network(Whisper, together(floats((80, 64)), tokens(VOCABULARY, 16))),
    "conformer": Network(lambda: nn.Sequential(nn.Linear(80, 48), Conformer(), Conformer(), nn.Linear(48, 30)),
                         floats((32, 80))),
    "hifi_gan": Network(hifi_gan, floats((80, 16)), "mse"), "n_beats": Network(NBeats, floats((40,)), "mse"),
    "patch_tst": Network(PatchSeries, floats((7, 96)), "mse"),
    "informer_encoder": Network(Distilling, floats((7, 48)), "mse")}
