"""Activation functions, as single operators and as exported chains."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from gradient_cases.framework import Case, constant, data, exported, f32, graph, in_turn, op, short
from net import function_net

SHAPES = ((7,), (2, 3), (2, 3, 4), (1, 2, 3, 2), (2, 1, 2, 1, 3))


def cases() -> Iterator[Case]:
    return in_turn(plain, with_attributes, slopes, softmaxes, chains, modules)


def plain() -> Iterator[Case]:
    """Makes cases of several shapes; the spread of the numbers reaches every branch."""
    functions = {"Relu": (torch.relu, "", 1.0), "Sigmoid": (torch.sigmoid, "", 3.0), "Tanh": (torch.tanh, "", 2.0),
                 "Softplus": (F.softplus, "", 6.0), "Softsign": (F.softsign, "", 4.0), "Selu": (torch.selu, "", 3.0),
                 "HardSwish": (F.hardswish, "", 5.0), "Gelu": (F.gelu, "ai.monet", 3.0),
                 "Silu": (F.silu, "ai.monet", 5.0), "Mish": (F.mish, "ai.monet", 5.0)}
    for op_type, (function, domain, scale) in functions.items():
        for i, shape in enumerate(SHAPES):
            yield op(f"{op_type.lower()}_{i}", op_type, [data("X", shape, scale=scale)], function, domain=domain)
    # Numbers far from zero, where a careless exponential overflows.
    for op_type in ("Sigmoid", "Tanh", "Silu", "Mish", "Gelu", "Softsign"):
        function, domain, _ = functions[op_type]
        yield op(f"{op_type.lower()}_far", op_type, [data("X", values=[-800.0, -40.0, -6.5, 0.0, 6.5, 19.0])],
                 function, domain=domain)
    # Numbers exactly at kinks.
    kinks = {"Relu": torch.relu, "HardSwish": F.hardswish, "Abs": torch.abs, "HardSigmoid": None, "Clip": None}
    for op_type, function in kinks.items():
        if function is None:
            continue
        yield op(f"{op_type.lower()}_kinks", op_type, [data("X", values=[-3.0, -0.0, 0.0, 3.0, 1.0, -1.0])], function)


def with_attributes() -> Iterator[Case]:
    shape = (3, 5)
    for alpha in (0.0, 0.25, 1.5, -0.5):
        yield op(f"leakyrelu_{alpha}", "LeakyRelu", [data("X", shape)], lambda x: F.leaky_relu(x, alpha), alpha=alpha)
        yield op(f"thresholdedrelu_{alpha}", "ThresholdedRelu", [data("X", shape, scale=2.0)],
                 lambda x: F.threshold(x, alpha, 0.0), alpha=alpha)
    yield op("leakyrelu_default", "LeakyRelu", [data("X", shape)], lambda x: F.leaky_relu(x, 0.01))
    for alpha in (0.5, 1.0, 2.0):
        yield op(f"elu_{alpha}", "Elu", [data("X", shape, scale=3.0)], lambda x: F.elu(x, alpha), alpha=alpha)
        yield op(f"celu_{alpha}", "Celu", [data("X", shape, scale=3.0)], lambda x: F.celu(x, alpha), alpha=alpha)
    yield op("shrink_soft", "Shrink", [data("X", shape, scale=2.0)], lambda x: F.softshrink(x, 0.5),
             lambd=0.5, bias=0.5)
    yield op("shrink_hard", "Shrink", [data("X", shape)], lambda x: F.hardshrink(x, 0.25), lambd=0.25)
    yield op("elu_falling", "Elu", [data("X", shape, scale=3.0)],
             lambda x: torch.where(x > 0, x, -0.5 * torch.expm1(x)), alpha=-0.5)
    yield op("selu_attributes", "Selu", [data("X", shape, scale=2.0)],
             lambda x: 0.75 * torch.where(x > 0, x, 1.5 * torch.expm1(x)), alpha=1.5, gamma=0.75)
    for alpha, beta in ((0.25, 0.5), (0.125, 0.375), (-0.5, 0.25)):
        yield op(f"hardsigmoid_{alpha}_{beta}", "HardSigmoid", [data("X", shape, scale=4.0)],
                 lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0), alpha=alpha, beta=beta)
    for i, test_shape in enumerate(SHAPES):
        yield op(f"gelu_tanh_{i}", "Gelu", [data("X", test_shape, scale=3.0)],
                 lambda x: F.gelu(x, approximate="tanh"), domain="ai.monet", approximate="tanh")
    yield op("gelu_opset20", "Gelu", [data("X", shape, scale=3.0)], F.gelu, domain="ai.monet", approximate="none")
    for alpha in (1.0, 1.75):
        yield op(f"silu_alpha_{alpha}", "Silu", [data("X", shape, scale=3.0)],
                 lambda x: x * torch.sigmoid(alpha * x), domain="ai.monet", alpha=alpha)


def slopes() -> Iterator[Case]:
    """PRelu with every shape of slope."""
    x = (2, 3, 2, 4)
    for slope in ((), (1,), (3, 1, 1), (4,), (1, 3, 1, 1), (2, 3, 2, 4), (2, 1)):
        yield op(f"prelu_{'x'.join(map(str, slope)) or 'scalar'}", "PRelu",
                 [data("X", x), data("S", slope, offset=0.25, scale=0.5)], lambda x, s: torch.where(x > 0, x, s * x))
    for shape in ((3, 4), (5,), (2, 4, 3)):
        yield op(f"prelu_of_{len(shape)}_axes", "PRelu", [data("X", shape), data("S", (shape[-1],), offset=0.25)],
                 lambda x, s: torch.where(x > 0, x, s * x))


def softmaxes() -> Iterator[Case]:
    functions = {"Softmax": torch.softmax, "LogSoftmax": torch.log_softmax}
    for op_type, function in functions.items():
        for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 2, 2), (1, 1), (2, 1, 3)):
            for axis in range(-len(shape), len(shape)):
                yield op(f"{op_type.lower()}_{short(shape)}_axis{axis}", op_type,
                         [data("X", shape, scale=2.0)], lambda x: function(x, axis), axis=axis)
        yield op(f"{op_type.lower()}_default_axis", op_type, [data("X", (2, 3, 4))], lambda x: function(x, -1))
        yield op(f"{op_type.lower()}_large", op_type, [data("X", (2, 5), scale=300.0, offset=700.0)],
                 lambda x: function(x, -1))
        # Before operator set 13 all axes from `axis` on were one.
        for axis in (0, 1, 2, 3, -1, -2):
            yield op(f"{op_type.lower()}_opset11_axis{axis}", op_type, [data("X", (2, 3, 2, 2))],
                     lambda x, f=function, a=axis % 4: f(x.reshape(math.prod(x.shape[:a]), -1), -1).reshape(
                         x.shape), opset=11, axis=axis)
        yield op(f"{op_type.lower()}_opset9_default", op_type, [data("X", (2, 3, 4))],
                 lambda x: function(x.reshape(2, 12), -1).reshape(x.shape), opset=9)


def chain(name: str, lines: list[str], function, **numbers: float) -> Case:
    """`numbers` are scalar constants."""
    inputs = [data("X", (2, 3, 5), scale=3.0)]
    inputs += [constant(key, value) for key, value in numbers.items()]
    return graph(f"chain_{name}", lines, inputs, lambda x, *rest: function(x), counts_as="chain of an activation")


def chains() -> Iterator[Case]:
    """Constants are single precision in the file; recognised operators are exact."""
    half = {"half": 0.5, "one": 1.0}
    root = {"root": math.sqrt(2.0)}
    yield chain("gelu_erf_exported", ["D = Div X root", "E = Erf D", "A = Add E one", "M = Mul X A", "Y = Mul M half"],
                F.gelu, **half, **root)
    yield chain("gelu_erf_inverse_root",
                ["D = Mul inverse X", "E = Erf D", "A = Add one E", "H = Mul half X", "Y = Mul H A"], F.gelu,
                **half, inverse=math.sqrt(0.5))
    yield chain("gelu_erf_half_first",
                ["D = Div X root", "E = Erf D", "A = Add E one", "H = Mul A half", "Y = Mul X H"], F.gelu,
                **half, **root)
    gelu_tanh = {"three": 3.0, "cube": 0.044715, "k": math.sqrt(2 / math.pi)}
    yield chain("gelu_tanh_exported",
                ["H = Mul X half", "P = Pow X three", "C = Mul P cube", "S = Add X C", "K = Mul S k", "T = Tanh K",
                 "A = Add T one", "Y = Mul H A"], lambda x: F.gelu(x, approximate="tanh"), **half, **gelu_tanh)
    yield chain("gelu_tanh_factored",
                ["Q = Mul X X", "C = Mul Q cube", "B = Add C one", "L = Mul X B", "K = Mul k L", "T = Tanh K",
                 "A = Add one T", "M = Mul X A", "Y = Mul M half"], lambda x: F.gelu(x, approximate="tanh"),
                **half, **{key: gelu_tanh[key] for key in ("cube", "k")})
    yield chain("silu", ["S = Sigmoid X", "Y = Mul X S"], F.silu)
    yield chain("silu_reversed", ["S = Sigmoid X", "Y = Mul S X"], F.silu)
    scaled = f32(1.702)
    yield chain("quick_gelu", ["A = Mul X a", "S = Sigmoid A", "Y = Mul X S"],
                lambda x: x * torch.sigmoid(scaled * x), a=1.702)
    yield chain("mish", ["S = Softplus X", "T = Tanh S", "Y = Mul X T"], F.mish)
    yield chain("mish_by_logarithm", ["E = Exp X", "A = Add E one", "L = Log A", "T = Tanh L", "Y = Mul T X"],
                F.mish, one=1.0)
    yield chain("hardswish_relu6", ["A = Add X three", "C = Clip A zero six", "M = Mul X C", "Y = Div M six"],
                F.hardswish, three=3.0, zero=0.0, six=6.0)
    yield chain("hardswish_scaled_gate", ["A = Add X three", "C = Clip A zero six", "G = Div C six", "Y = Mul G X"],
                F.hardswish, three=3.0, zero=0.0, six=6.0)
    # Similar chains of other functions, which must not be recognised.
    yield chain("twice_a_gate", ["S = Sigmoid X", "M = Mul X S", "Y = Mul M two"], lambda x: 2 * F.silu(x), two=2.0)
    yield chain("gated_by_shifted", ["A = Add X one", "S = Sigmoid A", "Y = Mul X S"],
                lambda x: x * torch.sigmoid(x + 1), one=1.0)
    yield chain("erf_of_another_width",
                ["D = Div X two", "E = Erf D", "A = Add E one", "M = Mul X A", "Y = Mul M half"],
                lambda x: 0.5 * x * (1 + torch.erf(x / 2)), **half, two=2.0)
    yield graph("chain_gate_read_twice", ["S = Sigmoid X", "M = Mul X S", "Y = Add M S"],
                [data("X", (2, 5), scale=3.0)], lambda x: x * torch.sigmoid(x) + torch.sigmoid(x),
                counts_as="chain of an activation")
    yield graph("chain_swiglu", ["S = Sigmoid G", "M = Mul G S", "Y = Mul M U"],
                [data("G", (2, 5), scale=3.0), data("U", (2, 5))], lambda g, u: F.silu(g) * u,
                counts_as="chain of an activation")


def modules() -> Iterator[Case]:
    """Activations as torch.onnx exports them, between two linear layers."""
    functions = {"gelu": F.gelu, "silu": F.silu, "mish": F.mish, "hardswish": F.hardswish,
                 "hardsigmoid": F.hardsigmoid, "relu6": F.relu6, "softplus": F.softplus, "selu": F.selu,
                 "logsigmoid": F.logsigmoid, "tanhshrink": F.tanhshrink}
    for name, function in functions.items():
        yield exported(f"exported_{name}", nn.Sequential(nn.Linear(4, 6), function_net(function), nn.Linear(6, 3)),
                       [data("input", (2, 4), scale=3.0)])
