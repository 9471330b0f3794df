"""Samples between pixels: grid_sample, roi_align."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from gradient_cases.framework import Case, constant, data, exported, f32, graph, in_turn, op
from net import Net, net

MODES = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def cases() -> Iterator[Case]:
    return in_turn(grids, grids_of_views, regions, modules)


# --- GridSample ------------------------------------------------------------------------------


def grid(mode: str, padding: str, corners: bool, image: tuple[int, ...] = (2, 3, 5, 6),
         places: tuple[int, int] = (4, 3), reach: float = 1.5, opset: int = 17) -> Case:
    """`reach`: coordinates lie in -reach to reach; those in -1 to 1 are inside."""
    label = "x".join(map(str, (*image[1:], *places)))
    newer = {"bilinear": "linear", "bicubic": "cubic"} if opset >= 20 else {}
    return op(f"grid_{mode}_{padding}_{'corners' if corners else 'edges'}_{label}_{reach}", "GridSample",
              [data("X", image), data("G", (image[0], *places, 2), scale=reach)],
              lambda x, g: F.grid_sample(x, g, mode, padding, corners), mode=newer.get(mode, mode),
              padding_mode=padding, align_corners=int(corners), opset=opset)


def grids() -> Iterator[Case]:
    for mode in MODES:
        for padding in PADDINGS:
            for corners in (False, True):
                yield grid(mode, padding, corners)
                yield grid(mode, padding, corners, (1, 2, 3, 4), (5, 2), 4.0)
                yield grid(mode, padding, corners, (2, 1, 7, 3), (1, 6), 0.9)
    for padding in PADDINGS:
        yield grid("bilinear", padding, False, (1, 2, 1, 1), (3, 3))
        yield grid("bilinear", padding, True, (1, 2, 1, 4), (3, 3))
    # Coordinates far outside, and at the centres of pixels.
    yield grid("bilinear", "zeros", False, (1, 2, 3, 3), (3, 2), 1e6)
    for padding in PADDINGS:
        yield op(f"grid_of_pixels_{padding}", "GridSample",
                 [data("X", (1, 2, 3, 3)), constant("G", [[[[-0.5, 0.5], [0.0, 0.0]], [[0.25, -0.75], [0.5, -0.5]]]])],
                 lambda x, g: F.grid_sample(x, g, "bilinear", padding, True), padding_mode=padding, align_corners=1)


def grids_of_views() -> Iterator[Case]:
    """Images with channels last, and a flow whose coordinates are channels."""
    yield graph("grid_of_channels_last", ["T = Transpose X perm=[0,3,1,2]", "Y = GridSample T G padding_mode=border"],
                [data("X", (2, 5, 4, 3)), data("G", (2, 3, 4, 2))],
                lambda x, g: F.grid_sample(x.permute(0, 3, 1, 2), g, padding_mode="border", align_corners=False),
                counts_as="GridSample")
    yield graph("grid_of_flow", ["T = Transpose G perm=[0,2,3,1]", "Y = GridSample X T align_corners=1"],
                [data("X", (2, 3, 5, 4)), data("G", (2, 2, 3, 4))],
                lambda x, g: F.grid_sample(x, g.permute(0, 2, 3, 1), align_corners=True), counts_as="GridSample")
    yield graph(
        "grid_of_rows", ["R = Reshape G shape", "S = GridSample X R", "Y = Reshape S flat"],
        [data("X", (2, 3, 5, 4)), data("G", (2, 12, 2)), constant("shape", [2, 3, 4, 2]), constant("flat", [2, 36])],
        lambda x, g, *_: F.grid_sample(x, g.view(2, 3, 4, 2), align_corners=False).flatten(1), counts_as="GridSample")


# --- RoiAlign --------------------------------------------------------------------------------

BOXES = [[0.5, 1.25, 9.0, 7.5], [-3.0, -2.0, 4.0, 5.0], [6.0, 3.0, 20.0, 18.0], [2.0, 2.0, 2.25, 2.5],
         [5.0, 5.0, 3.0, 4.0]]
IMAGES = [0, 1, 1, 0, 1]


def aligned_maximum(x: Tensor, boxes: Tensor, images: Tensor, size: tuple[int, int], scale: float, ratio: int,
                    half: bool) -> Tensor:
    """The largest sample of every bin: torchvision's means of bins that are one sample each."""
    height, width = size
    corners = boxes * scale - (0.5 if half else 0.0)
    begin, extent = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not half:
        extent = extent.clamp(min=1.0)
    # A single sample of a bin lies at its centre.
    rois = torch.cat([begin, begin + extent], 1) + 0.5
    rois = torch.cat([images[:, None].to(x.dtype), rois], 1)
    samples = torchvision.ops.roi_align(x, rois, (height * ratio, width * ratio), 1.0, 1, aligned=True)
    count, channels = samples.shape[:2]
    samples = samples.view(count, channels, height, ratio, width, ratio).transpose(3, 4)
    return samples.reshape(count, channels, height, width, ratio * ratio).max(-1)[0]


