"""Views, slices, joins, padding, repetition, indexing and interpolation."""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradient_cases.framework import (Case, Input, constant, data, exported, f32, graph, in_turn, integer, op, short)
from net import Net, net


def cases() -> Iterator[Case]:
    return in_turn(views, slices, splits_and_joins, pads, repetitions, blocks, gathers, selections, scatters,
                   resizes, modules)


def with_constants(name: str, op_type: str, inputs: list[Input | None], torch_function, **options) -> Case:
    """The PyTorch function gets the inputs that are data or integers, not the constants."""
    kinds = [tensor.kind for tensor in inputs if tensor is not None]

    def run(*arguments: Tensor):
        return torch_function(*[a for a, kind in zip(arguments, kinds) if kind != "constant"])

    return op(name, op_type, inputs, run, **options)


def views() -> Iterator[Case]:
    for shape, target in (((2, 3, 4), (6, 4)), ((2, 3, 4), (24,)), ((6, 4), (2, 3, 2, 2)), ((2, 6), (3, 4)),
                          ((2, 3, 4), (0, -1)), ((4,), (1, 4, 1)), ((1,), ()), ((2, 3, 4), (-1, 2, 0 + 6))):
        real = [shape[i] if size == 0 else size for i, size in enumerate(target)]
        yield with_constants(f"reshape_{short(shape)}_{short(target)}", "Reshape",
                             [data("X", shape), constant("shape", np.array(target, dtype=np.int64))],
                             lambda x: x.reshape(real))
    for perm in ((1, 0), (2, 0, 1), (0, 2, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2, 4)):
        shape = (2, 3, 4, 2, 3)[: len(perm)]
        yield op(f"transpose_{short(perm)}", "Transpose", [data("X", shape)], lambda x: x.permute(perm),
                 perm=list(perm))
    yield op("transpose_default", "Transpose", [data("X", (2, 3, 4))], lambda x: x.permute(2, 1, 0))
    for axis in (0, 1, 2, -1, 3):
        yield op(f"flatten_{axis}", "Flatten", [data("X", (2, 3, 4))],
                 lambda x: x.reshape(int(np.prod((2, 3, 4)[: axis if axis >= 0 else 3 + axis])), -1), axis=axis)
    for axes in ((0,), (2,), (0, 2), (-1,), (0, -1)):
        yield with_constants(
            f"squeeze_{short(axes)}", "Squeeze", [data("X", (1, 3, 1)), constant("axes", axes)],
            lambda x: x.reshape([s for i, s in enumerate((1, 3, 1)) if i not in {a % 3 for a in axes}]))
    yield op("squeeze_all", "Squeeze", [data("X", (1, 3, 1, 2))], lambda x: x.squeeze())
    for axes, shape in (((0,), (1, 2, 3)), ((-1,), (2, 3, 1)), ((1, 3), (2, 1, 3, 1)), ((0, 1, -1), (1, 1, 2, 3, 1))):
        yield with_constants(f"unsqueeze_{short(axes)}", "Unsqueeze",
                             [data("X", (2, 3)), constant("axes", axes)], lambda x: x.reshape(shape))
    for shape, target in (((3, 1), (2, 3, 4)), ((1,), (2, 3)), ((), (2, 2)), ((2, 1, 3), (2, 4, 3)),
                          ((2, 4, 3), (1, 1, 1)), ((3,), (2, 3))):
        yield with_constants(f"expand_{short(shape)}_{short(target)}", "Expand",
                             [data("X", shape), constant("shape", target)],
                             lambda x: x + torch.zeros(target, dtype=x.dtype))
    yield op("identity", "Identity", [data("X", (2, 3))], lambda x: x.clone())


