"""Networks for microcontrollers, with those of MLPerf Tiny, and LeNet."""

from torch import nn

from .framework import Network, residual, conv_norm, floats, pooled_head, separable, tokens


def lenet() -> nn.Module:
    """LeCun et al. 1998, with averages and hyperbolic tangents."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2)), *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Conv2d(16, 120, 5), nn.Tanh(), nn.Flatten()), *(nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)))


def keyword_spotting() -> nn.Module:
    """DS-CNN of MLPerf Tiny: 49 frames of 10 coefficients, 12 words."""
    stem = nn.Conv2d(1, 64, (10, 4), stride=2, padding=(5, 1), bias=False)
    blocks = [separable(64, 64) for _ in range(4)]
    return nn.Sequential(*(stem, nn.BatchNorm2d(64), nn.ReLU(), nn.Dropout(0.2), *blocks), pooled_head(64, 12))


def mobilenet_v1(share: float, classes: int) -> nn.Module:
    """Howard et al. 2017; visual wake words at a quarter of the width."""
    widths = [int(width * share) for width in (32, 64, 128, 128, 256, 256, 512)]
    widths += [int(512 * share)] * 5 + [int(1024 * share)] * 2
    halved = (2, 4, 6, 12)
    blocks = [separable(before, after, 2 if i + 1 in halved else 1) for i, (before, after) in enumerate(
                  zip(widths, widths[1:]))]
    return nn.Sequential(conv_norm(3, widths[0], 3, 2), *blocks, pooled_head(widths[-1], classes))


def basic_block(before: int, after: int, stride: int) -> nn.Module:
    inner = nn.Sequential(conv_norm(before, after, 3, stride), conv_norm(after, after, act=None))
    shortcut = None if stride == 1 else nn.Conv2d(before, after, 1, stride)
    return nn.Sequential(residual(inner, shortcut), nn.ReLU())


def resnet8() -> nn.Module:
    """MLPerf Tiny's image classification: 16, 32 and 64 channels."""
    blocks = [basic_block(16, 16, 1), basic_block(16, 32, 2), basic_block(32, 64, 2)]
    return nn.Sequential(conv_norm(3, 16), *blocks, pooled_head(64, 10))


def anomaly_autoencoder() -> nn.Module:
    """MLPerf Tiny's anomaly detection: 640 features through 8."""
    widths = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 640))


def inverted(before: int, after: int, wider: int, kernel: int, stride: int) -> nn.Module:
    """MobileNet v2's block with ReLU6."""
    width = before * wider
    inner = nn.Sequential(conv_norm(before, width, 1, act=nn.ReLU6),
                          conv_norm(width, width, kernel, stride, width, nn.ReLU6),
                          conv_norm(width, after, 1, act=None))
    return residual(inner) if stride == 1 and before == after else inner


def mcunet() -> nn.Module:
    """Blocks like those found by MCUNet (Lin et al. 2020): kernels of 3, 5 and 7."""
    settings = [(8, 3, 3, 2), (8, 4, 5, 1), (16, 5, 7, 2), (16, 4, 5, 1), (24, 5, 5, 2), (24, 6, 7, 1)]
    settings += [(40, 6, 7, 2), (40, 4, 3, 1), (96, 6, 5, 2)]
    layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, act=nn.ReLU6)]
    before = 16
    for after, wider, kernel, stride in settings:
        layers.append(inverted(before, after, wider, kernel, stride))
        before = after
    return nn.Sequential(*layers, pooled_head(before, 100))


def efficientnet_lite() -> nn.Module:
    """EfficientNet-Lite0: no squeeze-and-excitation, ReLU6."""
    stages = [(16, 1, 1, 3, 1), (24, 2, 6, 3, 2), (40, 2, 6, 5, 2), (80, 3, 6, 3, 2)]
    stages += [(112, 3, 6, 5, 1), (192, 4, 6, 5, 2), (320, 1, 6, 3, 1)]
    layers: list[nn.Module] = [conv_norm(3, 32, 3, 2, act=nn.ReLU6)]
    before = 32
    for after, repeats, wider, kernel, stride in stages:
        for i in range(repeats):
            layers.append(inverted(before, after, wider, kernel, stride if i == 0 else 1))
            before = after
    return nn.Sequential(*layers, conv_norm(320, 1280, 1, act=nn.ReLU6), pooled_head(1280, 1000))


def micro_speech() -> nn.Module:
    """TensorFlow Lite Micro's example: one convolution and one linear layer."""
    conv = nn.Conv2d(1, 8, (10, 8), stride=2, padding=(4, 3))
    return nn.Sequential(conv, nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8 * 24 * 20, 4))


def fasttext() -> nn.Module:
    """The mean of embeddings, by EmbeddingBag, and classes."""
    return nn.Sequential(nn.EmbeddingBag(5000, 32, mode="mean"), nn.Linear(32, 4))


NETWORKS: dict[str, Network] = {
    "lenet5": Network(lenet, floats((1, 32, 32))), "ds_cnn_kws": Network(keyword_spotting, floats((1, 49, 10))),
    "mobilenet_v1_025_vww": Network(lambda: mobilenet_v1(0.25, 2), floats((3, 96, 96))),
    "resnet8_mlperf_tiny": Network(resnet8, floats((3, 32, 32))),
    "autoencoder_mlperf_tiny": Network(anomaly_autoencoder, floats((640,)), "mse", batch=2),
    "mcunet": Network(mcunet, floats((3, 160, 160))),
    "efficientnet_lite0": Network(efficientnet_lite, floats((3, 224, 224))),
    "micro_speech": Network(micro_speech, floats((1, 49, 40))),
    "fasttext_embedding_bag": Network(fasttext, tokens(5000, 20))}
