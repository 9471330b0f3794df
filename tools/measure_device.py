#!/usr/bin/env python3
"""Measures a GPU and writes its kernel table.

    tools/measure_device.py -o my_gpu [--peaks bf16=989,fp32=67] [--bandwidth 3350]

writes my_gpu.yaml, which a cluster file names as its device, and the points beside it: my_gpu_matmul.csv,
my_gpu_vector.csv, my_gpu_attention.csv; my_gpu_other.csv has what the table does not read. Needs PyTorch
with CUDA and two minutes. --peaks and --bandwidth are those of the data sheet; where they are left out, the
highest rates that were measured stand for them.

A point is the device's time alone: a kernel that waits holds the device while the host launches the
repetitions behind it, and events before and behind them say what they take. Operands and results take
turns so that no repetition finds the last one's in the cache.
"""
import argparse
import datetime
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
# What cuBLAS cuts products into, up to Ampere, and from Hopper on.
TILES = ("[[128, 256, 1], [256, 128, 1], [128, 128, 0.97], [64, 256, 0.85], [256, 64, 0.85], [64, 128, 0.85], "
         "[128, 64, 0.85], [64, 64, 0.7]]",
         "[[256, 128, 1], [128, 256, 1], [192, 192, 1], [192, 128, 1], [128, 192, 1], [128, 160, 1], [160, 128, 1], "
         "[128, 128, 1], [128, 64, 0.85], [64, 128, 0.85], [64, 64, 0.85]]")


class Device:
    """Times what runs on one device."""

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
        """Keeps the device busy for about that long."""
        torch.cuda._sleep(int(nanoseconds * 2))

    def sets(self, nbytes):
        """So many sets of operands hold more than the cache does."""
        return max(2, min(64, math.ceil(3 * self.cache / max(nbytes, 1)), int(0.6 * self.memory / max(nbytes, 1))))

    def kernel_ns(self, run, aim_ms=15.0, most=200):
        """Nanoseconds of run(i) on the device: the median of three queues of repetitions."""
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
                ahead = not start.query()  # the host was done before the device began
                self.wait()
                if ahead or hold > 1e8:  # never, where the host waits for the device in run()
                    break
                hold *= 2
            times.append(start.elapsed_time(end) * 1e6 / count)
        return statistics.median(times)


class Rows:
    """A CSV file of points, written as they come."""

    def __init__(self, path, comment, columns):
        self.file = open(path, "w", encoding="utf-8")
        for line in comment.splitlines():
            self.file.write(f"# {line}\n")
        self.file.write(",".join(columns) + "\n")

    def add(self, *cells):
        self.file.write(",".join(str(c) for c in cells) + "\n")
        self.file.flush()


def attempt(what, measure):
    """A case that fails is told, and does not stop the others."""
    try:
        return measure()
    except Exception as error:  # pylint: disable=broad-except
        print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
              file=sys.stderr)
        return None


def random(device, *shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=device.name, dtype=torch.float32).to(dtype)


# Products.

def matmul_ns(device, m, n, k, batch, name):
    """Weight gradients, whose k is the tokens, read both operands along k, others as F.linear does."""
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
    left = [random(device, k, m, dtype=dtype).t() if along else random(device, m, k,
                                                                       dtype=dtype) for _ in range(sets)]
    right = [random(device, k, n, dtype=dtype) if along else random(device, n, k,
                                                                    dtype=dtype).t() for _ in range(sets)]
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


