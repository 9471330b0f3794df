#!/usr/bin/env python3
"""What the Python package costs beside the library: calls, memory that stays, columns, threads.

    PYTHONPATH=build/release/python python3 bench/python_bench.py [--check]

Every figure is of one process, and answers are compared before anything is timed. --check fails where
a limit is passed: 5 % a call, 2 MiB after 1,000 calls, 1 ms for the columns of a million tiles, and
1.2 times the time for twice the work on two threads."""

from __future__ import annotations

import argparse
import gc
import sys
import threading
import time
from pathlib import Path

import monet
from monet import _monet
from monet.calls import Inputs
from monet.model import _schedule_arguments

DATA = Path(__file__).resolve().parents[1] / "data"
LIMITS = {"overhead": 0.05, "kept_mib": 2.0, "columns_ms": 1.0, "two_threads": 1.2}


def step_of(network: str, batch: int) -> monet.Step:
    return monet.read_network(DATA / "workload" / network, batch=batch).training_step(DATA / "training" / "adam.yaml")


def arguments() -> _monet.ScheduleArguments:
    return _schedule_arguments(
        Inputs(), CHIP, mode="layer-by-layer", mapping=None, stacks=None, halo="cached", priority="latency",
        stream_like=(), objective="latency", lpf_limit=6, jobs=1, verify=False,
    )  # fmt: skip


CHIP = monet.read_chip(DATA / "hardware" / "edge_tpu.yaml")


def overhead(rounds: int) -> float:
    """Of `step.schedule(chip)` in processor time, of the library's own; the least of several rounds."""
    step = step_of("resnet18_cifar.onnx", 4)
    python, library = [], []
    for _ in range(rounds):
        begin = time.process_time()
        step.schedule(CHIP, mode="layer-by-layer")
        python.append(time.process_time() - begin)
        library.append(_monet.schedule_seconds(step._handle, CHIP._handle, arguments(), 1))
    return min(python) / min(library) - 1


def resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def kept_mib(calls: int) -> float:
    """Resident memory after so many calls beyond that after a tenth of them."""
    step = monet.read_network(DATA / "workload" / "ds_cnn.onnx").inference("int8")
    expected = step.schedule(CHIP, mode="layer-by-layer").to_json()
    before = 0.0
    for call in range(calls):
        if call == calls // 10:
            before = resident_mib()
        assert step.schedule(CHIP, mode="layer-by-layer").to_json() == expected
    return resident_mib() - before


def columns_ms() -> tuple[int, float]:
    """Of the columns of a schedule with over a million tiles; the least of several."""
    network = monet.read_network(DATA / "workload" / "resnet20_cifar.onnx", batch=64)
    names = [operator for operator, *_ in network._handle.graph()][:21]
    slices = [{"operator": names[-1], "loop": loop, "count": count} for loop, count in (("B", 64), ("OY", 32), ("OX", 32))]
    result = network.inference().schedule(CHIP, mode="fused", stacks={"stacks": [{"operators": names, "slices": slices}]})
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        columns = monet.Columns(result._handle.tiles())
        times.append(time.perf_counter() - begin)
        assert not columns["start_cycle"].flags.owndata
    return columns.rows, 1e3 * min(times)


def two_threads(calls: int) -> float:
    """Wall time of two threads with so many calls each, of one thread with as many."""
    step = step_of("resnet18_cifar.onnx", 4)

    def work() -> None:
        for _ in range(calls):
            step.schedule(CHIP, mode="layer-by-layer")

    def seconds(threads: int) -> float:
        all_of_them = [threading.Thread(target=work) for _ in range(threads)]
        begin = time.perf_counter()
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()
        return time.perf_counter() - begin

    work()
    return min(seconds(2) for _ in range(3)) / min(seconds(1) for _ in range(3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a limit is passed")
    parser.add_argument("--calls", type=int, default=1000, help="of the loop that must keep no memory")
    options = parser.parse_args()
    tiles, milliseconds = columns_ms()
    if tiles < 1_000_000:
        raise AssertionError(f"the timeline has {tiles:,} tiles only")
    figures = {"overhead": overhead(10), "kept_mib": kept_mib(options.calls), "columns_ms": milliseconds,
               "two_threads": two_threads(4)}  # fmt: skip
    print(f"tiles of the timeline: {tiles:,}")
    failed = False
    for name, figure in figures.items():
        passed = figure <= LIMITS[name]
        failed |= not passed
        print(f"{name:12} {figure:10.4f}   limit {LIMITS[name]}{'' if passed else '   PASSED'}")
    return int(failed and options.check)


if __name__ == "__main__":
    sys.exit(main())
