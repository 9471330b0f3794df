"""Maxima and averages over windows and over everything."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import Case, Node, constant, data, exported, f32

MAXIMUM = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def cases() -> Iterator[Case]:
    yield from maxima()
    yield from averages()
    yield from whole()
    yield from responses()
    yield from modules()
    yield from powers()
    yield from unpools()


def short(values: list[int]) -> str:
    return "x".join(map(str, values))


def outside(x: Tensor, pads: list[int], value: float) -> Tensor:
    """ONNX pads (all begins, then all ends) by F.pad, which counts from the last axis."""
    count = len(pads) // 2
    flat = [side for i in reversed(range(count)) for side in (pads[i], pads[count + i])]
    return F.pad(x, flat, value=value)


def maximum(
    shape: tuple[int, ...],
    kernel: list[int],
    *,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    ceil: bool = False,
    levels: int = 0,
) -> Case:
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

    return Case(
        f"max_{short(list(shape))}_{label}{'_ceil' if ceil else ''}{f'_l{levels}' if levels else ''}",
        op_type="MaxPool",
        attributes=attributes,
        inputs=[data("X", shape, scale=0.5 if levels else 1.0, levels=levels)],
        torch=run,
    )


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
        for kernel, strides, pads in (
            ([2, 2], [2, 2], [0, 0, 0, 0]),
            ([3, 3], [2, 2], [0, 0, 0, 0]),
            ([3, 3], [2, 2], [1, 1, 1, 1]),
            ([2, 3], [3, 2], [1, 0, 1, 0]),
        ):
            yield maximum(shape, kernel, strides=strides, pads=pads, ceil=True)
    yield maximum((1, 2, 9, 9), [2, 2], strides=[2, 2], dilations=[2, 2], ceil=True)
    # A last window that would begin in the padding is left out.
    yield maximum((1, 1, 5, 5), [2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil=True)
    yield maximum((1, 1, 4, 7), [1, 1], strides=[2, 3], ceil=True)
    # Of equal elements the first wins.
    yield maximum((2, 2, 6, 6), [3, 3], strides=[2, 2], pads=[1, 1, 1, 1], levels=3)
    yield maximum((2, 2, 6, 6), [2, 2], strides=[1, 1], levels=2)
    yield maximum((2, 3, 8), [3], strides=[1], pads=[1, 1], levels=2)
    yield maximum((1, 2, 4, 5, 4), [2, 2, 2], strides=[2, 2, 2])
    yield maximum((1, 2, 4, 5, 5), [3, 2, 3], strides=[1, 2, 2], pads=[1, 0, 1, 1, 0, 1], levels=5)
    for upper in (True, False):
        mode = "SAME_UPPER" if upper else "SAME_LOWER"
        pads = [0, 0, 1, 1] if upper else [1, 1, 0, 0]
        yield Case(
            f"max_{mode}",
            op_type="MaxPool",
            attributes={"kernel_shape": [2, 2], "strides": [1, 1], "auto_pad": mode},
            inputs=[data("X", (1, 2, 5, 4))],
            torch=lambda x, pads=pads: F.max_pool2d(outside(x, pads, -1e9), 2, 1),
        )
    yield Case(
        "max_of_channels_last",
        nodes=[
            Node("Transpose", ["X"], ["T"], {"perm": [0, 3, 1, 2]}),
            Node("MaxPool", ["T"], ["Y"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ],
        inputs=[data("X", (2, 6, 4, 3))],
        torch=lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 2),
    )


def average(
    shape: tuple[int, ...],
    kernel: list[int],
    *,
    strides: list[int] | None = None,
    pads: list[int] | None = None,
    ceil: bool = False,
    include: bool = False,
) -> Case:
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
    return Case(
        f"average_{short(list(shape))}_{label}",
        op_type="AveragePool",
        attributes=attributes,
        inputs=[data("X", shape)],
        torch=lambda x: AVERAGE[spatial](x, kernel, strides, pads, ceil, include),
    )


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
        yield Case(
            f"average_uneven_{short(pads)}",
            op_type="AveragePool",
            attributes={"kernel_shape": [3, 3], "pads": pads, "count_include_pad": 1},
            inputs=[data("X", (1, 2, 6, 5))],
            torch=lambda x, pads=pads: F.avg_pool2d(outside(x, pads, 0.0), 3, 1),
        )
    yield Case(
        "average_uneven_exclude",
        op_type="AveragePool",
        attributes={"kernel_shape": [3, 2], "pads": [1, 0, 0, 1]},
        inputs=[data("X", (1, 2, 6, 5))],
        torch=lambda x: F.avg_pool2d(outside(x, [1, 0, 0, 1], 0.0), (3, 2), 1)
        / F.avg_pool2d(outside(torch.ones_like(x), [1, 0, 0, 1], 0.0), (3, 2), 1),
    )
    yield Case(
        "average_of_channels_last",
        nodes=[
            Node("Transpose", ["X"], ["T"], {"perm": [0, 3, 1, 2]}),
            Node("AveragePool", ["T"], ["Y"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ],
        inputs=[data("X", (2, 5, 4, 3))],
        torch=lambda x: F.avg_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1, count_include_pad=False),
    )


def whole() -> Iterator[Case]:
    for shape in ((2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 2, 4), (3, 4, 1, 1)):
        axes = tuple(range(2, len(shape)))
        yield Case(
            f"global_average_{short(list(shape))}",
            op_type="GlobalAveragePool",
            inputs=[data("X", shape)],
            torch=lambda x, axes=axes: x.mean(axes, keepdim=True),
        )
        ones = [1] * len(axes)
        adaptive = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
        for levels in (0, 3):
            yield Case(
                f"global_max_{short(list(shape))}_l{levels}",
                op_type="GlobalMaxPool",
                inputs=[data("X", shape, levels=levels)],
                torch=lambda x, f=adaptive[len(axes)], ones=ones: f(x, ones),
            )


def response(x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    before = (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), (before, size - 1 - before))
    sums = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x * (bias + alpha / size * sums) ** -beta


def responses() -> Iterator[Case]:
    for shape, size in (((2, 7, 3, 2), 5), ((1, 4, 2, 2), 3), ((2, 5, 3), 2), ((1, 3, 2), 7)):
        yield Case(
            f"lrn_{short(list(shape))}_{size}",
            op_type="LRN",
            attributes={"size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0},
            inputs=[data("X", shape)],
            torch=lambda x, size=size: response(x, size, 0.5, 0.75, 2.0),
        )
    alpha = f32(1e-4)
    yield Case(
        "lrn_defaults",
        op_type="LRN",
        attributes={"size": 5, "alpha": alpha},
        inputs=[data("X", (1, 8, 2, 2), scale=20.0)],
        torch=lambda x: F.local_response_norm(x, 5, alpha, 0.75, 1.0),
    )
    yield Case(
        "lrn_of_view",
        nodes=[
            Node("Transpose", ["X"], ["T"], {"perm": [0, 2, 1]}),
            Node("LRN", ["T"], ["Y"], {"size": 3, "alpha": 0.5, "beta": 0.5, "bias": 1.0}),
        ],
        inputs=[data("X", (2, 3, 5))],
        torch=lambda x: response(x.transpose(1, 2), 3, 0.5, 0.5, 1.0),
    )


def modules() -> Iterator[Case]:
    image = [data("input", (2, 3, 8, 6))]
    line = [data("input", (2, 3, 12))]
    for name, module, inputs in (
        ("adaptive_1", nn.AdaptiveAvgPool2d(1), image),
        ("adaptive_pair", nn.AdaptiveAvgPool2d((4, 3)), image),
        ("adaptive_none", nn.AdaptiveAvgPool2d((2, None)), image),
        ("adaptive_1d", nn.AdaptiveAvgPool1d(4), line),
        ("adaptive_1d_one", nn.AdaptiveAvgPool1d(1), line),
        ("adaptive_3d", nn.AdaptiveAvgPool3d((2, 1, 3)), [data("input", (1, 2, 4, 3, 6))]),
        ("adaptive_max", nn.AdaptiveMaxPool2d(1), image),
        ("adaptive_max_1d", nn.AdaptiveMaxPool1d(4), line),
        ("average_padded", nn.AvgPool2d(3, 2, 1), image),
        ("average_exclude", nn.AvgPool2d(3, 2, 1, count_include_pad=False), image),
        ("average_1d", nn.AvgPool1d(3, 2), line),
        ("average_ceil", nn.AvgPool2d(3, 2, ceil_mode=True), image),
        ("max", nn.MaxPool2d(3, 2, 1), image),
        ("max_ceil", nn.MaxPool2d(3, 2, ceil_mode=True), image),
        ("max_dilated", nn.MaxPool2d(2, 1, dilation=2), image),
        ("max_1d", nn.MaxPool1d(3, 2, 1), line),
    ):
        yield exported(f"exported_{name}", module, inputs)


# --- Powers, and maxima put back -------------------------------------------------------------


def windows(x: Tensor, kernel: list[int], strides: list[int], pads: list[int]) -> Tensor:
    """Elements of every window on one last axis; padding is zero."""
    x = outside(x, pads, 0.0)
    for i, (size, step) in enumerate(zip(kernel, strides)):
        x = x.unfold(2 + i, size, step)
    return x.flatten(2 + len(kernel))


def power(
    shape: tuple[int, ...],
    kernel: list[int],
    p: int,
    *,
    strides: list[int] | None = None,
    pads: list[int] | None = None,
) -> Case:
    strides = strides or [1] * len(kernel)
    pads = pads or [0] * (2 * len(kernel))
    return Case(
        f"power_{short(list(shape))}_{short(kernel)}_{p}_s{short(strides)}_p{short(pads)}",
        op_type="LpPool",
        attributes={"kernel_shape": kernel, "strides": strides, "pads": pads, "p": p},
        inputs=[data("X", shape)],
        torch=lambda x: windows(x, kernel, strides, pads).abs().pow(p).sum(-1) ** (1.0 / p),
    )


def powers() -> Iterator[Case]:
    for p in (1, 2, 3, 4):
        yield power((2, 3, 9), [3], p, strides=[2], pads=[1, 1])
        yield power((1, 2, 5, 6), [2, 3], p, strides=[1, 2])
        yield power((1, 2, 5, 5), [3, 2], p, strides=[2, 2], pads=[1, 0, 1, 1])
        yield power((1, 1, 4, 3, 4), [2, 2, 2], p, strides=[2, 1, 1])
        for shape in ((2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 2, 4)):
            yield Case(
                f"global_power_{short(list(shape))}_{p}",
                op_type="GlobalLpPool",
                attributes={"p": p},
                inputs=[data("X", shape)],
                torch=lambda x, p=p: (x.abs().pow(p).flatten(2).sum(-1) ** (1.0 / p)).reshape(
                    *x.shape[:2], *[1] * (x.dim() - 2)
                ),
            )
    # Of a window of zeros the norm has no slope; ours is zero.
    yield Case(
        "power_of_zeros",
        op_type="LpPool",
        attributes={"kernel_shape": [2], "strides": [2]},
        inputs=[data("X", values=[[[0.0, 0.0, 3.0, -4.0]]])],
        torch=lambda x: torch.linalg.vector_norm(windows(x, [2], [2], [0, 0]), dim=-1),
    )
    yield Case(
        "power_of_channels_last",
        nodes=[
            Node("Transpose", ["X"], ["T"], {"perm": [0, 3, 1, 2]}),
            Node("LpPool", ["T"], ["Y"], {"kernel_shape": [2, 2], "strides": [1, 2]}),
        ],
        inputs=[data("X", (2, 5, 4, 3))],
        torch=lambda x: (
            windows(x.permute(0, 3, 1, 2), [2, 2], [1, 2], [0] * 4).square().sum(-1).sqrt()
        ),
        counts_as="LpPool",
    )


UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def unpooled(
    shape: tuple[int, ...],
    kernel: list[int],
    *,
    strides: list[int] | None = None,
    pads: list[int] | None = None,
    sized: bool = False,
    last: bool = False,
) -> Case:
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
    nodes += [
        Node("MaxPool", [seen], ["P", "I"], attributes),
        Node("Mul", ["P", "P"], ["S"]),
        Node("MaxUnpool", ["S", "I", "size"] if sized else ["S", "I"], ["Y"], attributes),
    ]
    size = [constant("size", list(whole))] if sized else []
    label = f"{short(list(shape))}_{short(kernel)}_s{short(strides)}_p{short(pads)}"
    return Case(
        f"unpool_{label}{'_sized' if sized else ''}{'_last' if last else ''}",
        nodes=nodes,
        inputs=[data("X", shape), *size],
        torch=run,
        counts_as="MaxUnpool",
    )


def unpools() -> Iterator[Case]:
    yield unpooled((2, 3, 8), [2])
    yield unpooled((2, 3, 9), [2], sized=True)
    yield unpooled((2, 3, 6, 4), [2, 2])
    yield unpooled((2, 2, 7, 9), [2, 3], strides=[2, 2], sized=True)
    yield unpooled((1, 2, 5, 6), [3, 3], strides=[2, 3], pads=[1, 0], sized=True)
    yield unpooled((1, 2, 4, 4, 6), [2, 2, 3])
    yield unpooled((2, 6, 4, 3), [2, 2], last=True)
    yield unpooled((2, 7, 5, 3), [2, 2], last=True, sized=True)