def region(mode: str, ratio: int, half: bool, size: tuple[int, int], scale: float, opset: int = 17) -> Case:
    def run(x: Tensor, boxes: Tensor, images: Tensor) -> Tensor:
        if mode == "max":
            return aligned_maximum(x, boxes, images, size, scale, ratio, half)
        rois = torch.cat([images[:, None].to(x.dtype), boxes], 1)
        return torchvision.ops.roi_align(x, rois, size, scale, ratio if ratio else -1, aligned=half)

    attributes = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": scale, "output_height": size[0],
                  "output_width": size[1]}
    if opset >= 16:
        attributes["coordinate_transformation_mode"] = "half_pixel" if half else "output_half_pixel"
    label = f"{mode}_{ratio}_{'half' if half else 'whole'}_{size[0]}x{size[1]}_{scale}"
    return op(f"region_{label}" + ("" if opset >= 16 else f"_{opset}"), "RoiAlign",
              [data("X", (2, 3, 8, 9)), constant("boxes", BOXES), constant("images", IMAGES)], run,
              **attributes, opset=opset)


def regions() -> Iterator[Case]:
    for half in (False, True):
        for ratio in (0, 1, 2, 3):
            yield region("avg", ratio, half, (3, 2), 1.0)
            yield region("avg", ratio, half, (2, 4), 0.5)
        for ratio in (1, 2, 3):
            yield region("max", ratio, half, (3, 2), 1.0)
            yield region("max", ratio, half, (2, 2), 0.5)
    yield region("avg", 2, False, (2, 2), 0.5, opset=11)
    yield region("avg", 0, False, (1, 1), f32(1.0 / 3.0), opset=10)
    yield graph("region_of_channels_last",
                ["T = Transpose X perm=[0,3,1,2]",
                 "S = RoiAlign T boxes images output_height=2 output_width=3 sampling_ratio=2", "Y = Reshape S flat"],
                [data("X", (2, 8, 9, 4)), constant("boxes", BOXES), constant("images", IMAGES),
                 constant("flat", [5, 24])],
                lambda x, boxes, images, _: torchvision.ops.roi_align(
                    x.permute(0, 3, 1, 2), torch.cat([images[:, None].to(x.dtype), boxes], 1), (2, 3),
                    sampling_ratio=2, aligned=True).flatten(1), counts_as="RoiAlign")


# --- Modules ---------------------------------------------------------------------------------


@net(lambda mode, padding: dict(
    place=nn.Linear(3 * 4 * 4, 6), mode=mode, padding=padding, pixels=torch.linspace(-0.9, 0.9, 5),
))  # fmt: skip
def transformer(m: Net, x: Tensor) -> Tensor:
    """An affine transformation of the image, computed from the image."""
    matrix = m.place(x.flatten(1)).view(-1, 2, 3)
    rows = m.pixels[:, None].expand(5, 5)
    points = torch.stack([rows.t(), rows, torch.ones_like(rows)], -1).view(1, 25, 3)
    places = (points @ matrix.transpose(1, 2)).view(-1, 5, 5, 2)
    return F.grid_sample(x, places, m.mode, m.padding, align_corners=False)


@net(lambda: dict(features=nn.Conv2d(3, 4, 3, padding=1), flow=nn.Conv2d(3, 2, 3, padding=1)))
def warp(m: Net, x: Tensor) -> Tensor:
    """The second image's features at the places of a flow."""
    places = torch.tanh(m.flow(x)).permute(0, 2, 3, 1)
    return F.grid_sample(m.features(x), places, padding_mode="border", align_corners=True)


@net(lambda: dict(
    stem=nn.Conv2d(3, 4, 3, padding=1), shift=nn.Parameter(torch.zeros(4)), head=nn.Linear(4 * 2 * 2, 3),
))  # fmt: skip
def box_head(m: Net, x: Tensor, boxes: Tensor) -> Tensor:
    """Learned regions, which no gradient reaches."""
    rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes + m.shift], 1)
    regions = torchvision.ops.roi_align(m.stem(x), rois, 2, 0.5, 2)
    return m.head(regions.flatten(1))


def modules() -> Iterator[Case]:
    image = data("x", (2, 3, 4, 4))
    for mode in MODES:
        yield exported(f"transformer_{mode}", transformer(mode, "zeros"), [image])
    yield exported("transformer_border", transformer("bilinear", "border"), [image])
    yield exported("warp", warp(), [data("x", (2, 3, 5, 4))])
    boxes = data("boxes", values=[[0.0, 1.0, 7.0, 6.0], [2.0, 3.0, 9.0, 10.0], [5.0, 1.0, 8.0, 4.0]])
    yield exported("box_head", box_head(), [data("x", (1, 3, 6, 6)), boxes], opset=15)
