#!/usr/bin/env python3
"""Measures a GPU and writes its kernel table.

    tools/measure_device.py -o my_gpu [--peaks bf16=989,fp32=67] [--bandwidth 3350]

The script writes my_gpu.yaml, the device of a cluster file, and its points: my_gpu_matmul.csv, my_gpu_vector.csv and
my_gpu_attention.csv. It needs PyTorch with CUDA and two minutes. --peaks and --bandwidth are those of the data sheet; the
defaults are the highest measured rates. The points are those of data/cluster/h100_*.csv.

A point is the time of the device without the host. A waiting kernel blocks the device while the host launches the
repetitions after it, and events before and after them measure their time. Operands and results alternate,
so that no repetition finds those of the previous one in the cache.
"""
import argparse
import csv
import datetime
import math
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

TABLES = Path(__file__).resolve().parent.parent / "data" / "cluster"
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
# Tiles of products in cuBLAS: up to Ampere, and from Hopper on.
TILES = ("[[128, 256, 1], [256, 128, 1], [128, 128, 0.97], [64, 256, 0.85], [256, 64, 0.85], [64, 128, 0.85], "
         "[128, 64, 0.85], [64, 64, 0.7]]",
         "[[256, 128, 1], [128, 256, 1], [192, 192, 1], [192, 128, 1], [128, 192, 1], [128, 160, 1], [160, 128, 1], "
         "[128, 128, 1], [128, 64, 0.85], [64, 128, 0.85], [64, 64, 0.85]]")


class Device:
    """Measures the time of kernels on one device."""

    def __init__(self, name):
        self.name = name
        self.is_gpu = name.startswith("cuda")
        if self.is_gpu:
            properties = torch.cuda.get_device_properties(0)
            self.cache = getattr(properties, "L2_cache_size", 50 << 20)
            self.memory = properties.total_memory
            self.units = properties.multi_processor_count
            self.title = properties.name
            self.is_hopper = properties.major >= 9
        else:
            self.cache, self.memory, self.units, self.title = 1 << 20, 1 << 34, 1, "host"
            self.is_hopper = False

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def hold(self, nanoseconds):
        """Keeps the device busy for about this time."""
        torch.cuda._sleep(int(nanoseconds * 2))

    def sets(self, nbytes):
        """Returns the number of operand sets that exceeds the cache."""
        return max(2, min(64, math.ceil(3 * self.cache / max(nbytes, 1)), int(0.6 * self.memory / max(nbytes, 1))))

    def kernel_ns(self, run, aim_ms=15.0, most=200):
        """Returns nanoseconds of run(i) on the device: the median of three queues of repetitions."""
        for i in range(3):
            run(i)
        self.wait()
        begin = time.perf_counter()
        for i in range(4):
            run(i)
        launched = time.perf_counter() - begin
        self.wait()
        whole = time.perf_counter() - begin
        count = max(4, min(most, int(aim_ms * 1e-3 / (whole / 4))))
        if not self.is_gpu:
            return whole / 4 * 1e9
        times = []
        hold = launched / 4 * count * 1e9 * 1.5 + 3e5
        for _ in range(3):
            for _ in range(3):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                self.hold(hold)
                start.record()
                for i in range(count):
                    run(i)
                end.record()
                ahead = not start.query()  # the host finished before the device began
                self.wait()
                if ahead or hold > 1e8:  # never true if the host waits for the device in run()
                    break
                hold *= 2
            times.append(start.elapsed_time(end) * 1e6 / count)
        return statistics.median(times)


