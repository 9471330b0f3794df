#!/usr/bin/env python3
"""How long the tool goes on after a signal, and beyond a time limit.

    tools/measure_stops.py build/release/apps/monet/monet [--moments N] [--limits 0.5,1,2] [--only PART]

Every command is sent SIGINT and SIGTERM at N moments spread over its running time, and run with each
time limit. Prints the longest delay of each and fails where one is above half a second, or an exit
code is not one of those documented.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

MOST = 0.5  # seconds
EDGE = ["--hardware", "data/hardware/edge_tpu.yaml"]
QUAD = ["--hardware", "data/hardware/tpu_like_quad_core.yaml"]
ADAM = ["--training", "data/training/adam.yaml"]


def network(name, batch=1):
    return ["--workload", f"data/workload/{name}.onnx", "--batch", str(batch)]


def commands(folder):
    """Name to arguments; those of searches take --time-limit."""
    searches = {}
    for chip, hardware in (("edge", EDGE), ("quad", QUAD)):
        for name, batch in (("resnet18_cifar", 4), ("gpt2_nano", 1), ("mobilenet_v2", 1), ("vgg16", 1)):
            if not os.path.exists(f"data/workload/{name}.onnx"):
                continue
            step = hardware + network(name, batch)
            for search in ("fusion", "allocation"):
                searches[f"{search} {name} {chip}"] = ["optimise", search] + step + ADAM
            searches[f"checkpointing {name} {chip}"] = ["optimise", "checkpointing"] + step + ADAM + ["--budget", "70%"]
            searches[f"joint {name} {chip}"] = ["optimise", "joint"] + step + ADAM + ["--budget", "80%"]
        searches[f"einsum resnet18_cifar {chip}"] = ["optimise", "fusion", "--model", "einsum"] + hardware + network("resnet18_cifar")
    others = {
        "schedule": ["schedule"] + QUAD + network("resnet18_cifar", 32) + ADAM + ["--mode", "fused"],
        "execute": ["graph", "data/workload/resnet18_cifar.onnx", "--batch", "16", "--execute"],
        "core": ["core", "--model", "zigzag-3.8", "--hardware", "examples/core/two_by_two.yaml", "--workload", "examples/core/product.yaml",
                 "--mapping", "examples/core/dataflow.yaml"],
        "explore": ["explore", "data/spaces/edge_study.yaml", "--strategy", "random", "--budget", "2000", "-o", os.path.join(folder, "explore")],
        "run": ["run", "examples/edge_resnet18_cifar_optimised.yaml", "-o", os.path.join(folder, "run")],
    }
    return searches, others


class Run:
    def __init__(self, monet, arguments):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([monet] + arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def end(self, timeout):
        """Exit code and seconds since the beginning; None where it did not end."""
        try:
            _, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return None, time.monotonic() - self.begin, b""
        return self.process.returncode, time.monotonic() - self.begin, err


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet")
    parser.add_argument("--moments", type=int, default=4)
    parser.add_argument("--limits", default="0.5,1,2")
    parser.add_argument("--longest", type=float, default=6, help="latest moment of a signal, seconds")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    folder = tempfile.mkdtemp()
    searches, others = commands(folder)
    late = 0
    for name, command in {**searches, **others}.items():
        if arguments.only not in name:
            continue
        worst = {}
        for number in range(arguments.moments):
            moment = arguments.longest * random.random() ** 2
            which = (signal.SIGINT, signal.SIGTERM)[number % 2]
            run = Run(arguments.monet, command)
            time.sleep(moment)
            run.process.send_signal(which)
            code, seconds, err = run.end(30)
            delay = seconds - moment
            allowed = {0, 2, 4, 128 + which, -which}  # it may have ended; killed before it could listen
            label = which.name
            worst[label] = max(worst.get(label, (0, 0, 0)), (delay if code != 0 else 0, round(moment, 3), code if code is not None else -1))
            if code not in allowed:
                print(f"{name}: {label} at {moment:.3f} s: exit {code}: {err[-200:]!r}")
                late += 1
        if name in searches:
            for limit in [float(x) for x in arguments.limits.split(",") if x]:
                code, seconds, err = Run(arguments.monet, command + ["--time-limit", str(limit)]).end(limit + 60)
                worst[f"limit {limit:g}"] = (seconds - limit, 0, code if code is not None else -1)
                if code not in (0, 4):
                    print(f"{name}: limit {limit}: exit {code}: {err[-200:]!r}")
                    late += 1
        for label, (delay, moment, code) in worst.items():
            if delay > MOST:
                late += 1
        print(f"{name}: " + ", ".join(f"{label} {delay:.2f} s (at {moment}, exit {code}){' LATE' if delay > MOST else ''}"
                                      for label, (delay, moment, code) in worst.items()), flush=True)
    print(f"{late} too late or with another exit code")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
