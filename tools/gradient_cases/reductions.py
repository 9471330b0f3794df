"""Reductions over every choice of axes."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from gradient_cases.framework import Case, constant, data, graph, op

Function = Callable[[Tensor, Sequence[int], bool], Tensor]


def product(x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


FUNCTIONS: dict[str, Function] = {
    "ReduceSum": lambda x, a, k: x.sum(a, k), "ReduceMean": lambda x, a, k: x.mean(a, k),
    "ReduceMax": lambda x, a, k: x.amax(a, k), "ReduceMin": lambda x, a, k: x.amin(a, k), "ReduceProd": product,
    "ReduceL1": lambda x, a, k: x.abs().sum(a, k), "ReduceL2": lambda x, a, k: torch.linalg.vector_norm(x, 2, a, k),
    "ReduceSumSquare": lambda x, a, k: (x * x).sum(a, k), "ReduceLogSumExp": lambda x, a, k: torch.logsumexp(x, a, k),
    "ReduceLogSum": lambda x, a, k: torch.log(x.sum(a, k))}


def reduce(name: str, op_type: str, shape: Sequence[int], axes: Sequence[int], keep: bool, **given):
    """Axes are an input of ReduceSum and an attribute of the others, as in opset 17."""
    attributes = {"keepdims": int(keep)}
    inputs = [given.pop("x", None) or data("X", shape, offset=1.5 if "LogSum" in op_type else 0.0)]
    if op_type == "ReduceSum" and axes:
        inputs.append(constant("axes", list(axes)))
    elif axes:
        attributes["axes"] = list(axes)
    over = list(axes) or list(range(len(shape)))
    return op(name, op_type, inputs, lambda x, *rest: FUNCTIONS[op_type](x, over, keep), **attributes)


def cases() -> Iterator[Case]:
    for op_type in FUNCTIONS:
        choices = [((2, 3, 4), (-1,), True), ((2, 3, 4), (1,), False), ((2, 3, 4), (0, 2), False),
                   ((2, 3, 4), (0, -1), True), ((2, 3, 4), (), True), ((2, 3, 4), (), False),
                   ((5,), (0,), False), ((2, 1, 3), (1,), True), ((2, 1, 3), (1,), False),
                   ((2, 3, 2, 2), (2, 3), True), ((2, 3, 2, 2), (1, 3), False), ((1, 1), (0, 1), False)]
        for shape, axes, keep in choices:
            names = ("x".join(map(str, shape)), "_".join(map(str, axes)) or "all", int(keep))
            yield reduce("{}_{}_over_{}_keep{}".format(op_type.lower(), *names), op_type, shape, axes, keep)
    yield from ties()
    yield from zeros()
    yield from others()


def ties() -> Iterator[Case]:
    for op_type in ("ReduceMax", "ReduceMin"):
        for axes in ((1,), (0, 2), ()):
            name = f"{op_type.lower()}_ties_{'_'.join(map(str, axes)) or 'all'}"
            yield reduce(name, op_type, (2, 4, 3), axes, True, x=data("X", (2, 4, 3), levels=3))


def zeros() -> Iterator[Case]:
    x = data("X", values=[[0.0, 2.0, -3.0], [0.0, 0.0, 4.0], [1.0, 2.0, 3.0]])
    for op_type in ("ReduceProd", "ReduceL1", "ReduceL2"):
        yield reduce(f"{op_type.lower()}_with_zeros", op_type, (3, 3), (1,), False, x=x)
    row = data("X", values=[[0.0, 0.0], [3.0, 4.0]])
    yield reduce("reducel2_of_zeros", "ReduceL2", (2, 2), (1,), False, x=row)
    big = data("X", values=[[700.0, 800.0, -900.0], [1.0, 2.0, 3.0]])
    yield reduce("reducelogsumexp_far", "ReduceLogSumExp", (2, 3), (1,), False, x=big)


def others() -> Iterator[Case]:
    yield op("reducesum_noop", "ReduceSum", [data("X", (2, 3))], lambda x: x * 1, noop_with_empty_axes=1)
    yield op("reducesum_opset11", "ReduceSum", [data("X", (2, 3))], lambda x: x.sum(1), opset=11, axes=[1], keepdims=0)
    yield op("reducemean_opset18", "ReduceMean", [data("X", (2, 3, 2))], lambda x: x.mean((0, 1), True), axes=[0, 1])
    for axis in (0, 1, -1):
        for reverse in (0, 1):
            for exclusive in (0, 1):
                yield op(f"cumsum_{axis}_{reverse}{exclusive}", "CumSum",
                         [data("X", (2, 3, 4)), constant("axis", axis)],
                         lambda x, at: cumulate(x, axis, reverse, exclusive), reverse=reverse, exclusive=exclusive)
    yield graph("standard_deviation",
                ["M = ReduceMean X axes=[-1]", "D = Sub X M", "Q = Mul D D", "V = ReduceMean Q axes=[-1]",
                 "Y = Sqrt V"], [data("X", (3, 5))], lambda x: x.var(-1, unbiased=False, keepdim=True).sqrt(),
                counts_as="chain of reductions")
    yield graph("l2_normalise", ["N = ReduceL2 X axes=[1]", "C = Clip N low", "Y = Div X C"],
                [data("X", (3, 5)), constant("low", 1e-12)],
                lambda x, low: torch.nn.functional.normalize(x, dim=1), counts_as="chain of reductions")


def cumulate(x: Tensor, axis: int, reverse: int, exclusive: int) -> Tensor:
    if reverse:
        x = x.flip(axis)
    y = x.cumsum(axis)
    if exclusive:
        y = y - x
    return y.flip(axis) if reverse else y
