"""Element-wise operators of one operand and of several, with every kind of broadcasting."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradient_cases.framework import Case, Node, constant, data, graph, in_turn, integer, op

# Left and right operand; results of 1 to 5 axes.
PAIRS = (((4,), (4,)), ((2, 3), (2, 3)), ((2, 3, 4), (4,)), ((3,), (2, 4, 3)), ((2, 1, 4), (3, 1)),
         ((1, 3, 1), (2, 3, 4)), ((2, 3), ()), ((), (3, 2)), ((), ()), ((1,), (5,)),
         ((2, 3, 1, 2), (3, 4, 1)), ((1, 1), (1, 1)), ((2, 1, 2, 1, 2), (3, 1, 2, 1)))


def shape_name(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def cases() -> Iterator[Case]:
    return in_turn(unary, binary, remainders, powers, variadic, clips, selections, repeated)


def unary() -> Iterator[Case]:
    functions: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
        "Abs": (torch.abs, 0.0, 1.0), "Acos": (torch.acos, 0.0, 0.9), "Acosh": (torch.acosh, 2.0, 0.8),
        "Asin": (torch.asin, 0.0, 0.9), "Asinh": (torch.asinh, 0.0, 3.0), "Atan": (torch.atan, 0.0, 3.0),
        "Atanh": (torch.atanh, 0.0, 0.9), "Cos": (torch.cos, 0.0, 4.0), "Cosh": (torch.cosh, 0.0, 2.0),
        "Erf": (torch.erf, 0.0, 2.0), "Exp": (torch.exp, 0.0, 2.0), "Log": (torch.log, 1.5, 1.0),
        "Neg": (torch.neg, 0.0, 1.0), "Reciprocal": (torch.reciprocal, 1.5, 1.0), "Sin": (torch.sin, 0.0, 4.0),
        "Sinh": (torch.sinh, 0.0, 2.0), "Sqrt": (torch.sqrt, 1.5, 1.0), "Tan": (torch.tan, 0.0, 1.2)}
    for op_type, (function, offset, scale) in functions.items():
        for shape in ((5,), (2, 3, 2), ()):
            yield op(f"{op_type.lower()}_{shape_name(shape)}", op_type,
                     [data("X", shape, offset=offset, scale=scale)], function)
    steps = {"Ceil": torch.ceil, "Floor": torch.floor, "Round": torch.round, "Sign": torch.sign}
    for op_type, function in steps.items():
        yield graph(f"{op_type.lower()}_stops_the_gradient", [Node(op_type, ["X"], ["S"]), "Y = Mul S X"],
                    [data("X", (3, 4), scale=3.0)], lambda x: function(x) * x)
    yield op("abs_zero", "Abs", [data("X", values=[-1.0, 0.0, 2.0])], torch.abs)


def binary() -> Iterator[Case]:
    functions = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow,
                 "Max": torch.maximum, "Min": torch.minimum}
    for op_type, function in functions.items():
        offset = 1.5 if op_type in ("Div", "Pow") else 0.0
        for left, right in PAIRS:
            yield op(f"{op_type.lower()}_{shape_name(left)}_{shape_name(right)}", op_type,
                     [data("A", left, offset=offset), data("B", right, offset=offset)], function)
        # Integral numbers, with many ties.
        if op_type in ("Max", "Min"):
            for left, right in PAIRS[:6]:
                yield op(f"{op_type.lower()}_ties_{shape_name(left)}_{shape_name(right)}", op_type,
                         [data("A", left, levels=2), data("B", right, levels=2)], function)


def remainders() -> Iterator[Case]:
    """Remainder with the sign of the divisor (torch.remainder), or of the dividend (torch.fmod)."""
    for fmod, function in ((0, torch.remainder), (1, torch.fmod)):
        for divisor in (1.5, -1.5):
            for left, right in PAIRS:
                yield op(f"mod_{fmod}_{divisor}_{shape_name(left)}_{shape_name(right)}", "Mod",
                         [data("A", left, scale=5.0), data("B", right, offset=divisor)], function, fmod=fmod)
        yield op(f"mod_{fmod}_constant", "Mod", [data("A", (3, 4), scale=5.0), constant("B", 0.75)], function,
                 fmod=fmod)
        yield graph(f"mod_{fmod}_of_integers",
                    [Node("Mod", ["A", "B"], ["R"], {"fmod": fmod}), "C = Cast R to=1", "Y = Mul X C"],
                    [data("X", (3, 4)), integer("A", (3, 4), 20, offset=-10), constant("B", 3)],
                    lambda x, a, b: x * function(a, b), counts_as="Mod")


def powers() -> Iterator[Case]:
    for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5, 1.25):
        yield op(f"pow_constant_{exponent}", "Pow", [data("X", (2, 3), offset=1.5), constant("P", exponent)],
                 lambda x, p: x ** float(p))
    for exponent in (0, 2, 3):
        yield op(f"pow_integer_{exponent}", "Pow", [data("X", (2, 3)), constant("P", exponent)],
                 lambda x, p: x ** int(p))
    yield op("pow_negative_base", "Pow", [data("X", values=[-2.0, -1.0, 0.5, 3.0]), constant("P", 3.0)],
             lambda x, p: x**3.0)
    yield op("pow_at_zero", "Pow",
             [data("X", values=[0.0, 0.0, 2.0, 2.0]), data("P", values=[0.0, 2.0, 0.0, 1.0])], torch.pow)
    yield op("pow_of_a_number", "Pow", [constant("B", 2.0), data("P", (2, 3), scale=2.0)], torch.pow)
    yield op("pow_exponents_given", "Pow", [data("X", (2, 3), offset=1.5), constant("P", [1.0, 2.0, 0.5])], torch.pow)
    yield graph("pow_broadcast_square", ["S = Pow X P", "Y = Mul S W"],
                [data("X", (3,)), constant("P", 2.0), data("W", (2, 3))], lambda x, p, w: x**2 * w)


def variadic() -> Iterator[Case]:
    shapes = ((2, 3), (3,), (2, 1))
    functions = {"Sum": lambda *t: sum(t), "Mean": lambda *t: sum(t) / len(t),
                 "Max": lambda *t: torch.stack(torch.broadcast_tensors(*t)).amax(0),
                 "Min": lambda *t: torch.stack(torch.broadcast_tensors(*t)).amin(0)}
    for op_type, function in functions.items():
        for count in (1, 2, 3):
            yield op(f"{op_type.lower()}_of_{count}", op_type,
                     [data(f"X{i}", shapes[i]) for i in range(count)], lambda *t: function(*t))
        yield op(f"{op_type.lower()}_of_four_equal_shapes", op_type,
                 [data(f"X{i}", (2, 3), levels=3) for i in range(4)], lambda *t: function(*t))
        yield graph(f"{op_type.lower()}_same_twice", [Node(op_type, ["X", "X", "W"], ["Y"])],
                    [data("X", (2, 3)), data("W", (3,))], lambda x, w: function(x, x, w))


def clips() -> Iterator[Case]:
    x = {"both": (-0.5, 0.25), "low": (-0.25, None), "high": (None, 0.5), "none": (None, None)}
    for name, (low, high) in x.items():
        inputs = [data("X", (3, 4))]
        inputs += [constant("L", low) if low is not None else None]
        inputs += [constant("H", high)] if high is not None else []
        yield op(f"clip_{name}", "Clip", inputs,
                 lambda x, *rest, low=low, high=high: x * 1 if low is None and high is None else torch.clamp(
                     x, low, high))
    yield op("clip_at_bounds", "Clip",
             [data("X", values=[-2.0, -1.0, 0.0, 1.0, 2.0]), constant("L", -1.0), constant("H", 1.0)],
             lambda x, low, high: torch.clamp(x, -1.0, 1.0))
    yield op("clip_relu6_at_bounds", "Clip",
             [data("X", values=[-2.0, 0.0, 3.0, 6.0, 7.0]), constant("L", 0.0), constant("H", 6.0)],
             lambda x, low, high: torch.nn.functional.relu6(x))
    for name, given in {"low": "ML", "high": "LM", "both": "MM"}.items():
        yield graph(f"clip_trained_{name}", ["L = Neg A", "H = Abs B", "Y = Clip X L H"],
                    [data("X", (3, 4), scale=2.0),
                     data("A", offset=0.5, scale=0.25) if given[0] == "M" else constant("A", 0.75),
                     data("B", offset=0.5, scale=0.25) if given[1] == "M" else constant("B", 0.75)],
                    lambda x, a, b: torch.clamp(x, -a, b.abs()), counts_as="Clip")
    yield op("clip_opset6_attributes", "Clip", [data("X", (3, 4))], lambda x: torch.clamp(x, -0.5, 0.5),
             opset=6, min=-0.5, max=0.5)


def selections() -> Iterator[Case]:
    shapes = (((2, 3), (2, 3), (2, 3)), ((2, 3), (3,), ()), ((3,), (2, 3), (2, 1)),
              ((2, 1, 1), (3, 1), (1, 4)), ((), (2, 3), (2, 3)), ((2, 3), (2, 3), (1, 3)))
    for condition, left, right in shapes:
        yield graph(f"where_{'_'.join(map(shape_name, (condition, left, right)))}",
                    ["B = Cast C to=9", "Y = Where B L R"],
                    [integer("C", condition, 2), data("L", left), data("R", right)],
                    lambda c, left, right: torch.where(c.bool(), left, right), counts_as="Where")
    comparisons = {"Greater": torch.gt, "Less": torch.lt, "GreaterOrEqual": torch.ge, "LessOrEqual": torch.le,
                   "Equal": torch.eq}
    for op_type, function in comparisons.items():
        yield graph(f"where_{op_type.lower()}", [Node(op_type, ["A", "B"], ["C"]), "Y = Where C A Z"],
                    [data("A", (2, 3), levels=3), data("B", (3,), levels=3), constant("Z", 0.0)],
                    lambda a, b, z: torch.where(function(a, b), a, torch.zeros_like(a)), counts_as="Where")


def repeated() -> Iterator[Case]:
    """One tensor as both operands."""
    functions = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow,
                 "Max": torch.maximum, "Min": torch.minimum}
    for op_type, function in functions.items():
        yield graph(f"{op_type.lower()}_with_itself", [Node(op_type, ["X", "X"], ["Y"])],
                    [data("X", (2, 3), offset=1.5)], lambda x: function(x, x))
    yield graph("used_by_many", ["E = Exp X", "M = Mul X E", "S = Sub M X", "Y = Div S E"],
                [data("X", (2, 3))], lambda x: (x * torch.exp(x) - x) / torch.exp(x))