def numpy_slice(x: Tensor, starts, ends, axes, steps) -> Tensor:
    """Slices by numpy's rules, with negative steps."""
    index = torch.arange(x.numel()).reshape(x.shape).numpy()
    parts = [slice(None)] * x.dim()
    for start, end, axis, step in zip(starts, ends, axes, steps):
        size = x.shape[axis]
        if step < 0 and end < -size:
            end = None
        parts[axis] = slice(start, end, step)
    chosen = torch.from_numpy(np.ascontiguousarray(index[tuple(parts)]))
    return x.reshape(-1)[chosen.reshape(-1)].reshape(chosen.shape)


LARGE = 2**63 - 1
SMALL = -(2**63)


def slices() -> Iterator[Case]:
    shape = (5, 6, 7)
    for number, (starts, ends, axes, steps) in enumerate(
        (([1], [4], [0], [1]), ([0], [LARGE], [1], [2]), ([1], [LARGE], [2], [3]), ([-3], [-1], [1], [1]),
         ([-1], [SMALL], [0], [-1]), ([5], [0], [2], [-2]), ([-2], [-6], [1], [-1]), ([100], [SMALL], [2], [-3]),
         ([0, 1], [3, 5], [0, 2], [1, 1]), ([4, 0, 6], [SMALL, LARGE, SMALL], [0, 1, 2], [-2, 4, -3]),
         ([1, 1], [-1, -1], [-2, -1], [2, 1]), ([0, 0, 0], [1, 1, 1], [0, 1, 2], [1, 1, 1]), ([2], [100], [0], [1]))):
        yield with_constants(f"slice_{number}", "Slice",
                             [data("X", shape), constant("starts", starts), constant("ends", ends),
                              constant("axes", axes), constant("steps", steps)],
                             lambda x: numpy_slice(x, starts, ends, axes, steps))
    yield with_constants("slice_defaults", "Slice",
                         [data("X", (4, 5)), constant("starts", [1, 2]), constant("ends", [3, 5])],
                         lambda x: x[1:3, 2:5])
    yield graph("slice_then_product", ["S = Slice X starts ends axes steps", "Y = MatMul S W"],
                [data("X", (6, 4)), constant("starts", [5]), constant("ends", [-100]), constant("axes", [0]),
                 constant("steps", [-2]), data("W", (4, 3))], lambda x, s, e, a, t, w: x.flip(0)[::2] @ w)


def splits_and_joins() -> Iterator[Case]:
    for axis, sizes in ((0, (2, 2, 2)), (1, (1, 3, 2)), (-1, (4, 1)), (2, (5,)), (0, (5, 1))):
        yield with_constants(f"split_{axis}_{short(sizes)}", "Split", [data("X", (6, 6, 5)), constant("sizes", sizes)],
                             lambda x: torch.split(x, list(sizes), axis), axis=axis, outputs=len(sizes))
    yield op("split_equal", "Split", [data("X", (2, 6))], lambda x: torch.chunk(x, 3, 1), axis=1, outputs=3)
    yield graph("split_unused", ["A B C = Split X sizes axis=0", "Y = Mul A A"],
                [data("X", (6, 2)), constant("sizes", [2, 3, 1])], lambda x, sizes: x[:2] * x[:2])
    yield graph("split_products", ["A B = Split X sizes axis=1", "Y = MatMul A B"],
                [data("X", (3, 5)), constant("sizes", [3, 2])], lambda x, sizes: x[:, :3] @ x[:, 3:])
    for axis in (0, 1, 2, -1):
        shapes = []
        for extra in (1, 3, 2):
            shape = [2, 3, 4]
            shape[axis] = extra
            shapes.append(tuple(shape))
        yield op(f"concat_{axis}", "Concat", [data("ABC"[i], shape) for i, shape in enumerate(shapes)],
                 lambda *parts: torch.cat(parts, axis), axis=axis)
    yield graph("concat_twice_the_same", ["Y = Concat X X axis=1"], [data("X", (2, 3))],
                lambda x: torch.cat((x, x), 1))
    yield graph("concat_of_views", ["T = Transpose A perm=[1,0]", "Y = Concat T B axis=0"],
                [data("A", (3, 2)), data("B", (4, 3))], lambda a, b: torch.cat((a.T, b), 0))