class Rows:
    """A CSV file of points, written as they are measured, with the columns and rows of the H100's."""

    def __init__(self, base, kind, source, quick):
        lines = (TABLES / f"h100_{kind}.csv").read_text(encoding="utf-8").splitlines()
        self.columns, *points = csv.reader(line for line in lines if not line.startswith("#"))
        self.points = [point[:-1] for point in points]
        if quick:  # the smallest of each kind
            kinds = {}
            for point in sorted(self.points,
                                key=lambda point: math.prod(int(word) for word in point if word.isdigit())):
                kinds.setdefault(tuple(word for word in point if not word.isdigit()), point)
            self.points = list(kinds.values())
        self.file = open(f"{base}_{kind}.csv", "w", encoding="utf-8")
        self.file.write("# Times of kernels on the device alone, operands not in its cache.\n"
                        f"# source: {source}\n" + ",".join(self.columns) + "\n")

    def measure(self, measure):
        """Writes the nanoseconds measure(point) of every point, and returns all points that could be measured."""
        found = []
        for point in self.points:
            ns = attempt(" ".join(point), lambda: measure(point))
            if ns:
                self.file.write(",".join([*point, str(round(ns))]) + "\n")
                self.file.flush()
                found.append((point, ns))
        return found


def attempt(what, measure):
    """Prints a case that fails and continues with the others."""
    try:
        return measure()
    except Exception as error:  # pylint: disable=broad-except
        print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", file=sys.stderr)
        return None


def random(device, *shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=device.name, dtype=torch.float32).to(dtype)


# Products.

def matmul_ns(device, m, n, k, batch, name):
    """Weight gradients, whose k is the tokens, read both operands along k; others read them as F.linear does."""
    if name == "fp8":
        return fp8_ns(device, m, n, k)
    dtype = TYPES[name]
    size = torch.empty((), dtype=dtype).element_size()
    sets = device.sets(size * batch * (m * k + k * n + m * n))
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    if batch > 1:
        left = [random(device, batch, m, k, dtype=dtype) for _ in range(sets)]
        right = [random(device, batch, k, n, dtype=dtype) for _ in range(sets)]
        out = [torch.empty(batch, m, n, device=device.name, dtype=dtype) for _ in range(sets)]
        return device.kernel_ns(lambda i: torch.bmm(left[i % sets], right[i % sets], out=out[i % sets]))
    along = k > m and k > n
    left = [random(device, k, m, dtype=dtype).t() if along else random(device, m, k, dtype=dtype) for _ in range(sets)]
    right = [random(device, k, n, dtype=dtype) if along else random(device, n, k, dtype=dtype).t()
             for _ in range(sets)]
    out = [torch.empty(m, n, device=device.name, dtype=dtype) for _ in range(sets)]
    return device.kernel_ns(lambda i: torch.mm(left[i % sets], right[i % sets], out=out[i % sets]))


def fp8_ns(device, m, n, k):
    sets = device.sets(m * k + k * n + 2 * m * n)
    left = [random(device, m, k).to(torch.float8_e4m3fn) for _ in range(sets)]
    right = [random(device, n, k).to(torch.float8_e4m3fn).t() for _ in range(sets)]
    one = torch.ones((), device=device.name, dtype=torch.float32)
    out = [None] * sets

    def run(i):
        out[i % sets] = torch._scaled_mm(left[i % sets], right[i % sets], one, one, out_dtype=torch.bfloat16)
    return device.kernel_ns(run)


def measure_products(device, table):
    """Returns TFLOP/s of the fastest product of each type."""
    def matmul(point):
        m, n, k, batch = map(int, point[:4])
        return matmul_ns(device, m, n, k, batch, point[4])

    best = {}
    for (m, n, k, batch, name), ns in table.measure(matmul):
        best[name] = max(best.get(name, 0), 2e-3 * int(m) * int(n) * int(k) * int(batch) / ns)
    return best


# Other kernels.

def in_turn(device, operands, operate, nbytes):
    """Runs operate(*operands) on alternating sets of operands and results."""
    sets = device.sets(nbytes)
    given = [operands() for _ in range(sets)]
    made = [None] * sets

    def run(i):
        made[i % sets] = operate(*given[i % sets])
    return device.kernel_ns(run)


def backward_ns(device, operands, forward, nbytes):
    """Computes the gradients of all operands; the tensors kept by the forward pass alternate too."""
    sets = device.sets(nbytes)
    kept = []
    for _ in range(sets):
        leaves = [x.requires_grad_() for x in operands()]
        result = forward(*leaves)
        kept.append((result, leaves, torch.randn_like(result)))
    made = [None] * sets

    def run(i):
        result, leaves, gradient = kept[i % sets]
        made[i % sets] = torch.autograd.grad(result, leaves, gradient, retain_graph=True)
    return device.kernel_ns(run, most=100)


