"""Segmentation, detection, video and optical flow of torchvision 0.14, without postprocessing."""

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.detection import rpn
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.video.mvit import MSBlockConfig, MViT

from net import Net, net

from .framework import Network, floats, mlp
from .torchvision_classifiers import get_model


@net(lambda name: dict(model=torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=21)))
def class_map(m: Net, x: Tensor) -> Tensor:
    """Returns the map of classes only."""
    return m.model(x)["out"]


class Detector(nn.Module):
    """Backbone and head of a one-stage detector; returns all outputs of the head on all levels."""

    def __init__(self, name: str) -> None:
        super().__init__()
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None)
        self.backbone, self.head = model.backbone, model.head

    def forward(self, x: Tensor) -> list[Tensor]:
        return list(self.head(list(self.backbone(x).values())).values())


@net(lambda: dict(
    backbone=resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d,
                                 trainable_layers=5),
    head=rpn.RPNHead(256, 3),
))  # fmt: skip
def proposal_network(m: Net, x: Tensor) -> list[Tensor]:
    """ResNet-18 with a feature pyramid and the region proposal head of Faster R-CNN."""
    logits, boxes = m.head(list(m.backbone(x).values()))
    return [*logits, *boxes]


@net(lambda: dict(
    stem=nn.Sequential(*list(torchvision.models.resnet18().children())[:6]), head=mlp(128 * 49, 256, 91),
))  # fmt: skip
def box_head(m: Net, x: Tensor, boxes: Tensor) -> Tensor:
    """The second stage of Faster R-CNN: regions of a feature map, classified."""
    regions = torchvision.ops.roi_align(m.stem(x), [boxes[0]], 7, 1 / 8, 2)
    return m.head(regions.flatten(1))


@net(lambda: dict(model=torchvision.models.optical_flow.raft_small(weights=None)))
def flow(m: Net, before: Tensor, after: Tensor) -> Tensor:
    """RAFT with one update; the flow at the size of the images."""
    return m.model(before, after, num_flow_updates=1)[-1]


def multiscale(*, second: bool) -> nn.Module:
    """Three blocks of a multi-scale ViT, first or second version, for small images."""
    none: list[int] = []
    blocks = [MSBlockConfig(1, 96, 192, none, [3, 3, 3], none, [1, 8, 8]),
              MSBlockConfig(2, 192, 192, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 4, 4]),
              MSBlockConfig(2, 192, 192, none, [3, 3, 3], none, [1, 4, 4])]
    return MViT((64, 64), 8, blocks, residual_pool=second, residual_with_cls_embed=not second, rel_pos_embed=second,
                proj_after_attn=second, stochastic_depth_prob=0.0)


def segmentation(name: str) -> Network:
    return Network(lambda: class_map(name), floats((3, 128, 128)), opset=17, batch=2)


def detector(name: str, size: int) -> Network:
    return Network(lambda: Detector(name), floats((3, size, size)), "none", opset=17, batch=2)


def video(name: str, frames: int, size: int) -> Network:
    return Network(lambda: get_model(name), floats((3, frames, size, size)), opset=17)


NETWORKS: dict[str, Network] = {
    **{name: segmentation(name) for name in ("fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large",
                                             "lraspp_mobilenet_v3_large")},
    "retinanet_resnet50_fpn": detector("retinanet_resnet50_fpn", 224),
    "fcos_resnet50_fpn": detector("fcos_resnet50_fpn", 224), "ssd300_vgg16": detector("ssd300_vgg16", 300),
    "ssdlite320_mobilenet_v3_large": detector("ssdlite320_mobilenet_v3_large", 320),
    "rpn_resnet18_fpn": Network(proposal_network, floats((3, 224, 224)), "none", opset=17),
    "box_head_roi_align": Network(box_head, lambda batch: (torch.randn(1, 3, 224, 224), torch.rand(1, 16, 4) * 200),
                                  opset=17, fixed=True),
    "r3d_18": video("r3d_18", 8, 112), "mc3_18": video("mc3_18", 8, 112), "r2plus1d_18": video("r2plus1d_18", 8, 112),
    "s3d": video("s3d", 16, 224), "mvit_v1_small": Network(lambda: multiscale(second=False), floats((3, 8, 64, 64))),
    "mvit_v2_small": Network(lambda: multiscale(second=True), floats((3, 8, 64, 64))),
    "raft_small": Network(flow, floats((3, 128, 128), (3, 128, 128)), "mse", opset=16)}
