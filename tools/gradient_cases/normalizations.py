"""Normalisations in training and inference mode, and their exported chains."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from gradient_cases.framework import (Case, Node, buffer, constant, data, exported, f32, graph, in_turn, op, short)
from net import Net, net

EPSILON = f32(1e-5)


def scale(name: str, shape: tuple[int, ...]):
    return data(name, shape, offset=1.0, scale=0.5)


def cases() -> Iterator[Case]:
    return in_turn(batch_norms, layer_norms, group_norms, lp_norms, rms_norms, chains, modules)


def batch_norms() -> Iterator[Case]:
    shapes = ((4, 3), (3, 2, 5), (2, 3, 4, 2), (2, 2, 3, 2, 2), (1, 2, 3, 3), (2, 1, 2, 2))
    for shape in shapes:
        channels = (shape[1],)
        name = "x".join(map(str, shape))
        inputs = [data("X", shape, scale=2.0), scale("S", channels), data("B", channels),
                  buffer("M", channels), buffer("V", channels, offset=1.0, scale=0.25)]
        for keep in (0.75, 0.875):
            yield op(f"batchnorm_training_{name}_{keep}", "BatchNormalization", inputs,
                     lambda x, s, b, m, v: (F.batch_norm(x, m, v, s, b, True, 1 - keep, EPSILON), m, v),
                     epsilon=EPSILON, momentum=keep, training_mode=1, outputs=3)
    # Cases with running statistics, as in fine-tuning.
    for shape in shapes:
        channels = (shape[1],)
        yield op(f"batchnorm_inference_{short(shape)}", "BatchNormalization",
                 [data("X", shape, scale=2.0), scale("S", channels), data("B", channels),
                  buffer("M", channels), buffer("V", channels, offset=1.0, scale=0.25)],
                 lambda x, s, b, m, v: F.batch_norm(x, m, v, s, b, False, 0.1, EPSILON), epsilon=EPSILON)
    yield graph("batchnorm_then_relu_twice",
                [Node("BatchNormalization", ["X", "S", "B", "M", "V"], ["N", "M1", "V1"],
                      {"training_mode": 1, "epsilon": EPSILON}), "R = Relu N", "Y = Add R X"],
                [data("X", (3, 2, 2, 2)), scale("S", (2,)), data("B", (2,)), buffer("M", (2,)),
                 buffer("V", (2,), offset=1.0, scale=0.25)],
                lambda x, s, b, m, v: torch.relu(F.batch_norm(x, m, v, s, b, True, 0.1, EPSILON)) + x,
                counts_as="BatchNormalization")


def layer_norms() -> Iterator[Case]:
    for shape in ((3, 4), (2, 3, 4), (2, 2, 3, 2), (5,), (1, 1, 3)):
        for axis in range(len(shape)):
            for bias in (True, False):
                tail = shape[axis:]
                inputs = [data("X", shape, scale=2.0), scale("S", tail)]
                inputs += [data("B", tail)] if bias else []
                yield op(f"layernorm_{short(shape)}_axis{axis}_{'bias' if bias else 'plain'}", "LayerNormalization",
                         inputs, lambda x, s, b=None, tail=tail: F.layer_norm(x, tail, s, b, EPSILON),
                         axis=axis if bias else axis - len(shape), epsilon=EPSILON)
    yield op("layernorm_frozen_scale", "LayerNormalization",
             [data("X", (2, 3, 4)), constant("S", 1.0), data("B", (4,))],
             lambda x, s, b: F.layer_norm(x, (4,), None, b, EPSILON), axis=-1, epsilon=EPSILON)
    yield op("layernorm_default_epsilon", "LayerNormalization", [data("X", (2, 4)), scale("S", (4,)), data("B", (4,))],
             lambda x, s, b: F.layer_norm(x, (4,), s, b, 1e-5))


def group_norms() -> Iterator[Case]:
    for shape, groups in (((2, 4, 3), 2), ((2, 6, 2, 3), 3), ((1, 4, 2, 2), 1), ((2, 4, 2, 2), 4),
                          ((3, 4), 2), ((2, 4, 2, 2, 2), 2)):
        for affine in (True, False):
            channels = (shape[1],)
            affected = [scale("S", channels), data("B", channels)] if affine else []
            yield op(f"groupnorm_{short(shape)}_{groups}_{'affine' if affine else 'plain'}",
                     "GroupNormalization", [data("X", shape, scale=2.0), *affected],
                     lambda x, s=None, b=None, g=groups: F.group_norm(x, g, s, b, EPSILON), domain="ai.monet",
                     num_groups=groups, epsilon=EPSILON)
    # In operator set 18 a group has one scale.
    yield op("groupnorm_scale_per_group", "GroupNormalization",
             [data("X", (2, 6, 3)), scale("S", (2,)), data("B", (2,))],
             lambda x, s, b: F.group_norm(x, 2, s.repeat_interleave(3), b.repeat_interleave(3), EPSILON),
             domain="ai.monet", num_groups=2, epsilon=EPSILON)
    for shape in ((2, 3, 4), (2, 3, 2, 2), (1, 2, 2, 3, 2)):
        yield op(f"instancenorm_{short(shape)}", "InstanceNormalization",
                 [data("X", shape, scale=2.0), scale("S", (shape[1],)), data("B", (shape[1],))],
                 lambda x, s, b: F.instance_norm(x, None, None, s, b, True, 0.1, EPSILON), epsilon=EPSILON)


def rms_norm(x, s, axes, epsilon=EPSILON):
    return x * torch.rsqrt((x * x).mean(axes, True) + epsilon) * s


def lp_norms() -> Iterator[Case]:
    for p in (1, 2):
        for axis in (-1, 0, 1):
            yield op(f"lpnormalization_{p}_axis{axis}", "LpNormalization", [data("X", (2, 3, 4))],
                     lambda x: F.normalize(x, p, axis, eps=0.0), axis=axis, p=p)


def rms_norms() -> Iterator[Case]:
    for shape in ((3, 4), (2, 3, 4), (2, 2, 3, 2)):
        for axis in range(1, len(shape)):
            yield op(f"rmsnorm_{short(shape)}_axis{axis}", "RMSNormalization",
                     [data("X", shape), scale("S", shape[axis:])],
                     lambda x, s, axes=tuple(range(axis, len(shape))): rms_norm(x, s, axes),
                     domain="ai.monet", axis=axis, epsilon=EPSILON)
    yield op("rmsnorm_without_scale", "RMSNormalization", [data("X", (2, 5))],
             lambda x: rms_norm(x, 1.0, (-1,)), domain="ai.monet", axis=-1, epsilon=EPSILON)


def chain(name: str, lines: list[str], inputs, function) -> Case:
    return graph(f"chain_{name}", lines, inputs, function, counts_as="chain of a normalisation")


def chains() -> Iterator[Case]:
    x = data("X", (2, 3, 4), scale=2.0)
    numbers = [constant("two", 2.0), constant("eps", 1e-5), constant("one", 1.0)]
    affine = [scale("S", (4,)), data("B", (4,))]
    yield chain("layernorm_opset16",
                ["M = ReduceMean X axes=[-1]", "D = Sub X M", "Q = Pow D two", "V = ReduceMean Q axes=[-1]",
                 "A = Add V eps", "R = Sqrt A", "N = Div D R", "G = Mul N S", "Y = Add G B"],
                [x, *numbers[:2], *affine], lambda x, two, eps, s, b: F.layer_norm(x, (4,), s, b, EPSILON))
    yield chain("layernorm_two_differences",
                ["M = ReduceMean X axes=[-1]", "D = Sub X M", "D2 = Sub X M", "Q = Mul D2 D2",
                 "V = ReduceMean Q axes=[2]", "A = Add eps V", "R = Sqrt A", "I = Reciprocal R",
                 "N = Mul D I", "G = Mul S N", "Y = Add B G"], [x, numbers[1], *affine],
                lambda x, eps, s, b: F.layer_norm(x, (4,), s, b, EPSILON))
    yield chain("layernorm_without_affine",
                ["M = ReduceMean X axes=[-2,-1]", "D = Sub X M", "Q = Pow D two",
                 "V = ReduceMean Q axes=[-2,-1]", "A = Add V eps", "R = Sqrt A", "Y = Div D R"],
                [x, *numbers[:2]], lambda x, two, eps: F.layer_norm(x, (3, 4), None, None, EPSILON))
    yield chain("rmsnorm_llama",
                ["Q = Pow X two", "V = ReduceMean Q axes=[-1]", "A = Add V eps", "R = Sqrt A",
                 "I = Div one R", "N = Mul X I", "Y = Mul S N"], [x, *numbers, affine[0]],
                lambda x, two, eps, one, s: rms_norm(x, s, (-1,)))
    yield chain("rmsnorm_power",
                ["Q = Mul X X", "V = ReduceMean Q axes=[-1]", "A = Add V eps", "R = Pow A minus_half",
                 "N = Mul X R", "Y = Mul N S"], [x, numbers[1], constant("minus_half", -0.5), affine[0]],
                lambda x, eps, half, s: rms_norm(x, s, (-1,)))
    yield chain("rmsnorm_without_scale",
                ["Q = Mul X X", "V = ReduceMean Q axes=[-1]", "A = Add V eps", "R = Sqrt A", "Y = Div X R"],
                [x, numbers[1]], lambda x, eps: rms_norm(x, 1.0, (-1,)))
    # Similar chains over other axes or with another x, which must not be recognised.
    yield chain("rms_over_the_first_axis",
                ["Q = Mul X X", "V = ReduceMean Q axes=[0]", "A = Add V eps", "R = Sqrt A", "Y = Div X R"],
                [x, numbers[1]], lambda x, eps: rms_norm(x, 1.0, (0,)))
    yield chain(
        "rms_of_another", ["Q = Mul X X", "V = ReduceMean Q axes=[-1]", "A = Add V eps", "R = Sqrt A", "Y = Div B R"],
        [x, numbers[1], data("B", (2, 3, 4))], lambda x, eps, b: b * torch.rsqrt((x * x).mean(-1, True) + EPSILON))
    yield chain("rmsnorm_by_a_gate",
                ["Q = Mul X X", "V = ReduceMean Q axes=[-1]", "A = Add V eps", "R = Sqrt A", "N = Div X R",
                 "Y = Mul N G"], [x, numbers[1], data("G", (2, 1, 4))], lambda x, eps, g: rms_norm(x, g, (-1,)))


@net(lambda width: dict(weight=nn.Parameter(torch.ones(width))))
def rms_normed(m: Net, x: torch.Tensor) -> torch.Tensor:
    return m.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))


def modules() -> Iterator[Case]:
    """Normalisations as torch.onnx writes them."""
    image = data("input", (2, 4, 3, 3), scale=2.0)
    rows = data("input", (2, 3, 4), scale=2.0)
    norms = {"group_norm": (nn.GroupNorm(2, 4, eps=EPSILON), image),
             "group_norm_plain": (nn.GroupNorm(2, 4, eps=EPSILON, affine=False), image),
             "group_norm_one": (nn.GroupNorm(1, 4, eps=EPSILON), image),
             "group_norm_1d": (nn.GroupNorm(2, 4, eps=EPSILON), data("input", (2, 4, 5))),
             "instance_norm": (nn.InstanceNorm2d(4, eps=EPSILON, affine=True), image),
             "instance_norm_plain": (nn.InstanceNorm2d(4, eps=EPSILON), image),
             "batch_norm_1d": (nn.BatchNorm1d(4, eps=EPSILON, momentum=0.125), data("input", (5, 4))),
             "batch_norm_2d": (nn.BatchNorm2d(4, eps=EPSILON, momentum=0.125), image),
             "batch_norm_3d": (nn.BatchNorm3d(2, eps=EPSILON, momentum=0.125), data("input", (2, 2, 3, 2, 2))),
             "layer_norm": (nn.LayerNorm(4, eps=EPSILON), rows),
             "layer_norm_plain": (nn.LayerNorm((3, 4), eps=EPSILON, elementwise_affine=False), rows),
             "rms_norm": (rms_normed(4), rows)}
    for name, (norm, given) in norms.items():
        if name == "layer_norm_plain":
            continue  # torch 1.13 leaves the scale out, which opset 17 does not allow
        first = nn.Conv2d(4, 4, 1) if given is image else nn.Identity()
        yield exported(f"exported_{name}", nn.Sequential(first, norm), [given])
    older = {"layer_norm": nn.LayerNorm(4, eps=EPSILON),
             "layer_norm_plain": nn.LayerNorm((3, 4), eps=EPSILON, elementwise_affine=False)}
    for name, norm in older.items():
        module = nn.Sequential(nn.Linear(4, 4), norm)
        yield exported(f"exported_{name}_opset15", module, [rows], opset=15)
