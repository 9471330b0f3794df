#!/usr/bin/env python3
"""Measures training steps of GPTs on one GPU, for a model of them to be held against.

    tools/measure_steps.py -o steps.csv [--limit SECONDS] [--profiles FOLDER]

One row a setup: the median time of a step, and the most memory that was allocated, and reserved, in one.
What a step is stands in COMMENT and in the classes below it. Needs PyTorch with CUDA.
"""
import argparse
import datetime
import gc
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

COMMENT = """Training steps of GPTs, forward, backward and update, measured by tools/measure_steps.py.
GPT-2's form: tokens and positions embedded, layers of norm, attention, norm, feed-forward part of four times
the width with tanh gelu, a norm, logits by the embedding's table, cross-entropy of bf16 logits; biases; no dropout.
Eager PyTorch on one device. All tensors bf16, of type fp32 rows all fp32 with TF32 products.
attention: sdpa is scaled_dot_product_attention(is_causal=True); eager is a product, a multiplication by the scale,
masked_fill, softmax, a product. recompute full: torch.utils.checkpoint(use_reentrant=True) around every layer.
optimizer: fused AdamW, or SGD with momentum (foreach); states bf16 lie beside bf16 weights, states fp32 have
fp32 master weights: gradients are cast into new fp32 tensors, and updated weights are copied back.
gradients: held ones are zeroed, freed ones are set to none before each step. clip: clip_grad_norm_.
step_ns: median between events at the ends of steps, which follow each other without a wait.
bytes: most allocated and most reserved by PyTorch's allocator in a step; workspaces of cuBLAS are in it."""

COLUMNS = ("layers", "hidden", "heads", "sequence", "vocabulary", "micro_batch", "micro_batches", "type",
           "attention", "recompute", "optimizer", "states", "gradients", "clip", "step_ns", "allocated_bytes",
           "reserved_bytes")

PROFILED = (0, 1, 2, 6, 13, 15, 24, 41)  # setups whose kernels are listed


class Layer(torch.nn.Module):
    def __init__(self, setup):
        super().__init__()
        hidden = setup["hidden"]
        self.heads = setup["heads"]
        self.fused = setup["attention"] == "sdpa"
        self.ln_1 = torch.nn.LayerNorm(hidden)
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.proj = torch.nn.Linear(hidden, hidden)
        self.ln_2 = torch.nn.LayerNorm(hidden)
        self.up = torch.nn.Linear(hidden, 4 * hidden)
        self.down = torch.nn.Linear(4 * hidden, hidden)

    def attend(self, x, mask):
        samples, tokens, hidden = x.shape
        q, k, v = (part.view(samples, tokens, self.heads, hidden // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (hidden // self.heads) ** -0.5
            y = F.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v
        return self.proj(y.transpose(1, 2).reshape(samples, tokens, hidden))

    def forward(self, x, mask):
        x = x + self.attend(self.ln_1(x), mask)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, setup):
        super().__init__()
        self.wte = torch.nn.Embedding(setup["vocabulary"], setup["hidden"])
        self.wpe = torch.nn.Embedding(setup["sequence"], setup["hidden"])
        self.layers = torch.nn.ModuleList(Layer(setup) for _ in range(setup["layers"]))
        self.ln_f = torch.nn.LayerNorm(setup["hidden"])
        self.again = setup["recompute"] == "full"
        torch.nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, tokens, labels, mask):
        x = self.wte(tokens) + self.wpe.weight
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=True) if self.again else layer(x, mask)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class Update:
    """The optimiser's step, of master weights where states are fp32 and weights are not."""

    def __init__(self, setup, weights):
        self.weights = weights
        self.masters = None
        updated = weights
        if setup["states"] == "fp32" and setup["type"] != "fp32":
            updated = self.masters = [w.detach().float() for w in weights]
        if setup["optimizer"] == "sgd":
            self.optimizer = torch.optim.SGD(updated, lr=1e-4, momentum=0.9)
        else:
            fused = {"fused": True} if weights[0].is_cuda else {}
            self.optimizer = torch.optim.AdamW(updated, lr=1e-4, **fused)

    def step(self):
        if self.masters is None:
            self.optimizer.step()
            return
        with torch.no_grad():
            for master in self.masters:
                master.grad = torch.empty_like(master)
            torch._foreach_copy_([m.grad for m in self.masters], [w.grad for w in self.weights])
            self.optimizer.step()
            for master in self.masters:
                master.grad = None
            torch._foreach_copy_(self.weights, self.masters)


