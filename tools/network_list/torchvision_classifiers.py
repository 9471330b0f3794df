"""Image classifiers of torchvision 0.14, at full size."""

import torchvision
from torch import nn

from .framework import Network, floats


def get_model(name: str, **options: bool) -> nn.Module:
    """Builds the model of that name, without weights. Stochastic depth, which has no export, is off."""
    model = torchvision.models.get_model(name, weights=None, **options)
    for module in model.modules():
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return model


def classifier(name: str, size: int = 224, loss: str = "cross_entropy", batch: int = 1, **options: bool) -> Network:
    """Builds the model of that name for opset 17."""
    return Network(lambda: get_model(name, **options), floats((3, size, size)), loss, 17, batch)


PLAIN = ["alexnet", "convnext_tiny", "densenet121", "densenet169", "efficientnet_b0", "efficientnet_b1",
         "efficientnet_v2_s", "maxvit_t", "mnasnet0_5", "mnasnet1_0", "mnasnet1_3", "mobilenet_v2",
         "mobilenet_v3_small", "mobilenet_v3_large", "regnet_x_400mf", "regnet_x_1_6gf", "regnet_x_800mf",
         "regnet_y_400mf", "regnet_y_1_6gf", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
         "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "squeezenet1_0",
         "squeezenet1_1", "swin_t", "vgg11", "vgg11_bn", "vgg13", "vgg16_bn", "vgg19", "vit_b_16", "vit_b_32",
         "wide_resnet50_2"]

NETWORKS: dict[str, Network] = {
    **{name: classifier(name) for name in PLAIN},
    # Networks with auxiliary heads: the gradients of all outputs are fed in.
    "googlenet": classifier("googlenet", 256, loss="none", init_weights=False),
    "inception_v3": classifier("inception_v3", 299, "none", 2, init_weights=False)}
