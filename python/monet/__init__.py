"""Models neural-network training on accelerators: latency, energy and memory of one step.

    import monet

    net = monet.read_network("resnet18.onnx", batch=4)
    step = net.training_step(optimizer=monet.Adam(lr=1e-3))
    chip = monet.read_chip("edge_tpu.yaml")
    result = step.schedule(chip, mode="fused")
    result.latency_cycles, result.energy_pj, result.peak_memory_bytes
    result.tiles["start_cycle"]  # a NumPy view of the schedule

Files and names of options are those of the command line, and a dict may replace a file. Errors are
`InputError` (with `.problems`), `InfeasibleError` and `InternalError`; warnings are `MonetWarning`.
"""

from __future__ import annotations

from monet import optimise
from monet._monet import Error, InfeasibleError, InputError, InternalError
from monet._monet import version as __version__
from monet.calls import Answer
from monet.chips import Chip, read_chip
from monet.columns import Columns
from monet.commands import (
    backward,
    cluster,
    compare,
    core,
    explain,
    formats,
    graph,
    hardware_costs,
    operators,
    report,
    run,
    schedule_as_stream,
    train,
    validate,
)
from monet.execution import Execution
from monet.exploring import (
    Design,
    Exploration,
    Space,
    Store,
    Strategy,
    compare_explorations,
    explore,
    read_space,
    read_store,
)
from monet.model import InferenceStep, Network, Step, TrainingStep, read_network
from monet.optimizers import LAMB, SGD, Adafactor, Adagrad, Adam, AdamW, Lion, Muon, RMSprop
from monet.results import Result
from monet.sweeps import Sweep, sweep
from monet.torch_compare import TorchComparison, compare_with_torch
from monet.torch_models import from_torch
from monet.warning import MonetWarning

__all__ = [
    "LAMB", "SGD", "Adafactor", "Adagrad", "Adam", "AdamW", "Answer", "Chip", "Columns", "Design", "Error", "Execution", "Exploration", "InfeasibleError", "InferenceStep",
    "InputError", "InternalError", "Lion", "MonetWarning", "Muon", "Network", "RMSprop", "Result", "Space", "Step", "Store", "Strategy", "Sweep",
    "TorchComparison", "TrainingStep", "__version__", "backward", "cluster", "compare", "compare_explorations",
    "compare_with_torch", "core", "explain", "explore", "formats", "from_torch", "graph", "hardware_costs", "operators",
    "optimise", "read_chip", "read_network", "read_space", "read_store", "report", "run", "schedule_as_stream",
    "sweep", "train", "validate",
]  # fmt: skip
