"""A few cases of every kind, as templates."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from gradient_cases.framework import Case, constant, data, exported, graph, in_turn, op


def cases() -> Iterator[Case]:
    return in_turn(products, rows, others)


def products() -> Iterator[Case]:
    yield op(
        "conv_stride2_bias", "Conv", [data("X", (2, 3, 7, 6)), data("W", (4, 3, 3, 3), scale=0.3), data("B", (4,))],
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield op("gemm_transposed", "Gemm", [data("A", (4, 3)), data("B", (5, 4)), data("C", (5,))],
             lambda a, b, c: 0.5 * a.T @ b.T + 2.0 * c, transA=1, transB=1, alpha=0.5, beta=2.0)


def rows() -> Iterator[Case]:
    for axis in (-1, 0, 1):
        yield op(f"softmax_axis{axis}", "Softmax", [data("X", (2, 3, 4), scale=2.0)],
                 lambda x: torch.softmax(x, axis), axis=axis)


def others() -> Iterator[Case]:
    yield op("relu", "Relu", [data("X", (3, 4))], torch.relu)
    for left, right in (((2, 3, 4), (4,)), ((3, 1), (2, 1, 4)), ((), (2, 2)), ((2, 3), (2, 3))):
        yield op(f"add_{list(left)}_{list(right)}".replace(" ", ""), "Add",
                 [data("A", left), data("B", right)], lambda a, b: a + b)
    yield graph("reshape_transpose", ["R = Reshape X shape", "T = Transpose R perm=[1,0]", "Y = MatMul T W"],
                [data("X", (2, 3, 4)), constant("shape", [6, 4]), data("W", (6, 2))],
                lambda x, shape, w: x.reshape(6, 4).T @ w)
    yield exported("exported_mlp", nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)),
                   [data("input", (2, 5, 4))])
