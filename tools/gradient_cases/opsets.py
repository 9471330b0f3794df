"""Operators that opsets 18 to 21 changed or added. ONNX 1.12 has none of these opsets and cannot check the cases."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from gradient_cases.framework import Case, Node, buffer, constant, data, graph, in_turn, integer, op


def cases() -> Iterator[Case]:
    return in_turn(reductions, parts, resizes, layers, images, integers)


# --- Axes as an input ------------------------------------------------------------------------

REDUCTIONS = {"L1": lambda x, *a: x.abs().sum(*a), "L2": lambda x, *a: x.square().sum(*a).sqrt(),
              "LogSum": lambda x, *a: x.sum(*a).log(), "LogSumExp": lambda x, *a: torch.logsumexp(x, *a),
              "Max": lambda x, *a: torch.amax(x, *a), "Mean": lambda x, *a: x.mean(*a),
              "Min": lambda x, *a: torch.amin(x, *a), "Sum": lambda x, *a: x.sum(*a),
              "SumSquare": lambda x, *a: x.square().sum(*a)}


def reductions() -> Iterator[Case]:
    x = data("X", (2, 3, 4), offset=3.0)
    for name, function in REDUCTIONS.items():
        yield op(f"reduce{name.lower()}_opset18", f"Reduce{name}", [x, constant("axes", [-1, 0])],
                 lambda x, axes: function(x, (-1, 0)), opset=18, keepdims=0)
        yield op(f"reduce{name.lower()}_opset21_all", f"Reduce{name}", [x],
                 lambda x: function(x, (0, 1, 2), True), opset=21)
    yield op("reduceprod_opset18", "ReduceProd", [x, constant("axes", [1])], lambda x, axes: x.prod(1, True),
             opset=18, keepdims=1)
    for name in ("LogSumExp", "Max", "Mean", "Min", "Prod", "Sum"):
        for axes in ([], [constant("axes", torch.zeros(0, dtype=torch.int64).numpy())]):
            yield op(f"reduce{name.lower()}_over_no_axes_{len(axes)}", f"Reduce{name}", [x, *axes],
                     lambda x, *axes: x * 1, opset=18, noop_with_empty_axes=1)


# --- Parts of tensors ------------------------------------------------------------------------


def cropped(x: Tensor, shape: dict[int, int]) -> Tensor:
    """Crops or pads around the middle; an odd element is removed, or added, at the end."""
    for axis, wanted in shape.items():
        more = wanted - x.shape[axis]
        if more <= 0:
            x = x.narrow(axis, -more // 2, wanted)
        else:
            before = list(x.shape)
            before[axis] = more // 2
            behind = list(x.shape)
            behind[axis] = more - more // 2
            x = torch.cat([x.new_zeros(before), x, x.new_zeros(behind)], axis)
    return x


def parts() -> Iterator[Case]:
    yield op("split_uneven_opset18", "Split", [data("X", (2, 7))], lambda x: torch.split(x, [3, 3, 1], 1),
             opset=18, outputs=3, axis=1, num_outputs=3)
    yield op("pad_axes_opset18", "Pad",
             [data("X", (2, 3, 4)), constant("pads", [1, 2, 0, 3]), constant("value", 0.5),
              constant("axes", [-1, 0])], lambda x, *_: F.pad(x, (1, 0, 0, 0, 2, 3), value=0.5), opset=18)
    yield op("pad_all_axes_opset19", "Pad", [data("X", (1, 2, 4)), constant("pads", [0, 0, 1, 0, 0, 2]), None, None],
             lambda x, *_: F.pad(x, (1, 2), mode="reflect"), opset=19, mode="reflect")
    for name, shape, axes, wanted in (("crop", (2, 7, 6), [1, 2], [4, 3]), ("pad", (2, 3), None, [5, 6]),
                                      ("both", (5, 2, 4), [-1, 0], [7, 2]), ("neither", (2, 3), [0], [2])):
        places = axes or list(range(len(shape)))
        yield op(f"center_crop_pad_{name}", "CenterCropPad", [data("X", shape), constant("shape", wanted)],
                 lambda x, _, to=dict(zip(places, wanted)): cropped(x, to) * 1, opset=18,
                 **{"axes": axes} if axes else {})
    yield graph("shape_part_opset21",
                ["S = Shape X start=1 end=-1", "to = Concat open S axis=0", "R = Reshape X to allowzero=1",
                 "U = Unsqueeze R axis", "I = Identity U", "Q = Squeeze I axis", "C = Cast Q to=1 saturate=1",
                 "T = Transpose C perm=[1,0]", "Y = Tanh T"],
                [data("X", (2, 3, 4)), constant("open", [-1]), constant("axis", [0])],
                lambda x, *_: torch.tanh(x.reshape(-1, 3).T), opset=21)
    yield graph("constant_of_shape_opset20",
                ["S = Shape X", Node("ConstantOfShape", ["S"], ["O"], {"value": torch.full((1,), 2.0).numpy()}),
                 "Y = Mul X O"], [data("X", (2, 3))], lambda x: 2 * x, opset=20)


# --- Resize ----------------------------------------------------------------------------------


def resizes() -> Iterator[Case]:
    image = data("X", (1, 2, 4, 3))

    def resized(name: str, sizes: list[int], to: tuple[int, int], **attributes: object) -> Case:
        return op(f"resize_{name}", "Resize", [image, None, None, constant("sizes", sizes)],
                  lambda x, _: F.interpolate(x, to, mode="bilinear", align_corners=False), opset=18,
                  mode="linear", coordinate_transformation_mode="half_pixel", **attributes)

    yield resized("axes_opset18", [7, 5], (5, 7), axes=[-1, 2])
    yield resized("antialias_larger", [8, 6], (8, 6), axes=[2, 3], antialias=1)
    yield resized("not_larger", [8, 9], (8, 6), axes=[2, 3], keep_aspect_ratio_policy="not_larger")
    yield resized("not_smaller", [8, 9], (12, 9), axes=[2, 3], keep_aspect_ratio_policy="not_smaller")
    yield op("resize_scales_of_axes", "Resize", [image, None, constant("scales", [2.0, 3.0])],
             lambda x, _: F.interpolate(x, scale_factor=(3, 2), mode="nearest"), opset=19, mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor", axes=[3, 2])


# --- Layers ----------------------------------------------------------------------------------


def average_dilated(x: Tensor, kernel: int, dilation: int) -> Tensor:
    batch, channels, height, width = x.shape
    rows = F.unfold(x, kernel, dilation=dilation).view(batch, channels, kernel * kernel, -1)
    reach = dilation * (kernel - 1)
    return rows.mean(2).view(batch, channels, height - reach, width - reach)


def layers() -> Iterator[Case]:
    x = data("X", (2, 6, 3, 2))
    for opset, count in ((18, 3), (21, 6)):
        spread = 6 // count
        yield op(f"group_normalization_opset{opset}", "GroupNormalization",
                 [x, data("S", (count,)), data("B", (count,))],
                 lambda x, s, b: F.group_norm(x, 3, s.repeat_interleave(spread), b.repeat_interleave(spread)),
                 opset=opset, num_groups=3)
    yield op("mish_opset18", "Mish", [data("X", (3, 4), scale=3.0)], F.mish, opset=18)
    for form in ("none", "tanh"):
        yield op(f"gelu_{form}_opset20", "Gelu", [data("X", (3, 4), scale=3.0)],
                 lambda x: F.gelu(x, approximate=form), opset=20, approximate=form)
    yield op("average_pool_dilated", "AveragePool", [data("X", (2, 3, 7, 6))],
             lambda x: average_dilated(x, 2, 3), opset=19, kernel_shape=[2, 2], dilations=[3, 3])
    yield op("average_pool_opset19", "AveragePool", [data("X", (2, 3, 7, 6))], lambda x: F.avg_pool2d(x, (3, 2), 2),
             opset=19, kernel_shape=[3, 2], strides=[2, 2], dilations=[1, 1], count_include_pad=1)
    yield graph("lp_pool_rounded_up",
                ["P = LpPool X kernel_shape=[3] strides=[3] ceil_mode=1 dilations=[1]", "Y = Mul P W"],
                [buffer("X", (2, 3, 7), offset=2.0), data("W", (3,))],
                lambda x, w: F.lp_pool1d(F.pad(x, (0, 2)), 2, 3, 3) * w, opset=18)


# --- Images ----------------------------------------------------------------------------------


def images() -> Iterator[Case]:
    for name, image, block, options in (
        ("apart", (6, 4), (3, 2), {"stride": (3, 2)}), ("overlapping", (5, 6), (3, 2), {}),
        ("padded", (5, 4), (3, 3), {"padding": 1, "stride": 2}),
        ("dilated", (7, 6), (2, 3), {"dilation": (3, 2)}), ("left_over", (6, 5), (2, 2), {"stride": 2})):
        elements = block[0] * block[1]
        made = F.unfold(torch.zeros(1, 1, *image), block, **options)
        pair = {key: (v, v) if isinstance(v, int) else v for key, v in options.items()}
        attributes = {}
        if "stride" in pair:
            attributes["strides"] = list(pair["stride"])
        if "dilation" in pair:
            attributes["dilations"] = list(pair["dilation"])
        if "padding" in pair:
            attributes["pads"] = list(pair["padding"] * 2)
        yield op(f"col2im_{name}", "Col2Im",
                 [data("X", (2, 3 * elements, made.shape[2])), constant("image", image), constant("block", block)],
                 lambda x, *_, i=image, b=block, o=options: F.fold(x, i, b, **o), opset=18, **attributes)
    for align in (0, 1):
        for size in ((2, 3, 4, 5), (1, 2, 3, 2, 4)):
            rank = len(size) - 2
            yield op(f"affine_grid_{rank}d_{align}", "AffineGrid",
                     [data("theta", (size[0], rank, rank + 1)), constant("size", size)],
                     lambda theta, _: F.affine_grid(theta, size, align_corners=bool(align)), opset=20,
                     align_corners=align)


# --- Integers --------------------------------------------------------------------------------


def integers() -> Iterator[Case]:
    a, b = integer("A", (2, 3), 64, offset=-20), integer("B", (3,), 64)
    for name, function in (("And", torch.bitwise_and), ("Or", torch.bitwise_or), ("Xor", torch.bitwise_xor),
                           ("Not", torch.bitwise_not)):
        operands = [a] if name == "Not" else [a, b]
        yield graph(f"bitwise_{name.lower()}",
                    [Node(f"Bitwise{name}", [operand.name for operand in operands], ["I"]), "R = Cast I to=1",
                     "Y = Mul R X"], [*operands, data("X", (3,))], lambda *all: function(*all[:-1]) * all[-1],
                    opset=18)
