"""Element-wise operators of one operand and of several, with every kind of broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradient_cases.framework import Case, Node, constant, data, integer

# Left and right operand; results of 1 to 5 axes.
PAIRS = (
    ((4,), (4,)),
    ((2, 3), (2, 3)),
    ((2, 3, 4), (4,)),
    ((3,), (2, 4, 3)),
    ((2, 1, 4), (3, 1)),
    ((1, 3, 1), (2, 3, 4)),
    ((2, 3), ()),
    ((), (3, 2)),
    ((), ()),
    ((1,), (5,)),
    ((2, 3, 1, 2), (3, 4, 1)),
    ((1, 1), (1, 1)),
    ((2, 1, 2, 1, 2), (3, 1, 2, 1)),
)


def shape_name(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def cases() -> Iterator[Case]:
    yield from unary()
    yield from binary()
    yield from remainders()
    yield from powers()
    yield from variadic()
    yield from clips()
    yield from selections()
    yield from repeated()


def unary() -> Iterator[Case]:
    functions: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
        "Abs": (torch.abs, 0.0, 1.0),
        "Acos": (torch.acos, 0.0, 0.9),
        "Acosh": (torch.acosh, 2.0, 0.8),
        "Asin": (torch.asin, 0.0, 0.9),
        "Asinh": (torch.asinh, 0.0, 3.0),
        "Atan": (torch.atan, 0.0, 3.0),
        "Atanh": (torch.atanh, 0.0, 0.9),
        "Cos": (torch.cos, 0.0, 4.0),
        "Cosh": (torch.cosh, 0.0, 2.0),
        "Erf": (torch.erf, 0.0, 2.0),
        "Exp": (torch.exp, 0.0, 2.0),
        "Log": (torch.log, 1.5, 1.0),
        "Neg": (torch.neg, 0.0, 1.0),
        "Reciprocal": (torch.reciprocal, 1.5, 1.0),
        "Sin": (torch.sin, 0.0, 4.0),
        "Sinh": (torch.sinh, 0.0, 2.0),
        "Sqrt": (torch.sqrt, 1.5, 1.0),
        "Tan": (torch.tan, 0.0, 1.2),
    }
    for op_type, (function, offset, scale) in functions.items():
        for shape in ((5,), (2, 3, 2), ()):
            yield Case(
                f"{op_type.lower()}_{shape_name(shape)}",
                op_type=op_type,
                inputs=[data("X", shape, offset=offset, scale=scale)],
                torch=lambda x, f=function: f(x),
            )
    steps = {"Ceil": torch.ceil, "Floor": torch.floor, "Round": torch.round, "Sign": torch.sign}
    for op_type, function in steps.items():
        yield Case(
            f"{op_type.lower()}_stops_the_gradient",
            nodes=[Node(op_type, ["X"], ["S"]), Node("Mul", ["S", "X"], ["Y"])],
            inputs=[data("X", (3, 4), scale=3.0)],
            torch=lambda x, f=function: f(x) * x,
        )
    yield Case(
        "abs_zero",
        op_type="Abs",
        inputs=[data("X", values=[-1.0, 0.0, 2.0])],
        torch=torch.abs,
    )


def binary() -> Iterator[Case]:
    functions = {
        "Add": torch.add,
        "Sub": torch.sub,
        "Mul": torch.mul,
        "Div": torch.div,
        "Pow": torch.pow,
        "Max": torch.maximum,
        "Min": torch.minimum,
    }
    for op_type, function in functions.items():
        offset = 1.5 if op_type in ("Div", "Pow") else 0.0
        for left, right in PAIRS:
            yield Case(
                f"{op_type.lower()}_{shape_name(left)}_{shape_name(right)}",
                op_type=op_type,
                inputs=[data("A", left, offset=offset), data("B", right, offset=offset)],
                torch=lambda a, b, f=function: f(a, b),
            )
        # Integers as numbers: many ties.
        if op_type in ("Max", "Min"):
            for left, right in PAIRS[:6]:
                yield Case(
                    f"{op_type.lower()}_ties_{shape_name(left)}_{shape_name(right)}",
                    op_type=op_type,
                    inputs=[data("A", left, levels=2), data("B", right, levels=2)],
                    torch=lambda a, b, f=function: f(a, b),
                )


def remainders() -> Iterator[Case]:
    """With the sign of the divisor (torch.remainder), or of the dividend (torch.fmod)."""
    for fmod, function in ((0, torch.remainder), (1, torch.fmod)):
        for divisor in (1.5, -1.5):
            for left, right in PAIRS:
                yield Case(
                    f"mod_{fmod}_{divisor}_{shape_name(left)}_{shape_name(right)}",
                    op_type="Mod",
                    attributes={"fmod": fmod},
                    inputs=[data("A", left, scale=5.0), data("B", right, offset=divisor)],
                    torch=lambda a, b, f=function: f(a, b),
                )
        yield Case(
            f"mod_{fmod}_constant",
            op_type="Mod",
            attributes={"fmod": fmod},
            inputs=[data("A", (3, 4), scale=5.0), constant("B", 0.75)],
            torch=lambda a, b, f=function: f(a, b),
        )
        yield Case(
            f"mod_{fmod}_of_integers",
            nodes=[
                Node("Mod", ["A", "B"], ["R"], {"fmod": fmod}),
                Node("Cast", ["R"], ["C"], {"to": 1}),
                Node("Mul", ["X", "C"], ["Y"]),
            ],
            inputs=[data("X", (3, 4)), integer("A", (3, 4), 20, offset=-10), constant("B", 3)],
            torch=lambda x, a, b, f=function: x * f(a, b),
            counts_as="Mod",
        )


def powers() -> Iterator[Case]:
    for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5, 1.25):
        yield Case(
            f"pow_constant_{exponent}",
            op_type="Pow",
            inputs=[data("X", (2, 3), offset=1.5), constant("P", exponent)],
            torch=lambda x, p: x ** float(p),
        )
    for exponent in (0, 2, 3):
        yield Case(
            f"pow_integer_{exponent}",
            op_type="Pow",
            inputs=[data("X", (2, 3)), constant("P", exponent)],
            torch=lambda x, p: x ** int(p),
        )
    yield Case(
        "pow_negative_base",
        op_type="Pow",
        inputs=[data("X", values=[-2.0, -1.0, 0.5, 3.0]), constant("P", 3.0)],
        torch=lambda x, p: x**3.0,
    )
    yield Case(
        "pow_at_zero",
        op_type="Pow",
        inputs=[
            data("X", values=[0.0, 0.0, 2.0, 2.0]),
            data("P", values=[0.0, 2.0, 0.0, 1.0]),
        ],
        torch=torch.pow,
    )
    yield Case(
        "pow_of_a_number",
        op_type="Pow",
        inputs=[constant("B", 2.0), data("P", (2, 3), scale=2.0)],
        torch=lambda b, p: torch.pow(b, p),
    )
    yield Case(
        "pow_exponents_given",
        op_type="Pow",
        inputs=[data("X", (2, 3), offset=1.5), constant("P", [1.0, 2.0, 0.5])],
        torch=lambda x, p: torch.pow(x, p),
    )
    yield Case(
        "pow_broadcast_square",
        nodes=[Node("Pow", ["X", "P"], ["S"]), Node("Mul", ["S", "W"], ["Y"])],
        inputs=[data("X", (3,)), constant("P", 2.0), data("W", (2, 3))],
        torch=lambda x, p, w: x**2 * w,
    )


def variadic() -> Iterator[Case]:
    shapes = ((2, 3), (3,), (2, 1))
    functions = {
        "Sum": lambda *t: sum(t),
        "Mean": lambda *t: sum(t) / len(t),
        "Max": lambda *t: torch.stack(torch.broadcast_tensors(*t)).amax(0),
        "Min": lambda *t: torch.stack(torch.broadcast_tensors(*t)).amin(0),
    }
    for op_type, function in functions.items():
        for count in (1, 2, 3):
            yield Case(
                f"{op_type.lower()}_of_{count}",
                op_type=op_type,
                inputs=[data(f"X{i}", shapes[i]) for i in range(count)],
                torch=lambda *t, f=function: f(*t),
            )
        yield Case(
            f"{op_type.lower()}_of_four_equal_shapes",
            op_type=op_type,
            inputs=[data(f"X{i}", (2, 3), levels=3) for i in range(4)],
            torch=lambda *t, f=function: f(*t),
        )
        yield Case(
            f"{op_type.lower()}_same_twice",
            nodes=[Node(op_type, ["X", "X", "W"], ["Y"])],
            inputs=[data("X", (2, 3)), data("W", (3,))],
            torch=lambda x, w, f=function: f(x, x, w),
        )


def clips() -> Iterator[Case]:
    x = {"both": (-0.5, 0.25), "low": (-0.25, None), "high": (None, 0.5), "none": (None, None)}
    for name, (low, high) in x.items():
        inputs = [data("X", (3, 4))]
        inputs += [constant("L", low) if low is not None else None]
        inputs += [constant("H", high)] if high is not None else []
        yield Case(
            f"clip_{name}",
            op_type="Clip",
            inputs=inputs,
            torch=lambda x, *rest, low=low, high=high: x * 1
            if low is None and high is None
            else torch.clamp(x, low, high),
        )
    yield Case(
        "clip_at_bounds",
        op_type="Clip",
        inputs=[
            data("X", values=[-2.0, -1.0, 0.0, 1.0, 2.0]),
            constant("L", -1.0),
            constant("H", 1.0),
        ],
        torch=lambda x, low, high: torch.clamp(x, -1.0, 1.0),
    )
    yield Case(
        "clip_relu6_at_bounds",
        op_type="Clip",
        inputs=[
            data("X", values=[-2.0, 0.0, 3.0, 6.0, 7.0]),
            constant("L", 0.0),
            constant("H", 6.0),
        ],
        torch=lambda x, low, high: torch.nn.functional.relu6(x),
    )
    for name, given in {"low": "ML", "high": "LM", "both": "MM"}.items():
        yield Case(
            f"clip_trained_{name}",
            nodes=[
                Node("Neg", ["A"], ["L"]),
                Node("Abs", ["B"], ["H"]),
                Node("Clip", ["X", "L", "H"], ["Y"]),
            ],
            inputs=[
                data("X", (3, 4), scale=2.0),
                data("A", offset=0.5, scale=0.25) if given[0] == "M" else constant("A", 0.75),
                data("B", offset=0.5, scale=0.25) if given[1] == "M" else constant("B", 0.75),
            ],
            torch=lambda x, a, b: torch.clamp(x, -a, b.abs()),
            counts_as="Clip",
        )
    yield Case(
        "clip_opset6_attributes",
        op_type="Clip",
        opset=6,
        attributes={"min": -0.5, "max": 0.5},
        inputs=[data("X", (3, 4))],
        torch=lambda x: torch.clamp(x, -0.5, 0.5),
    )


def selections() -> Iterator[Case]:
    shapes = (
        ((2, 3), (2, 3), (2, 3)),
        ((2, 3), (3,), ()),
        ((3,), (2, 3), (2, 1)),
        ((2, 1, 1), (3, 1), (1, 4)),
        ((), (2, 3), (2, 3)),
        ((2, 3), (2, 3), (1, 3)),
    )
    for condition, left, right in shapes:
        yield Case(
            f"where_{'_'.join(map(shape_name, (condition, left, right)))}",
            nodes=[
                Node("Cast", ["C"], ["B"], {"to": 9}),
                Node("Where", ["B", "L", "R"], ["Y"]),
            ],
            inputs=[integer("C", condition, 2), data("L", left), data("R", right)],
            torch=lambda c, left, right: torch.where(c.bool(), left, right),
            counts_as="Where",
        )
    comparisons = {
        "Greater": torch.gt,
        "Less": torch.lt,
        "GreaterOrEqual": torch.ge,
        "LessOrEqual": torch.le,
        "Equal": torch.eq,
    }
    for op_type, function in comparisons.items():
        yield Case(
            f"where_{op_type.lower()}",
            nodes=[Node(op_type, ["A", "B"], ["C"]), Node("Where", ["C", "A", "Z"], ["Y"])],
            inputs=[data("A", (2, 3), levels=3), data("B", (3,), levels=3), constant("Z", 0.0)],
            torch=lambda a, b, z, f=function: torch.where(f(a, b), a, torch.zeros_like(a)),
            counts_as="Where",
        )


def repeated() -> Iterator[Case]:
    """One tensor as both operands."""
    functions = {
        "Add": torch.add,
        "Sub": torch.sub,
        "Mul": torch.mul,
        "Div": torch.div,
        "Pow": torch.pow,
        "Max": torch.maximum,
        "Min": torch.minimum,
    }
    for op_type, function in functions.items():
        yield Case(
            f"{op_type.lower()}_with_itself",
            nodes=[Node(op_type, ["X", "X"], ["Y"])],
            inputs=[data("X", (2, 3), offset=1.5)],
            torch=lambda x, f=function: f(x, x),
        )
    yield Case(
        "used_by_many",
        nodes=[
            Node("Exp", ["X"], ["E"]),
            Node("Mul", ["X", "E"], ["M"]),
            Node("Sub", ["M", "X"], ["S"]),
            Node("Div", ["S", "E"], ["Y"]),
        ],
        inputs=[data("X", (2, 3))],
        torch=lambda x: (x * torch.exp(x) - x) / torch.exp(x),
    )
