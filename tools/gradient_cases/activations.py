"""Activation functions, as single operators and as the chains that exporters write."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from gradient_cases.framework import Case, Node, constant, data, exported, f32

SHAPES = ((7,), (2, 3), (2, 3, 4), (1, 2, 3, 2), (2, 1, 2, 1, 3))


def cases() -> Iterator[Case]:
    yield from plain()
    yield from with_attributes()
    yield from slopes()
    yield from softmaxes()
    yield from chains()
    yield from modules()


def plain() -> Iterator[Case]:
    """At several shapes; the spread reaches every branch."""
    functions = {
        "Relu": (torch.relu, "", 1.0),
        "Sigmoid": (torch.sigmoid, "", 3.0),
        "Tanh": (torch.tanh, "", 2.0),
        "Softplus": (F.softplus, "", 6.0),
        "Softsign": (F.softsign, "", 4.0),
        "Selu": (torch.selu, "", 3.0),
        "HardSwish": (F.hardswish, "", 5.0),
        "Gelu": (F.gelu, "ai.monet", 3.0),
        "Silu": (F.silu, "ai.monet", 5.0),
        "Mish": (F.mish, "ai.monet", 5.0),
    }
    for op_type, (function, domain, scale) in functions.items():
        for i, shape in enumerate(SHAPES):
            yield Case(
                f"{op_type.lower()}_{i}",
                op_type=op_type,
                domain=domain,
                inputs=[data("X", shape, scale=scale)],
                torch=lambda x, f=function: f(x),
            )
    # Far from zero, where a careless exponential overflows.
    for op_type in ("Sigmoid", "Tanh", "Silu", "Mish", "Gelu", "Softsign"):
        function, domain, _ = functions[op_type]
        yield Case(
            f"{op_type.lower()}_far",
            op_type=op_type,
            domain=domain,
            inputs=[data("X", values=[-800.0, -40.0, -6.5, 0.0, 6.5, 19.0])],
            torch=lambda x, f=function: f(x),
        )
    # Exactly at kinks.
    kinks = {
        "Relu": torch.relu,
        "HardSwish": F.hardswish,
        "Abs": torch.abs,
        "HardSigmoid": None,
        "Clip": None,
    }
    for op_type, function in kinks.items():
        if function is None:
            continue
        yield Case(
            f"{op_type.lower()}_kinks",
            op_type=op_type,
            inputs=[data("X", values=[-3.0, -0.0, 0.0, 3.0, 1.0, -1.0])],
            torch=lambda x, f=function: f(x),
        )


def with_attributes() -> Iterator[Case]:
    shape = (3, 5)
    for alpha in (0.0, 0.25, 1.5, -0.5):
        yield Case(
            f"leakyrelu_{alpha}",
            op_type="LeakyRelu",
            attributes={"alpha": alpha},
            inputs=[data("X", shape)],
            torch=lambda x, a=alpha: F.leaky_relu(x, a),
        )
        yield Case(
            f"thresholdedrelu_{alpha}",
            op_type="ThresholdedRelu",
            attributes={"alpha": alpha},
            inputs=[data("X", shape, scale=2.0)],
            torch=lambda x, a=alpha: F.threshold(x, a, 0.0),
        )
    yield Case(
        "leakyrelu_default",
        op_type="LeakyRelu",
        inputs=[data("X", shape)],
        torch=lambda x: F.leaky_relu(x, 0.01),
    )
    for alpha in (0.5, 1.0, 2.0):
        yield Case(
            f"elu_{alpha}",
            op_type="Elu",
            attributes={"alpha": alpha},
            inputs=[data("X", shape, scale=3.0)],
            torch=lambda x, a=alpha: F.elu(x, a),
        )
        yield Case(
            f"celu_{alpha}",
            op_type="Celu",
            attributes={"alpha": alpha},
            inputs=[data("X", shape, scale=3.0)],
            torch=lambda x, a=alpha: F.celu(x, a),
        )
    yield Case(
        "shrink_soft",
        op_type="Shrink",
        attributes={"lambd": 0.5, "bias": 0.5},
        inputs=[data("X", shape, scale=2.0)],
        torch=lambda x: F.softshrink(x, 0.5),
    )
    yield Case(
        "shrink_hard",
        op_type="Shrink",
        attributes={"lambd": 0.25},
        inputs=[data("X", shape)],
        torch=lambda x: F.hardshrink(x, 0.25),
    )
    yield Case(
        "elu_falling",
        op_type="Elu",
        attributes={"alpha": -0.5},
        inputs=[data("X", shape, scale=3.0)],
        torch=lambda x: torch.where(x > 0, x, -0.5 * torch.expm1(x)),
    )
    yield Case(
        "selu_attributes",
        op_type="Selu",
        attributes={"alpha": 1.5, "gamma": 0.75},
        inputs=[data("X", shape, scale=2.0)],
        torch=lambda x: 0.75 * torch.where(x > 0, x, 1.5 * torch.expm1(x)),
    )
    for alpha, beta in ((0.25, 0.5), (0.125, 0.375), (-0.5, 0.25)):
        yield Case(
            f"hardsigmoid_{alpha}_{beta}",
            op_type="HardSigmoid",
            attributes={"alpha": alpha, "beta": beta},
            inputs=[data("X", shape, scale=4.0)],
            torch=lambda x, a=alpha, b=beta: torch.clamp(a * x + b, 0.0, 1.0),
        )
    for i, test_shape in enumerate(SHAPES):
        yield Case(
            f"gelu_tanh_{i}",
            op_type="Gelu",
            domain="ai.monet",
            attributes={"approximate": "tanh"},
            inputs=[data("X", test_shape, scale=3.0)],
            torch=lambda x: F.gelu(x, approximate="tanh"),
        )
    yield Case(
        "gelu_opset20",
        op_type="Gelu",
        domain="ai.monet",
        attributes={"approximate": "none"},
        inputs=[data("X", shape, scale=3.0)],
        torch=F.gelu,
    )
    for alpha in (1.0, 1.75):
        yield Case(
            f"silu_alpha_{alpha}",
            op_type="Silu",
            domain="ai.monet",
            attributes={"alpha": alpha},
            inputs=[data("X", shape, scale=3.0)],
            torch=lambda x, a=alpha: x * torch.sigmoid(a * x),
        )


def slopes() -> Iterator[Case]:
    """PRelu with every shape of slope."""
    x = (2, 3, 2, 4)
    for slope in ((), (1,), (3, 1, 1), (4,), (1, 3, 1, 1), (2, 3, 2, 4), (2, 1)):
        yield Case(
            f"prelu_{'x'.join(map(str, slope)) or 'scalar'}",
            op_type="PRelu",
            inputs=[data("X", x), data("S", slope, offset=0.25, scale=0.5)],
            torch=lambda x, s: torch.where(x > 0, x, s * x),
        )
    for shape in ((3, 4), (5,), (2, 4, 3)):
        yield Case(
            f"prelu_of_{len(shape)}_axes",
            op_type="PRelu",
            inputs=[data("X", shape), data("S", (shape[-1],), offset=0.25)],
            torch=lambda x, s: torch.where(x > 0, x, s * x),
        )


def softmaxes() -> Iterator[Case]:
    functions = {"Softmax": torch.softmax, "LogSoftmax": torch.log_softmax}
    for op_type, function in functions.items():
        for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 2, 2), (1, 1), (2, 1, 3)):
            for axis in range(-len(shape), len(shape)):
                yield Case(
                    f"{op_type.lower()}_{'x'.join(map(str, shape))}_axis{axis}",
                    op_type=op_type,
                    attributes={"axis": axis},
                    inputs=[data("X", shape, scale=2.0)],
                    torch=lambda x, f=function, a=axis: f(x, a),
                )
        yield Case(
            f"{op_type.lower()}_default_axis",
            op_type=op_type,
            inputs=[data("X", (2, 3, 4))],
            torch=lambda x, f=function: f(x, -1),
        )
        yield Case(
            f"{op_type.lower()}_large",
            op_type=op_type,
            inputs=[data("X", (2, 5), scale=300.0, offset=700.0)],
            torch=lambda x, f=function: f(x, -1),
        )
        # Before operator set 13 all axes from `axis` on were one.
        for axis in (0, 1, 2, 3, -1, -2):
            yield Case(
                f"{op_type.lower()}_opset11_axis{axis}",
                op_type=op_type,
                opset=11,
                attributes={"axis": axis},
                inputs=[data("X", (2, 3, 2, 2))],
                torch=lambda x, f=function, a=axis % 4: f(
                    x.reshape(math.prod(x.shape[:a]), -1), -1
                ).reshape(x.shape),
            )
        yield Case(
            f"{op_type.lower()}_opset9_default",
            op_type=op_type,
            opset=9,
            inputs=[data("X", (2, 3, 4))],
            torch=lambda x, f=function: f(x.reshape(2, 12), -1).reshape(x.shape),
        )


def chain(name: str, text: str, function, **numbers: float) -> Case:
    """A chain written as lines "Y = Op A B"; `numbers` are scalar constants."""
    nodes = []
    for line in text.strip().splitlines():
        output, _, call = line.strip().partition(" = ")
        op_type, *operands = call.split()
        nodes.append(Node(op_type, operands, [output]))
    inputs = [data("X", (2, 3, 5), scale=3.0)]
    inputs += [constant(key, value) for key, value in numbers.items()]
    return Case(
        f"chain_{name}",
        nodes=nodes,
        inputs=inputs,
        torch=lambda x, *rest: function(x),
        counts_as="chain of an activation",
    )


def chains() -> Iterator[Case]:
    """Constants are single precision in the file; what is recognised is exact again."""
    half = {"half": 0.5, "one": 1.0}
    root = {"root": math.sqrt(2.0)}
    yield chain(
        "gelu_erf_exported",
        """D = Div X root
        E = Erf D
        A = Add E one
        M = Mul X A
        Y = Mul M half""",
        F.gelu,
        **half,
        **root,
    )
    yield chain(
        "gelu_erf_inverse_root",
        """D = Mul inverse X
        E = Erf D
        A = Add one E
        H = Mul half X
        Y = Mul H A""",
        F.gelu,
        **half,
        inverse=math.sqrt(0.5),
    )
    yield chain(
        "gelu_erf_half_first",
        """D = Div X root
        E = Erf D
        A = Add E one
        H = Mul A half
        Y = Mul X H""",
        F.gelu,
        **half,
        **root,
    )
    gelu_tanh = {"three": 3.0, "cube": 0.044715, "k": math.sqrt(2 / math.pi)}
    yield chain(
        "gelu_tanh_exported",
        """H = Mul X half
        P = Pow X three
        C = Mul P cube
        S = Add X C
        K = Mul S k
        T = Tanh K
        A = Add T one
        Y = Mul H A""",
        lambda x: F.gelu(x, approximate="tanh"),
        **half,
        **gelu_tanh,
    )
    yield chain(
        "gelu_tanh_factored",
        """Q = Mul X X
        C = Mul Q cube
        B = Add C one
        L = Mul X B
        K = Mul k L
        T = Tanh K
        A = Add one T
        M = Mul X A
        Y = Mul M half""",
        lambda x: F.gelu(x, approximate="tanh"),
        **half,
        **{key: gelu_tanh[key] for key in ("cube", "k")},
    )
    yield chain("silu", "S = Sigmoid X\nY = Mul X S", F.silu)
    yield chain("silu_reversed", "S = Sigmoid X\nY = Mul S X", F.silu)
    scaled = f32(1.702)
    yield chain(
        "quick_gelu",
        "A = Mul X a\nS = Sigmoid A\nY = Mul X S",
        lambda x: x * torch.sigmoid(scaled * x),
        a=1.702,
    )
    yield chain("mish", "S = Softplus X\nT = Tanh S\nY = Mul X T", F.mish)
    yield chain(
        "mish_by_logarithm",
        """E = Exp X
        A = Add E one
        L = Log A
        T = Tanh L
        Y = Mul T X""",
        F.mish,
        one=1.0,
    )
    yield chain(
        "hardswish_relu6",
        """A = Add X three
        C = Clip A zero six
        M = Mul X C
        Y = Div M six""",
        F.hardswish,
        three=3.0,
        zero=0.0,
        six=6.0,
    )
    yield chain(
        "hardswish_scaled_gate",
        """A = Add X three
        C = Clip A zero six
        G = Div C six
        Y = Mul G X""",
        F.hardswish,
        three=3.0,
        zero=0.0,
        six=6.0,
    )
    # Looks alike, but is not: must stay as it is.
    yield chain(
        "twice_a_gate",
        "S = Sigmoid X\nM = Mul X S\nY = Mul M two",
        lambda x: 2 * F.silu(x),
        two=2.0,
    )
    yield chain(
        "gated_by_shifted",
        "A = Add X one\nS = Sigmoid A\nY = Mul X S",
        lambda x: x * torch.sigmoid(x + 1),
        one=1.0,
    )
    yield chain(
        "erf_of_another_width",
        """D = Div X two
        E = Erf D
        A = Add E one
        M = Mul X A
        Y = Mul M half""",
        lambda x: 0.5 * x * (1 + torch.erf(x / 2)),
        **half,
        two=2.0,
    )
    yield Case(
        "chain_gate_read_twice",
        nodes=[
            Node("Sigmoid", ["X"], ["S"]),
            Node("Mul", ["X", "S"], ["M"]),
            Node("Add", ["M", "S"], ["Y"]),
        ],
        inputs=[data("X", (2, 5), scale=3.0)],
        torch=lambda x: x * torch.sigmoid(x) + torch.sigmoid(x),
        counts_as="chain of an activation",
    )
    yield Case(
        "chain_swiglu",
        nodes=[
            Node("Sigmoid", ["G"], ["S"]),
            Node("Mul", ["G", "S"], ["M"]),
            Node("Mul", ["M", "U"], ["Y"]),
        ],
        inputs=[data("G", (2, 5), scale=3.0), data("U", (2, 5))],
        torch=lambda g, u: F.silu(g) * u,
        counts_as="chain of an activation",
    )


class Lambda(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def modules() -> Iterator[Case]:
    """As torch.onnx exports them, between two linear layers."""
    functions = {
        "gelu": F.gelu,
        "silu": F.silu,
        "mish": F.mish,
        "hardswish": F.hardswish,
        "hardsigmoid": F.hardsigmoid,
        "relu6": F.relu6,
        "softplus": F.softplus,
        "selu": F.selu,
        "logsigmoid": F.logsigmoid,
        "tanhshrink": F.tanhshrink,
    }
    for name, function in functions.items():
        yield exported(
            f"exported_{name}",
            nn.Sequential(nn.Linear(4, 6), Lambda(function), nn.Linear(6, 3)),
            [data("input", (2, 4), scale=3.0)],
        )
