"""Maxima and averages over windows and over everything."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import (Case, Node, constant, data, exported, f32, graph, in_turn, op, outside, short)

MAXIMUM = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def cases() -> Iterator[Case]:
    return in_turn(maxima, averages, whole, responses, modules, powers, unpools)


def maximum(shape: tuple[int, ...], kernel: list[int], *, strides: list[int] | None = None,
            dilations: list[int] | None = None, pads: list[int] | None = None, ceil: bool = False,
            levels: int = 0) -> Case:
    spatial = len(kernel)
    strides = strides or [1] * spatial
    dilations = dilations or [1] * spatial
    pads = pads or [0] * (2 * spatial)
    attributes: dict = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if any(d > 1 for d in dilations):
        attributes["dilations"] = dilations
    if ceil:
        attributes["ceil_mode"] = 1
    symmetric = pads[:spatial] == pads[spatial:]
    label = f"{short(kernel)}_s{short(strides)}_d{short(dilations)}_p{short(pads)}"

    def run(x: Tensor) -> Tensor:
        if symmetric:
            padding = pads[:spatial]
        else:
            x, padding = outside(x, pads, -1e9), [0] * spatial
        return MAXIMUM[spatial](x, kernel, strides, padding, dilations, ceil_mode=ceil)

    return op(f"max_{short(shape)}_{label}{'_ceil' if ceil else ''}{f'_l{levels}' if levels else ''}",
              "MaxPool", [data("X", shape, scale=0.5 if levels else 1.0, levels=levels)], run, **attributes)


def maxima() -> Iterator[Case]:
    yield maximum((2, 3, 9), [3])
    yield maximum((2, 3, 9), [3], strides=[2], pads=[1, 1])
    yield maximum((1, 2, 10), [2], strides=[3], pads=[0, 1], dilations=[2])
    yield maximum((2, 2, 6, 6), [2, 2], strides=[2, 2])
    yield maximum((1, 3, 7, 5), [3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield maximum((1, 3, 7, 5), [3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    yield maximum((2, 2, 7, 8), [3, 2], strides=[2, 1], pads=[1, 0, 0, 1])
    yield maximum((2, 2, 7, 8), [2, 3], strides=[2, 2], pads=[0, 1, 1, 2])
    yield maximum((1, 2, 9, 8), [3, 3], dilations=[2, 2], pads=[1, 1, 1, 1])
    yield maximum((1, 2, 9, 8), [2, 3], dilations=[3, 1], strides=[2, 2])
    yield maximum((2, 1, 8, 8), [3, 3], strides=[3, 3])
    yield maximum((1, 2, 5, 5), [2, 2], strides=[3, 3])  # pixels that no window touches
    yield maximum((1, 1, 4, 4), [4, 4])
    for shape in ((1, 2, 6, 7), (2, 1, 5, 8)):
        for kernel, strides, pads in (([2, 2], [2, 2], [0, 0, 0, 0]), ([3, 3], [2, 2], [0, 0, 0, 0]),
                                      ([3, 3], [2, 2], [1, 1, 1, 1]), ([2, 3], [3, 2], [1, 0, 1, 0])):
            yield maximum(shape, kernel, strides=strides, pads=pads, ceil=True)
    yield maximum((1, 2, 9, 9), [2, 2], strides=[2, 2], dilations=[2, 2], ceil=True)
    # A last window that would begin in the padding is left out.
    yield maximum((1, 1, 5, 5), [2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil=True)
    yield maximum((1, 1, 4, 7), [1, 1], strides=[2, 3], ceil=True)
    # The first of several equal elements is the maximum.
    yield maximum((2, 2, 6, 6), [3, 3], strides=[2, 2], pads=[1, 1, 1, 1], levels=3)
    yield maximum((2, 2, 6, 6), [2, 2], strides=[1, 1], levels=2)
    yield maximum((2, 3, 8), [3], strides=[1], pads=[1, 1], levels=2)
    yield maximum((1, 2, 4, 5, 4), [2, 2, 2], strides=[2, 2, 2])
    yield maximum((1, 2, 4, 5, 5), [3, 2, 3], strides=[1, 2, 2], pads=[1, 0, 1, 1, 0, 1], levels=5)
    for upper in (True, False):
        mode = "SAME_UPPER" if upper else "SAME_LOWER"
        pads = [0, 0, 1, 1] if upper else [1, 1, 0, 0]
        yield op(f"max_{mode}", "MaxPool", [data("X", (1, 2, 5, 4))],
                 lambda x: F.max_pool2d(outside(x, pads, -1e9), 2, 1), kernel_shape=[2, 2], strides=[1, 1],
                 auto_pad=mode)
    yield graph("max_of_channels_last",
                ["T = Transpose X perm=[0,3,1,2]", "Y = MaxPool T kernel_shape=[2,2] strides=[2,2]"],
                [data("X", (2, 6, 4, 3))], lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 2))


def average(shape: tuple[int, ...], kernel: list[int], *, strides: list[int] | None = None,
            pads: list[int] | None = None, ceil: bool = False, include: bool = False) -> Case:
    spatial = len(kernel)
    strides = strides or [1] * spatial
    pads = pads or [0] * spatial
    attributes: dict = {"kernel_shape": kernel, "strides": strides, "pads": pads + pads}
    if ceil:
        attributes["ceil_mode"] = 1
    if include:
        attributes["count_include_pad"] = 1
    label = f"{short(kernel)}_s{short(strides)}_p{short(pads)}"
    label += "_ceil" if ceil else ""
    label += "_include" if include else ""
    return op(f"average_{short(shape)}_{label}", "AveragePool", [data("X", shape)],
              lambda x: AVERAGE[spatial](x, kernel, strides, pads, ceil, include), **attributes)


def averages() -> Iterator[Case]:
    for include in (False, True):
        for ceil in (False, True):
            options = {"ceil": ceil, "include": include}
            yield average((2, 3, 9), [3], strides=[2], pads=[1], **options)
            yield average((1, 2, 8), [2], strides=[3], **options)
            yield average((2, 2, 6, 6), [2, 2], strides=[2, 2], **options)
            yield average((1, 2, 7, 5), [3, 3], strides=[2, 2], pads=[1, 1], **options)
            yield average((1, 2, 7, 6), [3, 2], strides=[2, 3], pads=[1, 0], **options)
            yield average((1, 2, 6, 6), [3, 3], strides=[2, 2], **options)
            yield average((2, 1, 5, 8), [4, 4], strides=[3, 3], pads=[2, 2], **options)
            yield average((1, 1, 5, 5), [2, 2], strides=[3, 3], pads=[1, 1], **options)
            yield average((1, 2, 4, 5, 4), [2, 3, 2], strides=[2, 1, 2], pads=[1, 1, 0], **options)
    yield average((1, 2, 5, 5), [3, 3])
    yield average((1, 3, 4, 4), [4, 4])
    yield average((1, 2, 5, 7), [1, 2], strides=[2, 3])
    for pads, include in (([1, 0, 0, 2], True), ([0, 1, 1, 0], True)):
        yield op(f"average_uneven_{short(pads)}", "AveragePool", [data("X", (1, 2, 6, 5))],
                 lambda x: F.avg_pool2d(outside(x, pads, 0.0), 3, 1), kernel_shape=[3, 3], pads=pads,
                 count_include_pad=1)
    yield op("average_uneven_exclude", "AveragePool", [data("X", (1, 2, 6, 5))],
             lambda x: F.avg_pool2d(outside(x, [1, 0, 0, 1], 0.0), (3, 2), 1) / F.avg_pool2d(
                 outside(torch.ones_like(x), [1, 0, 0, 1], 0.0), (3, 2), 1), kernel_shape=[3, 2], pads=[1, 0, 0, 1])
    yield graph("average_of_channels_last",
                ["T = Transpose X perm=[0,3,1,2]", "Y = AveragePool T kernel_shape=[3,3] pads=[1,1,1,1]"],
                [data("X", (2, 5, 4, 3))],
                lambda x: F.avg_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1, count_include_pad=False))


def whole() -> Iterator[Case]:
    for shape in ((2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 2, 4), (3, 4, 1, 1)):
        axes = tuple(range(2, len(shape)))
        yield op(f"global_average_{short(shape)}", "GlobalAveragePool", [data("X", shape)],
                 lambda x: x.mean(axes, keepdim=True))
        ones = [1] * len(axes)
        adaptive = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
        for levels in (0, 3):
            yield op(f"global_max_{short(shape)}_l{levels}", "GlobalMaxPool", [data("X", shape, levels=levels)],
                     lambda x, f=adaptive[len(axes)], ones=ones: f(x, ones))


def response(x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    before = (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), (before, size - 1 - before))
    sums = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x * (bias + alpha / size * sums) ** -beta


def responses() -> Iterator[Case]:
    for shape, size in (((2, 7, 3, 2), 5), ((1, 4, 2, 2), 3), ((2, 5, 3), 2), ((1, 3, 2), 7)):
        yield op(f"lrn_{short(shape)}_{size}", "LRN", [data("X", shape)],
                 lambda x: response(x, size, 0.5, 0.75, 2.0), size=size, alpha=0.5, beta=0.75, bias=2.0)
    alpha = f32(1e-4)
    yield op("lrn_defaults", "LRN", [data("X", (1, 8, 2, 2), scale=20.0)],
             lambda x: F.local_response_norm(x, 5, alpha, 0.75, 1.0), size=5, alpha=alpha)
    yield graph("lrn_of_view", ["T = Transpose X perm=[0,2,1]", "Y = LRN T size=3 alpha=0.5 beta=0.5 bias=1.0"],
                [data("X", (2, 3, 5))], lambda x: response(x.transpose(1, 2), 3, 0.5, 0.5, 1.0))


def modules() -> Iterator[Case]:
    image = [data("input", (2, 3, 8, 6))]
    line = [data("input", (2, 3, 12))]
    for name, module, inputs in (
        ("adaptive_1", nn.AdaptiveAvgPool2d(1), image), ("adaptive_pair", nn.AdaptiveAvgPool2d((4, 3)), image),
        ("adaptive_none", nn.AdaptiveAvgPool2d((2, None)), image), ("adaptive_1d", nn.AdaptiveAvgPool1d(4), line),
        ("adaptive_1d_one", nn.AdaptiveAvgPool1d(1), line),
        ("adaptive_3d", nn.AdaptiveAvgPool3d((2, 1, 3)), [data("input", (1, 2, 4, 3, 6))]),
        ("adaptive_max", nn.AdaptiveMaxPool2d(1), image), ("adaptive_max_1d", nn.AdaptiveMaxPool1d(4), line),
        ("average_padded", nn.AvgPool2d(3, 2, 1), image),
        ("average_exclude", nn.AvgPool2d(3, 2, 1, count_include_pad=False), image),
        ("average_1d", nn.AvgPool1d(3, 2), line), ("average_ceil", nn.AvgPool2d(3, 2, ceil_mode=True), image),
        ("max", nn.MaxPool2d(3, 2, 1), image), ("max_ceil", nn.MaxPool2d(3, 2, ceil_mode=True), image),
        ("max_dilated", nn.MaxPool2d(2, 1, dilation=2), image), ("max_1d", nn.MaxPool1d(3, 2, 1), line)):
        yield exported(f"exported_{name}", module, inputs)


# --- Powers, and maxima put back -------------------------------------------------------------


def windows(x: Tensor, kernel: list[int], strides: list[int], pads: list[int]) -> Tensor:
    """Returns the elements of every window on one last axis; padding is zero."""
    x = outside(x, pads, 0.0)
    for i, (size, step) in enumerate(zip(kernel, strides)):
        x = x.unfold(2 + i, size, step)
    return x.flatten(2 + len(kernel))


def power(shape: tuple[int, ...], kernel: list[int], p: int, *, strides: list[int] | None = None,
          pads: list[int] | None = None) -> Case:
    strides = strides or [1] * len(kernel)
    pads = pads or [0] * (2 * len(kernel))
    return op(f"power_{short(shape)}_{short(kernel)}_{p}_s{short(strides)}_p{short(pads)}", "LpPool",
              [data("X", shape)], lambda x: windows(x, kernel, strides, pads).abs().pow(p).sum(-1) ** (1.0 / p),
              kernel_shape=kernel, strides=strides, pads=pads, p=p)


def powers() -> Iterator[Case]:
    for p in (1, 2, 3, 4):
        yield power((2, 3, 9), [3], p, strides=[2], pads=[1, 1])
        yield power((1, 2, 5, 6), [2, 3], p, strides=[1, 2])
        yield power((1, 2, 5, 5), [3, 2], p, strides=[2, 2], pads=[1, 0, 1, 1])
        yield power((1, 1, 4, 3, 4), [2, 2, 2], p, strides=[2, 1, 1])
        for shape in ((2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 2, 4)):
            axes = tuple(range(2, len(shape)))
            yield op(f"global_power_{short(shape)}_{p}", "GlobalLpPool", [data("X", shape)],
                     lambda x: x.abs().pow(p).sum(axes, keepdim=True) ** (1.0 / p), p=p)
    # The norm of a window of zeros has no slope; ours is zero.
    yield op("power_of_zeros", "LpPool", [data("X", values=[[[0.0, 0.0, 3.0, -4.0]]])],
             lambda x: torch.linalg.vector_norm(windows(x, [2], [2], [0, 0]), dim=-1), kernel_shape=[2], strides=[2])
    yield graph("power_of_channels_last",
                ["T = Transpose X perm=[0,3,1,2]", "Y = LpPool T kernel_shape=[2,2] strides=[1,2]"],
                [data("X", (2, 5, 4, 3))],
                lambda x: (windows(x.permute(0, 3, 1, 2), [2, 2], [1, 2], [0] * 4).square().sum(-1).sqrt()),
                counts_as="LpPool")


UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def unpooled(shape: tuple[int, ...], kernel: list[int], *, strides: list[int] | None = None,
             pads: list[int] | None = None, sized: bool = False, last: bool = False) -> Case:
    """`sized`: the output's shape is an input. `last`: the image has its channels last.

    PyTorch counts indices through a channel's plane, ONNX through the whole tensor.
    """
    spatial = len(kernel)
    strides = strides or kernel
    pads = pads or [0] * spatial
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads + pads}

    def run(x: Tensor, *_: Tensor) -> Tensor:
        x = x.movedim(-1, 1) if last else x
        y, places = MAXIMUM[spatial](x, kernel, strides, pads, return_indices=True)
        size = list(x.shape[2:]) if sized else None
        return UNPOOL[spatial](y * y, places, kernel, strides, pads, size)

    whole = (shape[0], shape[-1], *shape[1:-1]) if last else shape
    order = [0, len(shape) - 1, *range(1, len(shape) - 1)]
    seen = "T" if last else "X"
    nodes = [Node("Transpose", ["X"], ["T"], {"perm": order})] if last else []
    nodes += [Node("MaxPool", [seen], ["P", "I"], attributes), Node("Mul", ["P", "P"], ["S"]),
              Node("MaxUnpool", ["S", "I", "size"] if sized else ["S", "I"], ["Y"], attributes)]
    size = [constant("size", list(whole))] if sized else []
    label = f"{short(shape)}_{short(kernel)}_s{short(strides)}_p{short(pads)}"
    return graph(f"unpool_{label}{'_sized' if sized else ''}{'_last' if last else ''}", nodes,
                 [data("X", shape), *size], run, counts_as="MaxUnpool")


def unpools() -> Iterator[Case]:
    yield unpooled((2, 3, 8), [2])
    yield unpooled((2, 3, 9), [2], sized=True)
    yield unpooled((2, 3, 6, 4), [2, 2])
    yield unpooled((2, 2, 7, 9), [2, 3], strides=[2, 2], sized=True)
    yield unpooled((1, 2, 5, 6), [3, 3], strides=[2, 3], pads=[1, 0], sized=True)
    yield unpooled((1, 2, 4, 4, 6), [2, 2, 3])
    yield unpooled((2, 6, 4, 3), [2, 2], last=True)
    yield unpooled((2, 7, 5, 3), [2, 2], last=True, sized=True)
