#!/usr/bin/env python3
"""Measures training steps of GPTs on one GPU, to validate a model of them.

    tools/measure_steps.py -o steps.csv [--limit SECONDS]

The setups are those of data/cluster/h100_steps.csv, whose header describes a step. A row has the median time of a
step of a setup, and the peaks of allocated and reserved memory. The script needs PyTorch with CUDA.
"""
import argparse
import csv
import datetime
import gc
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

STEPS = Path(__file__).resolve().parent.parent / "data" / "cluster" / "h100_steps.csv"


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
    """Runs the optimiser's step, on master weights if states are fp32 and weights are not."""

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
    """Returns the comment of the table, its columns, and its rows without measurements."""
    lines = STEPS.read_text(encoding="utf-8").splitlines()
    comment = [line for line in lines if line.startswith("#")]
    columns, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    values = [[int(word) if word.isdigit() else word for word in row] for row in rows]
    return comment[: next(i for i, line in enumerate(comment) if "source:" in line)], columns, [
        dict(zip(columns[:-3], row)) for row in values]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, metavar="FILE.csv")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="no setup begins after this time")
    parser.add_argument("--only", metavar="KEY=VALUE", help="only the setups for which this is true")
    parser.add_argument("--cpu", action="store_true", help="the smallest setups on the host, to try the script")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    title = "host" if arguments.cpu else torch.cuda.get_device_name(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    comment, columns, rows = setups()
    key, _, value = (arguments.only or "").partition("=")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n".join(comment) + f"\n# source: {title}, PyTorch {torch.__version__}, "
                   f"{datetime.date.today().isoformat()}\n" + ",".join(columns) + "\n")
        for number, setup in enumerate(rows):
            if key and str(setup[key]) != value or arguments.cpu and setup["hidden"] > 256:
                continue
            if time.perf_counter() - begin > arguments.limit:
                print(f"setups from {number} on are left out", file=sys.stderr)
                break
            try:
                result = measure(setup, "cpu" if arguments.cpu else "cuda")
            except Exception as error:  # pylint: disable=broad-except
                print(f"{setup}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
            else:
                file.write(",".join(map(str, (*setup.values(), *result))) + "\n")
                file.flush()
                print(f"{time.perf_counter() - begin:6.1f} s  {number}: {result[0] * 1e-6:.2f} ms, "
                      f"{result[1] * 1e-9:.2f} GB", flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
