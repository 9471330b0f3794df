"""What opsets 18 to 21 changed or added; ONNX 1.12 knows none of them and cannot check them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from gradient_cases.framework import Case, Node, buffer, constant, data, integer


def cases() -> Iterator[Case]:
    yield from reductions()
    yield from parts()
    yield from resizes()
    yield from layers()
    yield from images()
    yield from integers()


# --- Axes as an input ------------------------------------------------------------------------

REDUCTIONS = {
    "L1": lambda x, *a: x.abs().sum(*a),
    "L2": lambda x, *a: x.square().sum(*a).sqrt(),
    "LogSum": lambda x, *a: x.sum(*a).log(),
    "LogSumExp": lambda x, *a: torch.logsumexp(x, *a),
    "Max": lambda x, *a: torch.amax(x, *a),
    "Mean": lambda x, *a: x.mean(*a),
    "Min": lambda x, *a: torch.amin(x, *a),
    "Sum": lambda x, *a: x.sum(*a),
    "SumSquare": lambda x, *a: x.square().sum(*a),
}


def reductions() -> Iterator[Case]:
    x = data("X", (2, 3, 4), offset=3.0)
    for name, function in REDUCTIONS.items():
        yield Case(
            f"reduce{name.lower()}_opset18",
            op_type=f"Reduce{name}",
            opset=18,
            inputs=[x, constant("axes", [-1, 0])],
            attributes={"keepdims": 0},
            torch=lambda x, axes, f=function: f(x, (-1, 0)),
        )
        yield Case(
            f"reduce{name.lower()}_opset21_all",
            op_type=f"Reduce{name}",
            opset=21,
            inputs=[x],
            torch=lambda x, f=function: f(x, (0, 1, 2), True),
        )
    yield Case(
        "reduceprod_opset18",
        op_type="ReduceProd",
        opset=18,
        inputs=[x, constant("axes", [1])],
        attributes={"keepdims": 1},
        torch=lambda x, axes: x.prod(1, True),
    )
    for name in ("LogSumExp", "Max", "Mean", "Min", "Prod", "Sum"):
        for axes in ([], [constant("axes", torch.zeros(0, dtype=torch.int64).numpy())]):
            yield Case(
                f"reduce{name.lower()}_over_no_axes_{len(axes)}",
                op_type=f"Reduce{name}",
                opset=18,
                inputs=[x, *axes],
                attributes={"noop_with_empty_axes": 1},
                torch=lambda x, *axes: x * 1,
            )


# --- Parts of tensors ------------------------------------------------------------------------


def cropped(x: Tensor, shape: dict[int, int]) -> Tensor:
    """In the middle; what is left over is cut off, or added, behind."""
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
    yield Case(
        "split_uneven_opset18",
        op_type="Split",
        opset=18,
        outputs=3,
        inputs=[data("X", (2, 7))],
        attributes={"axis": 1, "num_outputs": 3},
        torch=lambda x: torch.split(x, [3, 3, 1], 1),
    )
    yield Case(
        "pad_axes_opset18",
        op_type="Pad",
        opset=18,
        inputs=[data("X", (2, 3, 4)), constant("pads", [1, 2, 0, 3]), constant("value", 0.5), constant("axes", [-1, 0])],
        torch=lambda x, *_: F.pad(x, (1, 0, 0, 0, 2, 3), value=0.5),
    )
    yield Case(
        "pad_all_axes_opset19",
        op_type="Pad",
        opset=19,
        inputs=[data("X", (1, 2, 4)), constant("pads", [0, 0, 1, 0, 0, 2]), None, None],
        attributes={"mode": "reflect"},
        torch=lambda x, *_: F.pad(x, (1, 2), mode="reflect"),
    )
    for name, shape, axes, wanted in (
        ("crop", (2, 7, 6), [1, 2], [4, 3]),
        ("pad", (2, 3), None, [5, 6]),
        ("both", (5, 2, 4), [-1, 0], [7, 2]),
        ("neither", (2, 3), [0], [2]),
    ):
        places = axes or list(range(len(shape)))
        yield Case(
            f"center_crop_pad_{name}",
            op_type="CenterCropPad",
            opset=18,
            inputs=[data("X", shape), constant("shape", wanted)],
            attributes={"axes": axes} if axes else {},
            torch=lambda x, _, to=dict(zip(places, wanted)): cropped(x, to) * 1,
        )
    yield Case(
        "shape_part_opset21",
        opset=21,
        nodes=[
            Node("Shape", ["X"], ["S"], {"start": 1, "end": -1}),
            Node("Concat", ["open", "S"], ["to"], {"axis": 0}),
            Node("Reshape", ["X", "to"], ["R"], {"allowzero": 1}),
            Node("Unsqueeze", ["R", "axis"], ["U"]),
            Node("Identity", ["U"], ["I"]),
            Node("Squeeze", ["I", "axis"], ["Q"]),
            Node("Cast", ["Q"], ["C"], {"to": 1, "saturate": 1}),
            Node("Transpose", ["C"], ["T"], {"perm": [1, 0]}),
            Node("Tanh", ["T"], ["Y"]),
        ],
        inputs=[data("X", (2, 3, 4)), constant("open", [-1]), constant("axis", [0])],
        torch=lambda x, *_: torch.tanh(x.reshape(-1, 3).T),
    )
    yield Case(
        "constant_of_shape_opset20",
        opset=20,
        nodes=[
            Node("Shape", ["X"], ["S"]),
            Node("ConstantOfShape", ["S"], ["O"], {"value": torch.full((1,), 2.0).numpy()}),
            Node("Mul", ["X", "O"], ["Y"]),
        ],
        inputs=[data("X", (2, 3))],
        torch=lambda x: 2 * x,
    )


# --- Resize ----------------------------------------------------------------------------------


def resizes() -> Iterator[Case]:
    image = data("X", (1, 2, 4, 3))

    def resized(name: str, sizes: list[int], to: tuple[int, int], **attributes: object) -> Case:
        return Case(
            f"resize_{name}",
            op_type="Resize",
            opset=18,
            inputs=[image, None, None, constant("sizes", sizes)],
            attributes={"mode": "linear", "coordinate_transformation_mode": "half_pixel", **attributes},
            torch=lambda x, _: F.interpolate(x, to, mode="bilinear", align_corners=False),
        )

    yield resized("axes_opset18", [7, 5], (5, 7), axes=[-1, 2])
    yield resized("antialias_larger", [8, 6], (8, 6), axes=[2, 3], antialias=1)
    yield resized("not_larger", [8, 9], (8, 6), axes=[2, 3], keep_aspect_ratio_policy="not_larger")
    yield resized("not_smaller", [8, 9], (12, 9), axes=[2, 3], keep_aspect_ratio_policy="not_smaller")
    yield Case(
        "resize_scales_of_axes",
        op_type="Resize",
        opset=19,
        inputs=[image, None, constant("scales", [2.0, 3.0])],
        attributes={"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "axes": [3, 2]},
        torch=lambda x, _: F.interpolate(x, scale_factor=(3, 2), mode="nearest"),
    )


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
        yield Case(
            f"group_normalization_opset{opset}",
            op_type="GroupNormalization",
            opset=opset,
            inputs=[x, data("S", (count,)), data("B", (count,))],
            attributes={"num_groups": 3},
            torch=lambda x, s, b, n=spread: F.group_norm(
                x, 3, s.repeat_interleave(n), b.repeat_interleave(n)
            ),
        )
    yield Case("mish_opset18", op_type="Mish", opset=18, inputs=[data("X", (3, 4), scale=3.0)], torch=F.mish)
    for form in ("none", "tanh"):
        yield Case(
            f"gelu_{form}_opset20",
            op_type="Gelu",
            opset=20,
            inputs=[data("X", (3, 4), scale=3.0)],
            attributes={"approximate": form},
            torch=lambda x, form=form: F.gelu(x, approximate=form),
        )
    yield Case(
        "average_pool_dilated",
        op_type="AveragePool",
        opset=19,
        inputs=[data("X", (2, 3, 7, 6))],
        attributes={"kernel_shape": [2, 2], "dilations": [3, 3]},
        torch=lambda x: average_dilated(x, 2, 3),
    )
    yield Case(
        "average_pool_opset19",
        op_type="AveragePool",
        opset=19,
        inputs=[data("X", (2, 3, 7, 6))],
        attributes={"kernel_shape": [3, 2], "strides": [2, 2], "dilations": [1, 1], "count_include_pad": 1},
        torch=lambda x: F.avg_pool2d(x, (3, 2), 2),
    )
    yield Case(
        "lp_pool_rounded_up",
        opset=18,
        nodes=[
            Node("LpPool", ["X"], ["P"], {"kernel_shape": [3], "strides": [3], "ceil_mode": 1, "dilations": [1]}),
            Node("Mul", ["P", "W"], ["Y"]),
        ],
        inputs=[buffer("X", (2, 3, 7), offset=2.0), data("W", (3,))],
        torch=lambda x, w: F.lp_pool1d(F.pad(x, (0, 2)), 2, 3, 3) * w,
    )


# --- Images ----------------------------------------------------------------------------------


def images() -> Iterator[Case]:
    for name, image, block, options in (
        ("apart", (6, 4), (3, 2), {"stride": (3, 2)}),
        ("overlapping", (5, 6), (3, 2), {}),
        ("padded", (5, 4), (3, 3), {"padding": 1, "stride": 2}),
        ("dilated", (7, 6), (2, 3), {"dilation": (3, 2)}),
        ("left_over", (6, 5), (2, 2), {"stride": 2}),
    ):
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
        yield Case(
            f"col2im_{name}",
            op_type="Col2Im",
            opset=18,
            inputs=[data("X", (2, 3 * elements, made.shape[2])), constant("image", image), constant("block", block)],
            attributes=attributes,
            torch=lambda x, *_, i=image, b=block, o=options: F.fold(x, i, b, **o),
        )
    for align in (0, 1):
        for size in ((2, 3, 4, 5), (1, 2, 3, 2, 4)):
            rank = len(size) - 2
            yield Case(
                f"affine_grid_{rank}d_{align}",
                op_type="AffineGrid",
                opset=20,
                inputs=[data("theta", (size[0], rank, rank + 1)), constant("size", size)],
                attributes={"align_corners": align},
                torch=lambda theta, _, s=size, a=align: F.affine_grid(theta, s, align_corners=bool(a)),
            )


# --- Integers --------------------------------------------------------------------------------


def integers() -> Iterator[Case]:
    a, b = integer("A", (2, 3), 64, offset=-20), integer("B", (3,), 64)
    for name, function in (
        ("And", torch.bitwise_and),
        ("Or", torch.bitwise_or),
        ("Xor", torch.bitwise_xor),
        ("Not", torch.bitwise_not),
    ):
        operands = [a] if name == "Not" else [a, b]
        yield Case(
            f"bitwise_{name.lower()}",
            opset=18,
            nodes=[
                Node(f"Bitwise{name}", [operand.name for operand in operands], ["I"]),
                Node("Cast", ["I"], ["R"], {"to": 1}),
                Node("Mul", ["R", "X"], ["Y"]),
            ],
            inputs=[*operands, data("X", (3,))],
            torch=lambda *all, f=function: f(*all[:-1]) * all[-1],
        )
