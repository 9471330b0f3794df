"""Models neural-network training on accelerators: latency, energy and memory of one step.

    import monet

    net = monet.read_network("resnet18.onnx", batch=4)
    step = net.training_step(optimizer={"type": "adam", "learning_rate": 1e-3})
    chip = monet.read_chip("edge_tpu.yaml")
    result = step.schedule(chip, mode="fused")
    result.latency_cycles, result.energy_pj, result.peak_memory_bytes
    result.tiles["start_cycle"]  # a NumPy view of the schedule

Files are those of the command line, and options have its names; where it takes a file, a dict does as well.
Errors are `InputError` (with `.problems`), `InfeasibleError` and `InternalError`.
"""

from __future__ import annotations

from monet._monet import Error, InfeasibleError, InputError, InternalError
from monet._monet import version as __version__
from monet.columns import Columns
from monet.model import Chip, InferenceStep, Network, Result, TrainingStep, read_chip, read_network

__all__ = [
    "Chip",
    "Columns",
    "Error",
    "InferenceStep",
    "InfeasibleError",
    "InputError",
    "InternalError",
    "Network",
    "Result",
    "TrainingStep",
    "__version__",
    "read_chip",
    "read_network",
]