def products():
    """(m, n, k, batch, type)."""
    rows = []
    for hidden in (256, 768, 1024, 2048, 4096, 8192, 12288):
        for tokens in (256, 1024, 4096, 16384):
            rows += [(tokens, 4 * hidden, hidden, 1), (tokens, hidden, 4 * hidden, 1)]
            if tokens >= 1024:
                rows.append((4 * hidden, hidden, tokens, 1))
    rows += [(tokens, 3 * hidden, hidden, 1) for hidden in (512, 1536, 5120) for tokens in (512, 2048, 8192)]
    for hidden in (768, 1024, 2048, 4096):
        for tokens in (2048, 8192):
            rows += [(tokens, 4 * hidden, hidden, 1), (tokens, hidden, 4 * hidden, 1),
                     (4 * hidden, hidden, tokens, 1)]
    rows += [(tokens, hidden, hidden, 1) for hidden in (768, 1024, 2048, 4096, 8192) for tokens in (1024, 8192)]
    rows += [(hidden, hidden, tokens, 1) for hidden in (512, 1536, 5120) for tokens in (2048, 8192)]
    rows += [(tokens, hidden, hidden, 1) for hidden in (128, 384, 1280, 3072) for tokens in (128, 8192)]
    for hidden in (768, 2048, 5120):  # logits
        rows += [(4096, 50304, hidden, 1), (4096, hidden, 50304, 1), (50304, hidden, 4096, 1)]
    rows += [(size, size, size, 1) for size in (128, 512, 1024, 2048, 3072, 4096, 6144, 8192, 16384)]
    rows += [(m, n, n, 1) for n in (4096, 12288) for m in (1, 16, 64)]
    rows += [(1000, 1000, 1000, 1), (1023, 4097, 2047, 1), (3000, 3000, 3000, 1), (8192, 4100, 1030, 1)]
    for batch in (16, 128):  # attention
        for s in (128, 512, 1024, 2048, 4096):
            for d in (64, 128):
                if batch * s * s <= 1 << 29:
                    rows += [(s, s, d, batch), (s, d, s, batch)]
    rows = [(*row, "bf16") for row in dict.fromkeys(rows)]
    rows += [(tokens, n, hidden, 1, "bf16") for n, hidden in ((50257, 768), (1027, 1030), (4100, 4098))
             for tokens in (1024, 8192)]  # rows that do not begin at multiples of 16 bytes
    shapes = [(256, 1024, 1024), (1024, 1024, 1024), (1024, 4096, 1024), (2048, 2048, 2048), (4096, 1024, 4096),
              (4096, 4096, 4096), (1024, 4096, 16384), (8192, 8192, 8192), (8192, 768, 3072), (8192, 3072, 768)]
    rows += [(*shape, 1, name) for name in ("tf32", "fp32", "fp8") for shape in shapes]
    rows += [(m, m, 64, 128, name) for name in ("tf32", "fp32") for m in (128, 1024)]
    rows += [(m, 64, m, 128, name) for name in ("tf32", "fp32") for m in (128, 1024)]
    return rows


def measure_products(device, table, quick):
    best = {}
    for m, n, k, batch, name in products()[:: 40 if quick else 1]:
        ns = attempt(f"product {m} {n} {k} {batch} {name}", lambda: matmul_ns(device, m, n, k, batch, name))
        if ns:
            table.add(m, n, k, batch, name, round(ns))
            best[name] = max(best.get(name, 0), 2e-3 * m * n * k * batch / ns)
    return best


# Others.

def in_turn(device, operands, operate, nbytes):
    """operate(*operands) on sets of operands that take turns, and so do the results."""
    sets = device.sets(nbytes)
    given = [operands() for _ in range(sets)]
    made = [None] * sets

    def run(i):
        made[i % sets] = operate(*given[i % sets])
    return device.kernel_ns(run)


def backward_ns(device, operands, forward, nbytes):
    """Gradients of all operands; what the forward pass keeps takes turns, too."""
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
    """The gradient of a layer norm's data, or of what they are scaled by."""
    def operands():
        x = random(device, rows, columns)
        weight, bias = random(device, columns), random(device, columns)
        _, mean, deviation = torch.native_layer_norm(x, (columns,), weight, bias, 1e-5)
        return random(device, rows, columns), x, mean, deviation, weight, bias

    def gradient(dy, x, mean, deviation, weight, bias):
        return torch.ops.aten.native_layer_norm_backward(dy, x, (columns,), mean, deviation, weight, bias,
                                                         [of_data, not of_data, False])
    return in_turn(device, operands, gradient, (6 if of_data else 4) * rows * columns)