def pad_all(x: Tensor, pads, mode: str = "constant", value: float = 0.0) -> Tensor:
    """Pads as ONNX does, by indices, so that every mode works for every rank."""
    count = x.dim()
    for axis in range(count):
        before, after = pads[axis], pads[count + axis]
        size = x.shape[axis]
        places = torch.arange(-before, size + after)
        if mode == "constant":
            inside = (places >= 0) & (places < size)
            taken = x.index_select(axis, places.clamp(0, size - 1))
            shape = [1] * count
            shape[axis] = len(places)
            x = torch.where(inside.reshape(shape), taken, torch.full_like(taken, value))
            continue
        if mode == "edge":
            places = places.clamp(0, size - 1)
        else:
            period = 2 * (size - 1)
            places = places % period
            places = torch.where(places < size, places, period - places)
        x = x.index_select(axis, places)
    return x


def pads() -> Iterator[Case]:
    for mode in ("constant", "reflect", "edge"):
        for shape, amounts in (((5,), (2, 1)), ((3, 4), (1, 0, 0, 2)),
                               ((2, 3, 4, 5), (0, 0, 1, 2, 0, 0, 2, 1)), ((2, 3, 4), (1, 2, 3, 1, 2, 0))):
            yield with_constants(f"pad_{mode}_{short(amounts)}", "Pad", [data("X", shape), constant("pads", amounts)],
                                 lambda x: pad_all(x, amounts, mode), mode=mode)
    for amounts in ((-1, 0, 0, -2), (1, -1, -1, 2), (-1, -1, -1, -1), (2, -3, 0, 1)):
        yield with_constants(f"pad_negative_{short(amounts)}", "Pad",
                             [data("X", (4, 6)), constant("pads", amounts), constant("value", 1.5)],
                             lambda x: pad_all(x, amounts, value=1.5))
    yield with_constants("pad_value", "Pad",
                         [data("X", (2, 3)), constant("pads", (1, 1, 0, 2)), constant("value", -2.0)],
                         lambda x: pad_all(x, (1, 1, 0, 2), value=-2.0))
    yield graph("pad_between_views", ["T = Transpose X perm=[1,0]", "P = Pad T pads", "Y = MatMul P W"],
                [data("X", (3, 4)), constant("pads", (1, 2, 0, 0)), data("W", (5, 2))],
                lambda x, pads, w: F.pad(x.T, (2, 0, 1, 0)) @ w)


def repetitions() -> Iterator[Case]:
    for shape, repeats in (((3,), (2,)), ((2, 3), (2, 2)), ((2, 3), (1, 3)), ((2, 1, 3), (3, 2, 1)),
                           ((1, 2, 3, 2), (2, 1, 2, 3)), ((2, 3), (1, 1))):
        yield with_constants(f"tile_{short(shape)}_{short(repeats)}", "Tile",
                             [data("X", shape), constant("repeats", repeats)], lambda x: x.repeat(repeats))
    for upper in (0, 1):
        for k in (-1, 0, 2):
            yield with_constants(f"trilu_{upper}_{k}", "Trilu", [data("X", (2, 4, 5)), constant("k", k)],
                                 lambda x: torch.triu(x, k) if upper else torch.tril(x, k), upper=upper)
    yield op("trilu_default", "Trilu", [data("X", (3, 3))], torch.triu)


def depth_to_space(x: Tensor, block: int, mode: str) -> Tensor:
    n, c, h, w = x.shape
    deep = c // (block * block)
    if mode == "DCR":
        parts = x.reshape(n, block, block, deep, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, deep, block, block, h, w).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, deep, h * block, w * block)