def norm_backward_ns(device, rows, columns, of_data):
    """Computes the gradient of a layer norm's data, or of its scale."""
    def operands():
        x = random(device, rows, columns)
        weight, bias = random(device, columns), random(device, columns)
        _, mean, deviation = torch.native_layer_norm(x, (columns,), weight, bias, 1e-5)
        return random(device, rows, columns), x, mean, deviation, weight, bias

    def gradient(dy, x, mean, deviation, weight, bias):
        return torch.ops.aten.native_layer_norm_backward(dy, x, (columns,), mean, deviation, weight, bias,
                                                         [of_data, not of_data, False])
    return in_turn(device, operands, gradient, (6 if of_data else 4) * rows * columns)


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


def vector_ns(device, kernel, rows, columns, name):
    nbytes = 2 * rows * columns

    def tensors(count=1):
        return [random(device, rows, columns) for _ in range(count)]

    def norm(x, weight, bias):
        return F.layer_norm(x, (columns,), weight, bias)

    def softmax(x):
        return F.softmax(x, -1)

    if kernel == "update":
        return update_ns(device, columns, name)
    if kernel in ("layernorm_backward", "layernorm_weights"):
        return norm_backward_ns(device, rows, columns, kernel == "layernorm_backward")
    if kernel == "layernorm":
        return in_turn(device, lambda: (*tensors(), random(device, columns), random(device, columns)), norm,
                       2 * nbytes)
    if kernel == "elementwise":
        return in_turn(device, lambda: tensors(2), torch.add, 3 * nbytes)
    if kernel == "column_sum":
        return in_turn(device, tensors, lambda x: x.sum(0), nbytes)
    operate = tanh_gelu if kernel.startswith("gelu") else softmax
    if kernel.endswith("_backward"):
        return backward_ns(device, tensors, operate, 3 * nbytes)
    return in_turn(device, tensors, operate, 2 * nbytes)


