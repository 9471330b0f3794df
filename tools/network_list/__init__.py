"""Networks that users bring, by family."""

from . import attention, exports, language, tiny, torchvision_classifiers, torchvision_dense, vision
from .framework import Network

FAMILIES: dict[str, dict[str, Network]] = {
    "torchvision": torchvision_classifiers.NETWORKS, "torchvision, dense": torchvision_dense.NETWORKS,
    "tiny": tiny.NETWORKS, "vision": vision.NETWORKS, "language": language.NETWORKS,
    "attention": attention.NETWORKS, "exports": exports.NETWORKS}