def space_to_depth(x: Tensor, block: int) -> Tensor:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block)
    return parts.permute(0, 3, 5, 1, 2, 4).reshape(n, c * block**2, h // block, w // block)


def blocks() -> Iterator[Case]:
    for mode in ("DCR", "CRD"):
        for shape, block in (((2, 8, 2, 3), 2), ((1, 18, 2, 1), 3), ((1, 3, 2, 2), 1)):
            yield op(f"depth_to_space_{mode}_{short(shape)}", "DepthToSpace", [data("X", shape)],
                     lambda x: depth_to_space(x, block, mode), blocksize=block, mode=mode)
    for shape, block in (((2, 2, 4, 6), 2), ((1, 3, 6, 3), 3)):
        yield op(f"space_to_depth_{short(shape)}", "SpaceToDepth", [data("X", shape)],
                 lambda x: space_to_depth(x, block), blocksize=block)


def gathers() -> Iterator[Case]:
    for axis in (0, 1, 2, -1):
        for shape in ((), (3,), (2, 3), (1,), (2, 1, 2)):
            yield op(f"gather_{axis}_{short(shape)}", "Gather",
                     [data("X", (4, 5, 6)), integer("I", shape, 4)], lambda x, i: take(x, i, axis), axis=axis)
    for values in ([2], [-1], [0, 2, 4], [3, 2, 1], [1, 1, 3], [-1, 0], [[0, 1], [2, 3]]):
        yield with_constants(f"gather_constant_{str(values).replace(' ', '')}", "Gather",
                             [data("X", (5, 3)), constant("I", values)],
                             lambda x: take(x, torch.tensor(values) % 5, 0), axis=0)
    yield with_constants("gather_constant_scalar", "Gather",
                         [data("X", (2, 5, 3)), constant("I", np.int64(-2))], lambda x: x[:, 3], axis=1)
    yield op("gather_negative", "Gather", [data("X", (2, 5)), integer("I", (4,), 10, offset=-5)],
             lambda x, i: x[:, i % 5], axis=1)
    yield graph("gather_of_view", ["T = Transpose X perm=[1,0]", "Y = Gather T I axis=0"],
                [data("X", (3, 6)), integer("I", (2, 3), 6)], lambda x, i: x.T[i])
    yield graph("gather_of_reshaped", ["R = Reshape X shape", "G = Gather R I axis=1", "Y = MatMul G W"],
                [data("X", (6, 4)), constant("shape", [2, 3, 4]), integer("I", (5,), 3), data("W", (4, 2))],
                lambda x, shape, i, w: x.reshape(2, 3, 4)[:, i] @ w)
    for axis in (0, 1, -1):
        shape = [3, 4, 5]
        limit = shape[axis]
        shape[axis] = 2
        yield op(f"gather_elements_{axis}", "GatherElements", [data("X", (3, 4, 5)), integer("I", shape, limit)],
                 lambda x, i: torch.gather(x, axis, i), axis=axis)
    yield op("gather_elements_longer", "GatherElements", [data("X", (3, 4)), integer("I", (7, 4), 3)],
             lambda x, i: torch.gather(x, 0, i), axis=0)
    yield op("gather_elements_negative", "GatherElements", [data("X", (2, 3)), integer("I", (2, 4), 6, offset=-3)],
             lambda x, i: torch.gather(x, 1, i % 3), axis=1)
    yield op("gather_nd_elements", "GatherND", [data("X", (3, 4)), integer("I", (5, 2), 3)],
             lambda x, i: x[i[:, 0], i[:, 1]])
    yield op("gather_nd_rows", "GatherND", [data("X", (3, 4, 2)), integer("I", (2, 3, 1), 3)],
             lambda x, i: x[i[..., 0]])
    yield op("gather_nd_pairs", "GatherND", [data("X", (3, 3, 2)), integer("I", (2, 3, 2), 3)],
             lambda x, i: x[i[..., 0], i[..., 1]])
    yield op("gather_nd_batched", "GatherND", [data("X", (2, 4, 3)), integer("I", (2, 3, 1), 4)],
             lambda x, i: torch.stack([x[b][i[b, :, 0]] for b in range(2)]), batch_dims=1)
    yield op("gather_nd_batched_whole", "GatherND", [data("X", (2, 3, 4)), integer("I", (2, 3, 1), 4)],
             lambda x, i: torch.gather(x, 2, i)[..., 0], batch_dims=2)
    yield graph("gather_nd_of_view", ["T = Transpose X perm=[1,0]", "Y = GatherND T I"],
                [data("X", (3, 5)), integer("I", (4, 2), 3)], lambda x, i: x.T[i[:, 0], i[:, 1]])


def selections() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for largest in (0, 1):
            yield with_constants(
                f"top_k_{axis}_{largest}", "TopK", [data("X", (4, 5, 6)), constant("k", [3])],
                lambda x: torch.topk(x, 3, axis, bool(largest)), axis=axis, largest=largest, outputs=2)
    yield graph("top_k_of_view", ["T = Transpose X perm=[1,0]", "Y I = TopK T k axis=1"],
                [data("X", (5, 3)), constant("k", [2])], lambda x, k: torch.topk(x.T, 2, 1)[0], output_names=["Y"])
    for time, batch in ((0, 1), (1, 0)):
        shape = (4, 3, 2) if time == 0 else (3, 4, 2)
        yield with_constants(f"reverse_sequence_{time}", "ReverseSequence",
                             [data("X", shape), constant("lengths", [2, 4, 1])],
                             lambda x: reverse_sequence(x, (2, 4, 1), time), time_axis=time, batch_axis=batch)


def reverse_sequence(x: Tensor, lengths: tuple[int, ...], time: int) -> Tensor:
    if time == 0:
        return reverse_sequence(x.transpose(0, 1), lengths, 1).transpose(0, 1)
    rows = [torch.cat((row[:n].flip(0), row[n:])) for row, n in zip(x, lengths)]
    return torch.stack(rows)


def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    axis %= x.dim()
    chosen = x.index_select(axis, indices.reshape(-1))
    return chosen.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def scatters() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for reduction in ("none", "add"):
            # Without a reduction, every place is written once.
            order = np.array([[2, 0, 1], [1, 2, 0]]) if axis else np.array([[0, 1, 2], [2, 0, 1]])
            order = order if axis else order[:, [0, 1, 2]]
            shape = (3, 4) if axis else (4, 3)
            if reduction == "add":
                order = np.zeros_like(order) + 1
            yield with_constants(f"scatter_elements_{axis}_{reduction}", "ScatterElements",
                                 [data("X", shape), constant("I", order), data("U", (2, 3))],
                                 lambda x, u, axis=axis, i=order, add=reduction == "add": (
                                     x.scatter_add(axis, torch.from_numpy(i), u) if add else x.scatter(
                                         axis, torch.from_numpy(i), u)), axis=axis, reduction=reduction, opset=16)
    rows = np.array([[3], [0]])
    yield with_constants("scatter_nd_rows", "ScatterND", [data("X", (4, 3)), constant("I", rows), data("U", (2, 3))],
                         lambda x, u: x.index_put((torch.from_numpy(rows[:, 0]),), u))
    places = np.array([[[0, 1], [2, 0]], [[1, 1], [2, 2]]])
    yield with_constants(
        "scatter_nd_elements", "ScatterND", [data("X", (3, 3)), constant("I", places), data("U", (2, 2))],
        lambda x, u: x.index_put((torch.from_numpy(places[..., 0]), torch.from_numpy(places[..., 1])), u))
    yield op("scatter_nd_add", "ScatterND", [data("X", (4, 3)), integer("I", (5, 1), 4), data("U", (5, 3))],
             lambda x, i, u: x.index_put((i[:, 0],), u, accumulate=True), reduction="add")
    yield graph("scatter_nd_of_view", ["T = Transpose X perm=[1,0]", "U = Reshape V shape", "Y = ScatterND T I U"],
                [data("X", (3, 4)), data("V", (6,)), constant("shape", [2, 3]), constant("I", rows)],
                lambda x, v, shape, i: x.T.index_put((i[:, 0],), v.reshape(2, 3)))


def resize(name: str, shape, attributes: dict, torch_function, *, scales=None, sizes=None, opset=13) -> Case:
    inputs: list[Input | None] = [data("X", shape), None, None]
    if scales is not None:
        inputs[2] = constant("scales", np.array(scales, dtype=np.float32))
    if sizes is not None:
        inputs.append(constant("sizes", sizes))
    return with_constants(f"resize_{name}", "Resize", inputs, torch_function, **attributes, opset=opset)


def resizes() -> Iterator[Case]:
    image = (1, 2, 4, 3)
    floor = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for scales in ((2, 2), (3, 2), (0.5, 1), (1.5, 2.5), (0.75, 0.5)):
        yield resize(f"nearest_{short(scales)}", image, floor,
                     lambda x: F.interpolate(x, scale_factor=scales, mode="nearest"), scales=(1, 1, *scales))
    for sizes in ((8, 6), (5, 7), (2, 3), (3, 2)):
        yield resize(f"nearest_to_{short(sizes)}", image, floor,
                     lambda x: F.interpolate(x, size=sizes, mode="nearest"), sizes=(1, 2, *sizes))
        half = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        yield resize(f"linear_half_{short(sizes)}", image, half,
                     lambda x: F.interpolate(x, size=sizes, mode="bilinear", align_corners=False),
                     sizes=(1, 2, *sizes))
        corners = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
        yield resize(f"linear_corners_{short(sizes)}", image, corners,
                     lambda x: F.interpolate(x, size=sizes, mode="bilinear", align_corners=True), sizes=(1, 2, *sizes))
        for mode, aligned in (("half_pixel", False), ("align_corners", True)):
            yield resize(f"cubic_{mode}_{short(sizes)}", image,
                         {"mode": "cubic", "coordinate_transformation_mode": mode, "cubic_coeff_a": -0.75},
                         lambda x: F.interpolate(x, size=sizes, mode="bicubic", align_corners=aligned),
                         sizes=(1, 2, *sizes))
    for scales in ((2, 2), (1.5, 2.5), (0.5, 0.75)):
        yield resize(f"linear_scaled_{short(scales)}", image,
                     {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
                     lambda x: F.interpolate(x, scale_factor=scales, mode="bilinear", align_corners=False),
                     scales=(1, 1, *scales))
    yield resize("linear_1d", (2, 2, 5), {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
                 lambda x: F.interpolate(x, size=12, mode="linear", align_corners=False), sizes=(2, 2, 12))
    yield resize("linear_3d", (1, 1, 2, 3, 4), {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                 lambda x: F.interpolate(x, size=(4, 3, 5), mode="trilinear", align_corners=True),
                 sizes=(1, 1, 4, 3, 5))
    yield resize("linear_to_one", image, {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                 lambda x: F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True), sizes=(1, 2, 1, 1))
    yield resize("nearest_exact", image,
                 {"mode": "nearest", "coordinate_transformation_mode": "half_pixel",
                  "nearest_mode": "round_prefer_ceil"},
                 lambda x: F.interpolate(x, size=(7, 5), mode="nearest-exact"), sizes=(1, 2, 7, 5))
    yield resize("linear_asymmetric", (1, 1, 3, 3), {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
                 asymmetric, scales=(1, 1, 2, 2))
    for mode in ("nearest", "linear"):
        yield with_constants(f"upsample_{mode}", "Upsample",
                             [data("X", (1, 2, 3, 4)), constant("scales", np.array((1, 1, 2, 3), np.float32))],
                             (lambda x: F.interpolate(x, scale_factor=(2, 3),
                                                      mode="nearest")) if mode == "nearest" else lambda x: asymmetric(
                                 x, (2, 3)), mode=mode, opset=9)


def asymmetric(x: Tensor, factors: tuple[int, int] = (2, 2)) -> Tensor:
    """Output i lies at input i / factor; the last input is repeated beyond the end."""
    for axis, factor in ((2, factors[0]), (3, factors[1])):
        size = x.shape[axis]
        places = torch.arange(size * factor, dtype=torch.float64) / factor
        low = places.floor().long()
        high = (low + 1).clamp(max=size - 1)
        shape = [1, 1, 1, 1]
        shape[axis] = -1
        t = (places - low).reshape(shape)
        x = x.index_select(axis, low) * (1 - t) + x.index_select(axis, high) * t
    return x


@net(dict)
def shuffle(m: Net, x: Tensor) -> Tensor:
    """Channel shuffle and pixel shuffle."""
    n, c, h, w = x.shape
    x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
    return F.pixel_unshuffle(F.pixel_shuffle(x, 2), 4)


@net(dict)
def shifted(m: Net, x: Tensor) -> Tensor:
    """Cyclic shift and windows (Swin)."""
    x = torch.roll(x, (-1, 1), (1, 2))
    x = x.view(2, 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 3)
    return torch.roll(x.flip(1), 1, 0)


@net(lambda: dict(
    near=nn.Upsample(scale_factor=2), soft=nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
    sized=nn.Upsample(size=(5, 9), mode="bilinear"),
))  # fmt: skip
def upsampled(m: Net, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return m.near(x), m.soft(x), m.sized(x)


@net(dict)
def picked(m: Net, x: Tensor) -> tuple[Tensor, ...]:
    """Indexing as users write it."""
    first, rest = x[:, 0], x[:, 1:]
    a, b = rest.chunk(2, dim=-1)
    return first, a[..., ::2], torch.stack((a, b), 1).flatten(2), x[:, -1, None], x[[2, 0, 2]]


@net(lambda: dict(
    patches=nn.Conv2d(2, 4, 2, stride=2), token=nn.Parameter(torch.zeros(1, 1, 4)),
    place=nn.Parameter(torch.zeros(1, 5, 4)),
))  # fmt: skip
def tokens(m: Net, x: Tensor) -> Tensor:
    x = m.patches(x).flatten(2).transpose(1, 2)
    x = torch.cat((m.token.expand(x.shape[0], -1, -1), x), 1) + m.place
    return x[:, 0]


@net(dict)
def repeated(m: Net, x: Tensor) -> Tensor:
    y = x.repeat(2, 1, 3)
    return y + x.repeat_interleave(3, 2).repeat(2, 1, 1)


def modules() -> Iterator[Case]:
    yield exported("exported_shuffle", shuffle(), [data("input", (1, 16, 4, 2))])
    yield exported("exported_shifted", shifted(), [data("input", (2, 4, 4, 3))])
    yield exported("exported_upsampled", upsampled(), [data("input", (1, 2, 3, 4))])
    yield exported("exported_picked", picked(), [data("input", (3, 4, 6))])
    yield exported("exported_tokens", tokens(), [data("input", (2, 2, 4, 4))])
    yield exported("exported_repeated", repeated(), [data("input", (2, 3, 2))])
    yield exported("exported_embedding", nn.Embedding(7, 3), [integer("input", (2, 5), 7)])
    for layer, inputs in ((nn.ReflectionPad2d((1, 2, 0, 1)), (1, 2, 4, 5)), (nn.ReplicationPad1d((2, 1)), (2, 3, 4)),
                          (nn.ConstantPad2d((1, -1, 2, 0), f32(0.3)), (1, 2, 4, 5)),
                          (nn.ZeroPad2d((-1, 1, 0, -2)), (1, 2, 4, 5)), (nn.PixelShuffle(2), (2, 8, 2, 3)),
                          (nn.PixelUnshuffle(2), (2, 2, 4, 6)), (nn.Flatten(1, 2), (2, 3, 2, 2)),
                          (nn.Unfold((2, 3), padding=1, stride=2), (1, 2, 5, 6))):
        name = type(layer).__name__.lower()
        yield exported(f"exported_{name}", layer, [data("input", inputs)])