def update_ns(device, count, name):
    """Runs AdamW on `count` numbers in 148 tensors, or in 300 above a thousand million."""
    tensors = 300 if count > 1_000_000_000 else 148
    weights = [random(device, count // tensors, dtype=TYPES[name]).requires_grad_() for _ in range(tensors)]
    for weight in weights:
        weight.grad = random(device, count // tensors, dtype=TYPES[name])
    optimizer = torch.optim.AdamW(weights, lr=1e-4, **({"fused": True} if device.is_gpu else {}))
    return device.kernel_ns(lambda i: optimizer.step(), most=10)


def attention_ns(device, heads, sequence, size, causal, direction):
    samples = max(1, heads // 16)

    def operands():
        # The layout of a joint product of query, key and value: heads lie within a token.
        shape = (samples, sequence, heads // samples, size)
        return [random(device, *shape).transpose(1, 2) for _ in range(3)]

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    nbytes = 2 * heads * sequence * size
    if direction == "forward":
        return in_turn(device, operands, attend, 4 * nbytes)
    return backward_ns(device, operands, attend, 8 * nbytes)


# Bandwidth and launches.

def measure_copies(device, quick):
    """Returns GB/s of the fastest copy."""
    best = 0.0
    for log in range(14, 20 if quick else 33, 2):
        n = 1 << log

        def operands(n=n):
            return (torch.randint(0, 255, (n,), device=device.name, dtype=torch.uint8),)

        ns = attempt(f"copy {n}", lambda: in_turn(device, operands, torch.clone, 2 * n))
        best = max(best, 2 * n / ns if ns else 0.0)
    return best


def measure_launch(device):
    """Adds one element: the overhead of a kernel."""
    x, y = random(device, 1), random(device, 1)
    return device.kernel_ns(lambda i: torch.add(x, y, out=x), most=500)


class SmallBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.up = torch.nn.Linear(64, 64)
        self.down = torch.nn.Linear(64, 64)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def measure_host(device):
    """Runs forward and backward passes of a network whose kernels are all shorter than their launch."""
    net = torch.nn.Sequential(*[SmallBlock() for _ in range(50)]).to(device.name, torch.bfloat16)
    x = random(device, 16, 64)

    def step():
        net(x).sum().backward()
    for _ in range(5):
        step()
    device.wait()
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        step()
        device.wait()
        times.append(time.perf_counter() - begin)
    kernels = 1000
    if device.is_gpu:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            step()
            device.wait()
        kernels = sum(1 for event in trace.events() if str(event.device_type).endswith("CUDA"))
    return statistics.median(times) * 1e9 / max(kernels, 1)


def rounded(value, digits=3):
    return float(f"{value:.{digits}g}")


def write_table(path, device, figures, name):
    peaks = ", ".join(f"{key}: {value:g}" for key, value in figures["peaks"].items())
    text = f"""# Measured by tools/measure_device.py.
name: {device.title}
measured: true
source: "{figures['source']}"
peak_tflops: {{{peaks}}}
memory_bytes: {device.memory}
memory_bandwidth_gb_per_s: {figures['bandwidth']:g}
memory_share: {figures['share']:.3g}          # of the largest copies
workspace_bytes: {figures['workspace']:.3g}
kernel_launch_ns: {figures['launch']:.0f}           # of a kernel of one element, one after another
host_ns_per_kernel: {figures['host']:.0f}        # of a network of small kernels, launched by eager PyTorch
matmul:
  units: {device.units}
  tiles: {TILES[device.is_hopper]}
  fill: {192 if device.is_hopper else 64}
  memory_share: {figures['share']:.3g}
  points: {name}_matmul.csv
vector: {{points: {name}_vector.csv}}
attention: {{exponential_flops: {256 if device.is_hopper else 128}, points: {name}_attention.csv}}
"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def parsed_peaks(text):
    return {key: float(value) for key, value in (pair.split("=") for pair in text.split(",") if pair)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, metavar="NAME", help="prefix of the written files")
    parser.add_argument("--peaks", default="", help="TFLOP/s of the data sheet by type: bf16=989,tf32=495")
    parser.add_argument("--bandwidth", type=float, help="GB/s of the data sheet")
    parser.add_argument("--quick", action="store_true", help="few points, to try the script")
    parser.add_argument("--cpu", action="store_true", help="on the host, to try the script")
    arguments = parser.parse_args()
    device = Device("cpu" if arguments.cpu else "cuda")
    torch.manual_seed(1)
    versions = f"{device.title}, PyTorch {torch.__version__}, {datetime.date.today().isoformat()}"
    base = arguments.output
    begin = time.perf_counter()

    def told(what):
        print(f"{time.perf_counter() - begin:6.1f} s  {what}", flush=True)
    warm = random(device, 256, 256)
    (warm @ warm).sum().item()
    free, total = torch.cuda.mem_get_info() if device.is_gpu else (0, 0)
    workspace = total - free - (torch.cuda.memory_reserved() if device.is_gpu else 0)
    launch = measure_launch(device)
    host = measure_host(device)
    copied = measure_copies(device, arguments.quick)
    told(f"launch {launch:.0f} ns, host {host:.0f} ns, copy {copied:.0f} GB/s, workspace {workspace / 1e6:.0f} MB")
    best = measure_products(device, Rows(base, "matmul", versions, arguments.quick))
    told("products: " + ", ".join(f"{key} {value:.0f} TFLOP/s" for key, value in best.items()))
    Rows(base, "attention", versions, arguments.quick).measure(
        lambda point: attention_ns(device, *map(int, point[:3]), point[3] == "yes", point[4]))
    told("attention")
    Rows(base, "vector", versions, arguments.quick).measure(
        lambda point: vector_ns(device, point[0], int(point[1]), int(point[2]), point[3]))
    told("other kernels")
    peaks = parsed_peaks(arguments.peaks) or {key: rounded(value) for key, value in best.items()}
    bandwidth = arguments.bandwidth or rounded(copied)
    write_table(base + ".yaml", device, {"source": versions, "peaks": peaks, "bandwidth": bandwidth,
                                         "share": min(1.0, copied / bandwidth), "workspace": workspace,
                                         "launch": launch, "host": host}, base.split("/")[-1])
    told("done")


if __name__ == "__main__":
    main()