class Step:
    def __init__(self, setup, device):
        torch.manual_seed(1)
        self.setup = setup
        with torch.device(device):
            self.net = Gpt(setup)
        if setup["type"] == "bf16":
            self.net.to(torch.bfloat16)
        self.weights = list(self.net.parameters())
        self.update = Update(setup, self.weights)
        shape = (setup["micro_batch"], setup["sequence"])
        self.tokens = torch.randint(0, setup["vocabulary"], shape, device=device)
        self.labels = torch.randint(0, setup["vocabulary"], shape, device=device)
        self.mask = None
        if setup["attention"] == "eager":
            tokens = setup["sequence"]
            self.mask = torch.ones(tokens, tokens, dtype=torch.bool, device=device).triu(1)

    def run(self):
        self.net.zero_grad(set_to_none=self.setup["gradients"] == "freed")
        for _ in range(self.setup["micro_batches"]):
            loss = self.net(self.tokens, self.labels, self.mask)
            if self.setup["micro_batches"] > 1:
                loss = loss / self.setup["micro_batches"]
            loss.backward()
        if self.setup["clip"] == "yes":
            torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.update.step()


def setups():
    """From those that wait for the host to those that fill the memory."""
    rows = []

    def add(layers, hidden, heads, sequence, micro_batch, vocabulary=50304, **other):
        row = {"layers": layers, "hidden": hidden, "heads": heads, "sequence": sequence, "vocabulary": vocabulary,
               "micro_batch": micro_batch, "micro_batches": 1, "type": "bf16", "attention": "sdpa",
               "recompute": "none", "optimizer": "adamw", "states": "bf16", "gradients": "held", "clip": "no"}
        rows.append({**row, **other})
    master = {"states": "fp32"}
    full = {"recompute": "full"}
    eager = {"attention": "eager"}
    add(4, 128, 4, 128, 1, 1024)
    add(12, 768, 12, 1024, 8)
    add(24, 2048, 16, 2048, 4, **master)
    add(32, 4096, 32, 2048, 1)
    add(6, 384, 6, 256, 64, 256)
    add(24, 1024, 16, 1024, 8)
    add(24, 1024, 16, 2048, 4, **eager)
    add(12, 256, 4, 256, 4, 1024)
    add(12, 768, 12, 1024, 1)
    add(12, 768, 12, 1024, 32)
    add(24, 1024, 16, 1024, 32, **full)
    add(24, 2048, 16, 2048, 8, **full)
    add(32, 2560, 32, 2048, 2, **master)
    add(16, 4096, 32, 2048, 4)
    add(16, 4096, 32, 4096, 2)
    add(8, 8192, 64, 2048, 2)
    add(12, 768, 12, 4096, 4)
    add(12, 768, 12, 16384, 1)
    add(10, 1000, 10, 1000, 3)
    add(24, 1024, 16, 1024, 8, optimizer="sgd")
    add(12, 768, 12, 1024, 8, micro_batches=4)
    add(12, 768, 12, 1024, 8, gradients="freed")
    add(24, 1024, 16, 1024, 8, **master, clip="yes")
    add(12, 768, 12, 1024, 8, **eager)
    add(12, 768, 12, 1024, 4, type="fp32", states="fp32", **eager)
    add(4, 128, 4, 128, 8, 1024, **eager)
    add(24, 2048, 32, 1024, 4, **eager)
    add(4, 512, 8, 512, 16, 8192)
    add(12, 768, 12, 1024, 4)
    add(12, 768, 12, 1024, 16, **master)
    add(12, 768, 12, 8192, 2)
    add(12, 768, 8, 1024, 8)
    add(24, 1024, 16, 512, 8)
    add(24, 1024, 16, 1024, 4)
    add(24, 1024, 16, 2048, 8)
    add(36, 1280, 20, 1024, 8)
    add(24, 2048, 16, 2048, 1, **master)
    add(24, 2048, 32, 1024, 8)
    add(16, 3072, 24, 2048, 2)
    add(32, 2560, 32, 2048, 8, **full)
    add(32, 4096, 32, 2048, 4, **full)
    add(4, 12288, 96, 2048, 2)
    add(48, 512, 8, 256, 2, 8192)
    add(12, 768, 12, 1024, 64, **full)
    return rows