def measure_vectors(device, table, quick):
    def add(kernel, rows, columns, measure):
        ns = attempt(f"{kernel} {rows} {columns}", measure)
        if ns:
            table.add(kernel, rows, columns, "bf16", round(ns))

    def tanh_gelu(x):
        return F.gelu(x, approximate="tanh")

    for log in range(10, 18 if quick else 30, 2):
        n = 1 << log
        add("elementwise", 1, n, lambda: in_turn(
            device, lambda: (random(device, n), random(device, n)), torch.add, 6 * n))
        add("gelu", 1, n, lambda: in_turn(device, lambda: (random(device, n),), tanh_gelu, 4 * n))
        add("gelu_backward", 1, n, lambda: backward_ns(device, lambda: (random(device, n),), tanh_gelu, 6 * n))
    for columns in (256, 768, 1024, 2048, 4096, 8192, 12288)[:: 7 if quick else 1]:
        def norm(x, weight, bias, columns=columns):
            return F.layer_norm(x, (columns,), weight, bias)
        for rows in (128, 512, 2048, 8192, 32768)[:: 5 if quick else 1]:
            def operands(rows=rows, columns=columns):
                return random(device, rows, columns), random(device, columns), random(device, columns)
            nbytes = 2 * rows * columns
            add("layernorm", rows, columns, lambda: in_turn(device, operands, norm, 2 * nbytes))
            add("layernorm_backward", rows, columns, lambda: norm_backward_ns(device, rows, columns, True))
            add("layernorm_weights", rows, columns, lambda: norm_backward_ns(device, rows, columns, False))
            add("column_sum", rows, columns, lambda: in_turn(
                device, lambda: (random(device, rows, columns),), lambda x: x.sum(0), nbytes))

    def softmax(x):
        return F.softmax(x, -1)
    for columns in (128, 512, 1024, 2048, 4096, 16384, 50304)[:: 7 if quick else 1]:
        for rows in (1024, 8192, 65536, 262144)[:: 4 if quick else 1]:
            if rows * columns > 1 << 29:
                continue
            nbytes = 2 * rows * columns
            add("softmax", rows, columns, lambda: in_turn(
                device, lambda: (random(device, rows, columns),), softmax, 2 * nbytes))
            add("softmax_backward", rows, columns, lambda: backward_ns(
                device, lambda: (random(device, rows, columns),), softmax, 3 * nbytes))


def attention_shapes(quick):
    """(batch x heads, sequence, size, causal)."""
    if quick:
        return [(2, 64, 64, True)]
    shapes = []
    for size in (64, 128):
        for sequence in (128, 256, 512, 1024, 2048, 4096, 8192, 16384):
            for heads in (16, 48, 128):
                if heads * sequence <= 1 << 20:
                    shapes.append((heads, sequence, size, True))
        shapes += [(64, sequence, size, False) for sequence in (512, 2048, 8192)]
    return shapes + [(64, 1024, size, True) for size in (80, 96, 100, 256)] + [(48, 1000, 64, True)]


