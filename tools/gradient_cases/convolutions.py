"""Convolutions and transposed convolutions in one, two and three dimensions."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import Case, Node, data, exported, graph, in_turn, op, outside
from net import Net, net

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def cases() -> Iterator[Case]:
    return in_turn(plain, automatic, transposed, modules)


def conv(name: str, x: tuple[int, ...], w: tuple[int, ...], *, strides: list[int] | None = None,
         dilations: list[int] | None = None, pads: list[int] | None = None, group: int = 1, bias: bool = True) -> Case:
    spatial = len(x) - 2
    strides = strides or [1] * spatial
    dilations = dilations or [1] * spatial
    pads = pads or [0] * (2 * spatial)
    inputs = [data("X", x), data("W", w, scale=0.5)]
    if bias:
        inputs.append(data("B", (w[0],)))
    return op(f"conv_{name}", "Conv", inputs,
              lambda x, w, b=None: CONV[spatial](outside(x, pads), w, b, strides, 0, dilations, group),
              kernel_shape=list(w[2:]), strides=strides, dilations=dilations, pads=pads, group=group)


def plain() -> Iterator[Case]:
    yield conv("1d", (2, 3, 9), (4, 3, 3))
    yield conv("1d_stride_dilation", (2, 3, 13), (4, 3, 3), strides=[2], dilations=[2], pads=[2, 1])
    yield conv("1d_depthwise", (2, 4, 8), (4, 1, 3), group=4, pads=[1, 1], bias=False)
    yield conv("1d_whole", (3, 2, 5), (4, 2, 5))
    yield conv("1d_batch1_point", (1, 3, 6), (5, 3, 1))
    yield conv("2d", (2, 3, 6, 5), (4, 3, 3, 3))
    yield conv("2d_batch1", (1, 3, 6, 5), (4, 3, 3, 3), pads=[1, 1, 1, 1])
    yield conv("2d_no_bias", (2, 3, 6, 5), (4, 3, 3, 2), bias=False)
    yield conv("2d_one_channel", (2, 1, 6, 6), (1, 1, 3, 3), pads=[1, 1, 1, 1])
    yield conv("2d_even_kernel", (2, 3, 7, 6), (2, 3, 2, 4), pads=[1, 2, 1, 2])
    # Rows and columns that no window touches keep a gradient of zero.
    yield conv("2d_point_stride2", (2, 3, 7, 6), (4, 3, 1, 1), strides=[2, 2], bias=False)
    yield conv("2d_stride_beyond_kernel", (1, 2, 9, 8), (3, 2, 2, 2), strides=[3, 4])
    yield conv("2d_patches", (2, 3, 8, 8), (5, 3, 4, 4), strides=[4, 4])
    yield conv("2d_stem", (1, 3, 13, 13), (4, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3])
    for strides in ([1, 2], [2, 1], [2, 2], [3, 2]):
        for pads in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 1], [2, 0, 0, 1]):
            yield conv(f"2d_s{strides}_p{pads}".replace(" ", ""), (2, 2, 7, 8), (3, 2, 3, 3), strides=strides,
                       pads=pads)
    for dilations in ([2, 2], [1, 3], [2, 1]):
        for strides in ([1, 1], [2, 2]):
            yield conv(f"2d_d{dilations}_s{strides}".replace(" ", ""), (1, 2, 9, 10), (3, 2, 3, 3),
                       strides=strides, dilations=dilations, pads=[2, 1, 1, 2])
    for group, x, w in ((2, (2, 4, 5, 5), (6, 2, 3, 3)), (4, (1, 4, 6, 5), (4, 1, 3, 3)),
                        (3, (2, 3, 5, 6), (6, 1, 3, 3)), (4, (1, 8, 4, 4), (4, 2, 1, 1))):
        for strides in ([1, 1], [2, 2]):
            yield conv(f"2d_g{group}_{x[1]}_{w[0]}_s{strides}".replace(" ", ""), x, w, strides=strides,
                       group=group, pads=[1, 1, 1, 1])
    yield conv("3d", (1, 2, 4, 5, 4), (3, 2, 3, 3, 2), pads=[1, 0, 1, 1, 1, 0])
    yield conv("3d_stride", (2, 2, 5, 4, 5), (3, 2, 2, 3, 2), strides=[2, 1, 2])
    yield conv("3d_grouped", (1, 4, 4, 4, 3), (4, 2, 2, 2, 2), group=2, dilations=[1, 2, 1])
    yield conv("3d_depthwise", (1, 3, 3, 4, 4), (3, 1, 3, 3, 3), group=3, pads=[1] * 6)


def same(x: Tensor, size: int, stride: int, upper: bool) -> Tensor:
    """Pads a square image as auto_pad SAME does."""
    pads = []
    for extent in reversed(x.shape[2:]):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
        small, large = total // 2, total - total // 2
        pads += [small, large] if upper else [large, small]
    return F.pad(x, pads)


def automatic() -> Iterator[Case]:
    for upper in (True, False):
        mode = "SAME_UPPER" if upper else "SAME_LOWER"
        for size, stride in ((3, 1), (3, 2), (2, 1), (4, 3)):
            yield op(f"conv_{mode}_{size}_{stride}", "Conv",
                     [data("X", (2, 2, 7, 6)), data("W", (3, 2, size, size), scale=0.5)],
                     lambda x, w: F.conv2d(same(x, size, stride, upper), w, stride=stride),
                     kernel_shape=[size, size], strides=[stride, stride], auto_pad=mode)
    yield op("conv_VALID", "Conv", [data("X", (1, 2, 7, 6)), data("W", (3, 2, 3, 2), scale=0.5)],
             lambda x, w: F.conv2d(x, w, stride=(2, 1)), kernel_shape=[3, 2], auto_pad="VALID", strides=[2, 1])
    yield op("conv_defaults", "Conv", [data("X", (2, 2, 5, 5)), data("W", (3, 2, 3, 3), scale=0.5)], F.conv2d)


def transpose(name: str, x: tuple[int, ...], w: tuple[int, ...], *, stride: list[int] | None = None,
              padding: list[int] | None = None, extra: list[int] | None = None,
              dilation: list[int] | None = None, group: int = 1, bias: bool = True) -> Case:
    spatial = len(x) - 2
    stride = stride or [1] * spatial
    padding = padding or [0] * spatial
    dilation = dilation or [1] * spatial
    extra = extra or [0] * spatial
    attributes = {"kernel_shape": list(w[2:]), "strides": stride, "pads": padding + padding,
                  "dilations": dilation, "group": group}
    if any(extra):
        attributes["output_padding"] = extra
    inputs = [data("X", x), data("W", w, scale=0.5)]
    if bias:
        inputs.append(data("B", (w[1] * group,)))
    return op(f"transposed_{name}", "ConvTranspose", inputs,
              lambda x, w, b=None: TRANSPOSED[spatial](x, w, b, stride, padding, extra, group, dilation), **attributes)


def transposed() -> Iterator[Case]:
    yield transpose("1d", (2, 3, 5), (3, 4, 3))
    yield transpose("1d_stride", (2, 3, 5), (3, 2, 4), stride=[2], padding=[1])
    yield transpose("1d_extra", (1, 3, 5), (3, 2, 3), stride=[3], padding=[1], extra=[2])
    yield transpose("2d", (2, 3, 4, 5), (3, 2, 3, 3), bias=False)
    yield transpose("2d_double", (2, 3, 4, 5), (3, 2, 2, 2), stride=[2, 2])
    yield transpose("2d_gaps", (1, 3, 3, 4), (3, 2, 2, 2), stride=[3, 3])
    for stride in ([1, 1], [2, 2], [2, 3]):
        for padding in ([0, 0], [1, 1], [2, 1]):
            yield transpose(f"2d_s{stride}_p{padding}".replace(" ", ""), (1, 2, 4, 5), (2, 3, 4, 3),
                            stride=stride, padding=padding)
    yield transpose("2d_extra", (2, 2, 4, 3), (2, 3, 3, 3), stride=[2, 2], padding=[1, 1], extra=[1, 1])
    yield transpose("2d_extra_one", (1, 2, 4, 3), (2, 3, 3, 3), stride=[2, 3], padding=[1, 0], extra=[0, 2])
    yield transpose("2d_dilated", (1, 2, 4, 3), (2, 3, 3, 2), dilation=[2, 3], padding=[1, 1])
    yield transpose("2d_grouped", (2, 4, 4, 3), (4, 2, 3, 3), stride=[2, 2], padding=[1, 1], group=2)
    yield transpose("2d_depthwise", (1, 3, 4, 4), (3, 1, 4, 4), stride=[2, 2], group=3)
    yield transpose("3d", (1, 2, 3, 3, 2), (2, 2, 2, 3, 2), stride=[2, 1, 2])
    yield transpose("3d_grouped", (1, 4, 2, 3, 3), (4, 1, 3, 2, 2), stride=[2, 2, 1], padding=[1, 0, 0],
                    extra=[1, 0, 0], group=2)


@net(lambda: dict(deep=nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=4, bias=False), point=nn.Conv2d(4, 6, 1)))
def separable(m: Net, x: Tensor) -> Tensor:
    """A depthwise and a pointwise convolution."""
    return m.point(torch.tanh(m.deep(x)))


def modules() -> Iterator[Case]:
    yield exported("exported_separable", separable(), [data("input", (2, 4, 7, 6))])
    for mode in ("reflect", "replicate"):  # PyTorch 1.13 writes circular padding wrongly
        yield exported(f"exported_conv_{mode}", nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode),
                       [data("input", (2, 2, 6, 5))])
    yield exported("exported_conv_no_batch", nn.Conv1d(3, 4, 3, stride=2), [data("input", (3, 9))])
    yield exported("exported_transposed", nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1),
                   [data("input", (2, 3, 4, 5))])
    shared = [Node("Conv", ["X", "W"], ["A"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
              Node("Conv", ["A", "W"], ["Y"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})]
    yield graph("conv_shared_weight", shared, [data("X", (2, 3, 5, 4)), data("W", (3, 3, 3, 3), scale=0.3)],
                lambda x, w: F.conv2d(F.conv2d(x, w, padding=1), w, padding=1))
    yield graph("conv_weight_from_view",
                ["W = Transpose V perm=[1,0,3,2]", "Y = Conv X W kernel_shape=[2,3] strides=[2,1]"],
                [data("X", (2, 3, 6, 5)), data("V", (3, 4, 3, 2), scale=0.3)],
                lambda x, v: F.conv2d(x, v.permute(1, 0, 3, 2), stride=(2, 1)))
    yield graph("conv_from_channels_last",
                ["T = Transpose X perm=[0,3,1,2]", "Y = Conv T W kernel_shape=[3,3] pads=[1,0,1,0]"],
                [data("X", (2, 5, 6, 3)), data("W", (4, 3, 3, 3), scale=0.3)],
                lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w, padding=(1, 0)))
