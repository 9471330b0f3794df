"""Networks that people bring, by family."""

from __future__ import annotations

from . import (agents, attention, dense, exports, generative, language, science, sequences, signals, tables, tiny,
               torchvision_classifiers, torchvision_dense, vision)
from .framework import Network

FAMILIES: dict[str, dict[str, Network]] = {
    "torchvision": torchvision_classifiers.NETWORKS, "torchvision, dense": torchvision_dense.NETWORKS,
    "tiny": tiny.NETWORKS, "vision": vision.NETWORKS, "images to images": dense.NETWORKS,
    "generative": generative.NETWORKS, "language": language.NETWORKS, "attention": attention.NETWORKS,
    "sequences": sequences.NETWORKS, "signals": signals.NETWORKS, "tables": tables.NETWORKS,
    "science": science.NETWORKS, "agents": agents.NETWORKS, "exports": exports.NETWORKS}