def measure_attention(device, table, quick):
    for heads, sequence, size, causal in attention_shapes(quick):
        samples = max(1, heads // 16)
        each = heads // samples

        def operands(samples=samples, each=each, sequence=sequence, size=size):
            # As a product for all three leaves them: heads lie within a token.
            return [random(device, samples, sequence, each, size).transpose(1, 2) for _ in range(3)]

        def attend(q, k, v, causal=causal):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        nbytes = 2 * heads * sequence * size
        name = f"attention {heads} {sequence} {size} {causal}"
        yes = "yes" if causal else "no"
        ns = attempt(name, lambda: in_turn(device, operands, attend, 4 * nbytes))
        if ns:
            table.add(heads, sequence, size, yes, "forward", "bf16", round(ns))
        ns = attempt(name + " backward", lambda: backward_ns(device, operands, attend, 8 * nbytes))
        if ns:
            table.add(heads, sequence, size, yes, "backward", "bf16", round(ns))


# Bandwidth, launches, the optimiser, long runs.

def measure_copies(device, other, quick):
    best = 0.0
    for log in range(14, 20 if quick else 33, 2):
        n = 1 << log
        ns = attempt(f"copy {n}",
                     lambda: in_turn(device,
                                     lambda: (torch.randint(0, 255, (n,), device=device.name, dtype=torch.uint8),),
                                     torch.clone, 2 * n))
        if ns:
            other.add("copy", n, "", "", round(ns))
            best = max(best, 2 * n / ns)
    return best


def measure_hot(device, other, quick):
    """The same operands again and again: what the cache holds is read from there."""
    for log in range(12, 16 if quick else 28, 2):
        n = 1 << log
        x, y, z = random(device, n), random(device, n), random(device, n)
        ns = attempt("add, from the cache", lambda: device.kernel_ns(lambda i: torch.add(x, y, out=z)))
        other.add("add_from_cache", n, "", "", round(ns or 0))
    for m, n, k in ((1024, 768, 768), (1024, 3072, 768), (8192, 768, 768), (8192, 3072, 768), (2048, 2048, 2048)):
        a, b = random(device, m, k), random(device, n, k).t()
        out = torch.empty(m, n, device=device.name, dtype=torch.bfloat16)
        ns = attempt("product, from the cache", lambda: device.kernel_ns(lambda i: torch.mm(a, b, out=out)))
        other.add("matmul_from_cache", m, n, k, round(ns or 0))


def measure_layouts(device, other):
    """What the order of operands in memory makes of a product, and another type of the same size."""
    for m, n, k in ((4096, 4096, 4096), (8192, 3072, 768), (8192, 768, 3072), (768, 3072, 8192)):
        for form in ("nt", "nn", "tn"):
            a = random(device, k, m).t() if form[0] == "t" else random(device, m, k)
            b = random(device, n, k).t() if form[1] == "t" else random(device, k, n)
            ns = attempt("layouts", lambda: device.kernel_ns(lambda i: torch.mm(a, b)))
            other.add("matmul_" + form, m, n, k, round(ns or 0))
    for size in (1024, 4096, 8192):
        a, b = random(device, size, size, dtype=torch.float16), random(device, size, size, dtype=torch.float16)
        ns = attempt("fp16", lambda: device.kernel_ns(lambda i: torch.mm(a, b.t())))
        other.add("matmul_fp16", size, size, size, round(ns or 0))


def measure_losses(device, other, quick):
    for rows, columns in ((512, 1024),) if quick else ((1024, 50304), (8192, 50304), (8192, 1024), (16384, 32000)):
        labels = torch.randint(0, columns, (rows,), device=device.name)
        nbytes = 2 * rows * columns

        def loss(x, labels=labels):
            return F.cross_entropy(x, labels)
        ns = attempt("loss", lambda: in_turn(device, lambda: (random(device, rows, columns),), loss, 2 * nbytes))
        other.add("cross_entropy", rows, columns, "", round(ns or 0))
        ns = attempt("loss",
                     lambda: backward_ns(device, lambda: (random(device, rows, columns),), loss, 3 * nbytes))
        other.add("cross_entropy_backward", rows, columns, "", round(ns or 0))
    for tokens, rows, columns in ((512, 1024, 256),) if quick else ((1024, 50304, 768), (8192, 50304, 768),
                                                                   (8192, 50304, 4096)):
        index = torch.randint(0, rows, (tokens,), device=device.name)
        table = random(device, rows, columns)
        gradient = random(device, tokens, columns)
        ns = attempt("embedding", lambda: device.kernel_ns(lambda i: F.embedding(index, table)))
        other.add("embedding", tokens, rows, columns, round(ns or 0))
        ns = attempt("embedding", lambda: device.kernel_ns(
            lambda i: torch.ops.aten.embedding_dense_backward(gradient, index, rows, -1, False), most=20))
        other.add("embedding_backward", tokens, rows, columns, round(ns or 0))


def measure_updates(device, table, other, quick):
    for tensors, each in ((4, 1000),) if quick else ((148, 100_000), (148, 1_000_000), (300, 4_000_000)):
        for name in ("bf16", "fp32"):
            dtype = TYPES[name]
            weights = [random(device, each, dtype=dtype).requires_grad_() for _ in range(tensors)]
            for weight in weights:
                weight.grad = random(device, each, dtype=dtype)
            optimizer = torch.optim.AdamW(weights, lr=1e-4, **({"fused": True} if device.is_gpu else {}))
            ns = attempt("adamw", lambda: device.kernel_ns(lambda i: optimizer.step(), most=10))
            if ns:
                table.add("update", 1, tensors * each, name, round(ns))
            ns = attempt("clip", lambda: device.kernel_ns(
                lambda i: torch.nn.utils.clip_grad_norm_(weights, 1.0), most=10))
            other.add("clip_grad_norm_" + name, tensors, each, "", round(ns or 0))
            del weights, optimizer


def measure_launch(device, other):
    """One element added: what a kernel takes besides its work."""
    x, y = random(device, 1), random(device, 1)
    ns = device.kernel_ns(lambda i: torch.add(x, y, out=x), most=500)
    other.add("empty_kernel", "", "", "", round(ns))
    for name, run in (("host_add", lambda: torch.add(x, y, out=x)), ("host_add_new", lambda: x + y)):
        device.wait()
        begin = time.perf_counter()
        for _ in range(800):
            run()
        other.add(name, "", "", "", round((time.perf_counter() - begin) / 800 * 1e9))
        device.wait()
    return ns


class SmallBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.up = torch.nn.Linear(64, 64)
        self.down = torch.nn.Linear(64, 64)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def measure_host(device, other):
    """Forward and backward passes of a network whose kernels are all shorter than their launch."""
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
    ns = statistics.median(times) * 1e9 / max(kernels, 1)
    other.add("host_ns_per_kernel", kernels, "", "", round(ns))
    return ns


def measure_sustained(device, other, seconds):
    """A large product for so long: its rate by half seconds."""
    size = 8192 if device.is_gpu else 64
    a, b = random(device, size, size), random(device, size, size)
    out = torch.empty_like(a)
    begin = time.perf_counter()
    ns = 0.0
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        count = 0
        while time.perf_counter() - start < 0.5:
            for _ in range(20):
                torch.mm(a, b, out=out)
            device.wait()
            count += 20
        ns = (time.perf_counter() - start) * 1e9 / count
        other.add("sustained", size, f"{time.perf_counter() - begin:.2f}", "", round(ns))
    return ns


def measure_mixed(device, other, seconds):
    """Products and sums in turn, for so long, and what they take in short queues."""
    size = 4096 if device.is_gpu else 64
    a, b, out = (random(device, size, size) for _ in range(3))
    x, y, z = (random(device, 8 * size, size) for _ in range(3))

    def run(_):
        torch.mm(a, b, out=out)
        torch.add(x, y, out=z)
    other.add("mixed_short", size, "", "", round(device.kernel_ns(run)))
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        for _ in range(500):
            run(0)
        device.wait()
        other.add("mixed_sustained", size, "", "", round((time.perf_counter() - start) * 1e9 / 500))


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
    parser.add_argument("-o", "--output", required=True, metavar="NAME", help="files begin with this")
    parser.add_argument("--peaks", default="", help="TFLOP/s of the data sheet by type: bf16=989,tf32=495")
    parser.add_argument("--bandwidth", type=float, help="GB/s of the data sheet")
    parser.add_argument("--sustained", type=float, default=15, metavar="SECONDS", help="of the long product")
    parser.add_argument("--quick", action="store_true", help="few points, to try the script")
    parser.add_argument("--cpu", action="store_true", help="on the host, to try the script")
    arguments = parser.parse_args()
    device = Device("cpu" if arguments.cpu else "cuda")
    torch.manual_seed(1)
    versions = f"{device.title}, PyTorch {torch.__version__}, {datetime.date.today().isoformat()}"
    base = arguments.output
    other = Rows(base + "_other.csv", f"What a kernel table does not read.\nsource: {versions}",
                 ("what", "a", "b", "c", "ns"))
    begin = time.perf_counter()

    def told(what):
        print(f"{time.perf_counter() - begin:6.1f} s  {what}", flush=True)
    warm = random(device, 256, 256)
    (warm @ warm).sum().item()
    free, total = torch.cuda.mem_get_info() if device.is_gpu else (0, 0)
    workspace = total - free - (torch.cuda.memory_reserved() if device.is_gpu else 0)
    launch = measure_launch(device, other)
    host = measure_host(device, other)
    copied = measure_copies(device, other, arguments.quick)
    told(f"launch {launch:.0f} ns, host {host:.0f} ns, copy {copied:.0f} GB/s, workspace {workspace / 1e6:.0f} MB")
    text = f"Times of kernels on the device alone, operands not in its cache.\nsource: {versions}"
    best = measure_products(device, Rows(base + "_matmul.csv", text, ("m", "n", "k", "batch", "type", "ns")),
                            arguments.quick)
    told("products: " + ", ".join(f"{key} {value:.0f} TFLOP/s" for key, value in best.items()))
    measure_attention(device, Rows(base + "_attention.csv", text,
                                   ("heads", "sequence", "size", "causal", "pass", "type", "ns")), arguments.quick)
    told("attention")
    vectors = Rows(base + "_vector.csv", text, ("kernel", "rows", "columns", "type", "ns"))
    measure_vectors(device, vectors, arguments.quick)
    told("other kernels")
    measure_hot(device, other, arguments.quick)
    if device.is_gpu:
        measure_layouts(device, other)
    measure_losses(device, other, arguments.quick)
    measure_updates(device, vectors, other, arguments.quick)
    told("cache, losses, updates")
    measure_mixed(device, other, 0.1 if arguments.quick else 3)
    last = measure_sustained(device, other, 1 if arguments.quick else arguments.sustained)
    told(f"sustained {last:.0f} ns")
    peaks = parsed_peaks(arguments.peaks) or {key: rounded(value) for key, value in best.items()}
    bandwidth = arguments.bandwidth or rounded(copied)
    write_table(base + ".yaml", device, {"source": versions, "peaks": peaks, "bandwidth": bandwidth,
                                         "share": min(1.0, copied / bandwidth), "workspace": workspace,
                                         "launch": launch, "host": host}, base.split("/")[-1])
    told("done")


if __name__ == "__main__":
    main()