def measure(setup, device):
    gpu = device == "cuda"
    if gpu:
        clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear:
            clear()
        torch.cuda.empty_cache()
    step = Step(setup, device)
    step.run()
    begin = time.perf_counter()
    step.run()
    if gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    step.run()
    step.run()
    if gpu:
        torch.cuda.synchronize()
    once = (time.perf_counter() - begin) / 3
    count = max(6, min(30, int(2.0 / once)))
    if not gpu:
        return round(once * 1e9), 0, 0
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for i in range(count):
        step.run()
        events[i + 1].record()
    torch.cuda.synchronize()
    ns = statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:])) * 1e6
    return round(ns), torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def write_profile(setup, folder):
    """All kernels of a step, in their order. Whoever has used the profiler launches slower afterwards."""
    step = Step(setup, "cuda")
    for _ in range(3):
        step.run()
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step.run()
        torch.cuda.synchronize()
    events = [e for e in trace.events() if str(e.device_type).endswith("CUDA")]
    events.sort(key=lambda e: e.time_range.start)
    name = "_".join(str(setup[key]) for key in ("layers", "hidden", "sequence", "micro_batch", "attention",
                                                "states"))
    with open(os.path.join(folder, f"profile_{name}.txt"), "w", encoding="utf-8") as file:
        for event in events:
            file.write(f"{event.time_range.start:.1f} {event.time_range.elapsed_us():.1f} {event.name[:150]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, metavar="FILE.csv")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="no setup begins after this")
    parser.add_argument("--profiles", metavar="FOLDER", help="lists the kernels of some setups there")
    parser.add_argument("--only", metavar="KEY=VALUE", help="the setups of which this is true")
    parser.add_argument("--cpu", action="store_true", help="the smallest setups on the host, to try the script")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    title = "host" if arguments.cpu else torch.cuda.get_device_name(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    with open(arguments.output, "w", encoding="utf-8") as file:
        for line in COMMENT.splitlines():
            file.write(f"# {line}\n")
        file.write(f"# source: {title}, PyTorch {torch.__version__}, {datetime.date.today().isoformat()}\n")
        file.write(",".join(COLUMNS) + "\n")
        for number, setup in enumerate(setups()):
            key, _, value = (arguments.only or "").partition("=")
            if key and str(setup[key]) != value:
                continue
            if arguments.cpu and setup["hidden"] > 256:
                continue
            if time.perf_counter() - begin > arguments.limit:
                print(f"the last setups are left out, from {number} on", file=sys.stderr)
                break
            try:
                result = measure(setup, "cpu" if arguments.cpu else "cuda")
                file.write(",".join(str(setup[key]) for key in COLUMNS[:-3]) + ",%d,%d,%d\n" % result)
                file.flush()
                print(f"{time.perf_counter() - begin:6.1f} s  {number}: {result[0] * 1e-6:.2f} ms, "
                      f"{result[1] * 1e-9:.2f} GB", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                print(f"{setup}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
            gc.collect()
        for number in PROFILED if arguments.profiles else ():
            write_profile(setups()[number], arguments.profiles)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
