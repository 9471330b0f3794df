"""A few cases of every kind, to copy from."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from gradient_cases.framework import Case, Node, constant, data, exported


def cases() -> Iterator[Case]:
    yield from products()
    yield from rows()
    yield from others()


def products() -> Iterator[Case]:
    yield Case(
        "conv_stride2_bias",
        op_type="Conv",
        attributes={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        inputs=[data("X", (2, 3, 7, 6)), data("W", (4, 3, 3, 3), scale=0.3), data("B", (4,))],
        torch=lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
    )
    yield Case(
        "gemm_transposed",
        op_type="Gemm",
        attributes={"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
        inputs=[data("A", (4, 3)), data("B", (5, 4)), data("C", (5,))],
        torch=lambda a, b, c: 0.5 * a.T @ b.T + 2.0 * c,
    )


def rows() -> Iterator[Case]:
    for axis in (-1, 0, 1):
        yield Case(
            f"softmax_axis{axis}",
            op_type="Softmax",
            attributes={"axis": axis},
            inputs=[data("X", (2, 3, 4), scale=2.0)],
            torch=lambda x, axis=axis: torch.softmax(x, axis),
        )


def others() -> Iterator[Case]:
    yield Case(
        "relu", op_type="Relu", inputs=[data("X", (3, 4))], torch=lambda x: torch.relu(x)
    )
    for left, right in (((2, 3, 4), (4,)), ((3, 1), (2, 1, 4)), ((), (2, 2)), ((2, 3), (2, 3))):
        yield Case(
            f"add_{list(left)}_{list(right)}".replace(" ", ""),
            op_type="Add",
            inputs=[data("A", left), data("B", right)],
            torch=lambda a, b: a + b,
        )
    yield Case(
        "reshape_transpose",
        nodes=[
            Node("Reshape", ["X", "shape"], ["R"]),
            Node("Transpose", ["R"], ["T"], {"perm": [1, 0]}),
            Node("MatMul", ["T", "W"], ["Y"]),
        ],
        inputs=[data("X", (2, 3, 4)), constant("shape", [6, 4]), data("W", (6, 2))],
        torch=lambda x, shape, w: x.reshape(6, 4).T @ w,
    )
    yield exported(
        "exported_mlp",
        nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)),
        [data("input", (2, 5, 4))],
    )
