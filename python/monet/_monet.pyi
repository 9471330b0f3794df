from collections.abc import Callable
from typing import Any

import numpy as np

version: str

class Error(Exception): ...

class InputError(Error):
    problems: list[tuple[str, str, str]]

class InfeasibleError(Error): ...
class InternalError(Error): ...

class Network:
    path: str
    operators: int
    parameters: int
    inputs: list[tuple[str, list[int], str]]
    outputs: list[tuple[str, list[int], str]]

class Step:
    is_training: bool

class Chip:
    name: str
    cores: list[dict[str, Any]]
    area_mm2: float
    frequency_hz: float

class ScheduleArguments:
    mode: str
    mapping: str
    stacks: str
    halo: str
    priority: str
    stream_like: list[str]
    objective: str
    lpf_limit: int
    jobs: int
    verify: bool

class Result:
    name: str
    def json(self) -> str: ...
    def table(self) -> str: ...
    def write_report(self, folder: str) -> str: ...
    def operators(self) -> list[str]: ...
    def tiles(self) -> dict[str, np.ndarray[Any, Any]]: ...
    def transfers(self) -> dict[str, np.ndarray[Any, Any]]: ...
    def memory_over_time(self) -> dict[str, np.ndarray[Any, Any]]: ...

def read_network(path: str, batch: int | None, dimensions: dict[str, int]) -> Network: ...
def training_step(network: Network, text: str, origin: str, file: bool) -> Step: ...
def inference_step(network: Network, precision: str) -> Step: ...
def read_chip(path: str) -> Chip: ...
def parse_chip(text: str, cores: dict[str, str]) -> Chip: ...
def schedule(
    step: Step, chip: Chip, arguments: ScheduleArguments, progress: Callable[[str], object] | None
) -> Result: ...
