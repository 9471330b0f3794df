#!/usr/bin/env python3
"""Holds `monet cluster` against measured training runs.

    tools/cluster_table.py build/release/apps/monet/monet FOLDER [--sets korthikanti,bloom] [--jobs 2]

FOLDER holds the tables of runs (one row a run and metric). For every set: the mean error of the time
without any fit, with one scale for the set, what the best constant TFLOP/s of the set reaches, and the
rank correlation. Of runs on one node, one host time a kernel is fitted on a fifth of the rows and the
error of the others is given. Memory: how many peaks are within 15 %, with one constant for workspaces.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "cluster")

# What is known of the software of each set, from the papers and repositories that the tables name.
MEGATRON = {"dropout": 0.1, "overlap": False, "clip": True}
BLOOM = {**MEGATRON, "cluster": "jean_zay_a100.yaml"}
MPT = {"dropout": 0.0, "overlap": True, "clip": True, "biases": False, "positions": "none", "fused": True}


def integer(row, key, other):
    text = row.get(key, "")
    try:
        return int(float(text))
    except ValueError:
        return other


def experiment(run, host_ns=None):
    """The YAML of a run, as lines of JSON (which YAML is)."""
    table = run.get("cluster") or ("dgx_h100.yaml" if run["h100"] else "selene.yaml")
    transformer = {key: run[key] for key in ("layers", "hidden", "heads", "sequence", "vocabulary", "ffn")}
    transformer.update(dropout=run["dropout"], biases=run.get("biases", True),
                       positions=run.get("positions", "learned"))
    if run["kv_heads"] != run["heads"]:
        transformer["kv_heads"] = run["kv_heads"]
    low = run["precision"]
    training = {"loss": "cross_entropy", "optimizer": {"type": "adam"},
                "store": "pytorch-eager",
                "precision": {"weights": low, "activations": low, "gradients": low,
                              "master_weights": "fp32", "optimizer_state": "fp32"}}
    if run["clip"]:
        training["clip_global_norm"] = 1.0
    if low == "fp16":
        training["loss_scale"] = "dynamic"
    if run.get("fused"):
        training["attention"] = "fused"
    parallel = {key: run[key] for key in ("data", "tensor", "pipeline", "virtual", "context", "expert", "zero",
                                          "micro_batch", "global_batch", "recompute", "overlap")}
    parallel["sequence"] = run["sequence_parallel"]
    if run["virtual"] > 1:
        parallel["schedule"] = "interleaved"
    cluster = {"file": os.path.join(DATA, table), "devices": run["devices"]}
    if host_ns is not None:
        cluster["host_ns_per_kernel"] = host_ns
    return json.dumps({"name": run["id"], "cluster": cluster, "workload": {"transformer": transformer},
                       "training": training, "parallel": parallel})


def model(monet, run, host_ns=None):
    """The result of `monet cluster`, or the words of its error."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(experiment(run, host_ns))
        done = subprocess.run([monet, "cluster", path, "--json", "-", "--allow-overflow"],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip()
    return json.loads(done.stdout)


def read_runs(path, settings):
    """One dictionary a run, with its metrics."""
    runs = {}
    with open(path, encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            heads = integer(row, "heads", 0)
            if not heads or not row["layers"] or not row["vocab"] or row["precision"] == "fp8":
                continue
            hidden = integer(row, "hidden", 0)
            run = runs.setdefault(row["run"], {
                "id": row["run"], "metrics": {}, "h100": "H100" in row["gpu_type"].upper(),
                "devices": integer(row, "gpus", 1), "layers": integer(row, "layers", 1), "hidden": hidden,
                "heads": heads, "kv_heads": integer(row, "kv_heads", heads),
                "sequence": integer(row, "seq", 1), "vocabulary": integer(row, "vocab", 1),
                "ffn": integer(row, "ffn", 4 * hidden), "data": integer(row, "dp", 1),
                "tensor": integer(row, "tp", 1), "pipeline": integer(row, "pp", 1),
                "virtual": integer(row, "vp", 1), "context": integer(row, "cp", 1),
                "expert": integer(row, "ep", 1), "zero": integer(row, "zero_stage", 0),
                "micro_batch": integer(row, "micro_batch", 1), "global_batch": integer(row, "global_batch", 1),
                "recompute": row["recompute"] if row["recompute"] in ("full", "selective") else "none",
                "precision": "bf16" if row["precision"] == "bf16" else "fp16", **settings})
            parts = run["pipeline"] * run["virtual"]
            if "layers tweaked" in row["note"] and run["layers"] % parts:  # the number is not printed
                run["layers"] = max(1, round(run["layers"] / parts)) * parts
            run["sequence_parallel"] = row["recompute"] == "selective"
            run["metrics"][row["metric"]] = float(row["value"])
    return list(runs.values())


def measured_seconds(run, result):
    """The time of a step, from whatever was measured."""
    metrics = run["metrics"]
    if "iteration_s" in metrics:
        return metrics["iteration_s"]
    if "tokens_per_s_per_gpu" in metrics:
        return run["global_batch"] * run["sequence"] / run["devices"] / metrics["tokens_per_s_per_gpu"]
    seconds = result["time_ns"] * 1e-9
    for metric, share in (("hw_tflops_per_gpu", "hfu"), ("model_tflops_per_gpu", "mfu")):
        if metric in metrics:
            peak = 989.0 if run["h100"] else 312.0
            return seconds * result[share] * peak / metrics[metric]
    return None


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0] * len(values)
    for place, index in enumerate(order):
        result[index] = place
    return result


def spearman(first, second):
    count = len(first)
    if count < 3:
        return float("nan")
    distance = sum((a - b) ** 2 for a, b in zip(ranks(first), ranks(second)))
    return 1 - 6 * distance / (count * (count * count - 1))


def mean_error(predicted, measured):
    return statistics.mean(abs(p - m) / m for p, m in zip(predicted, measured))


def best_scale(predicted, measured):
    """The factor with the least mean error, among those that make one run exact."""
    factors = [m / p for p, m in zip(predicted, measured)]
    return min(factors, key=lambda f: mean_error([f * p for p in predicted], measured))


def report_times(name, rows):
    if not rows:
        print(f"{name:<24} no run could be modelled")
        return
    predicted, measured, flops = zip(*rows)
    factor = best_scale(predicted, measured)
    rival = best_scale(flops, measured)
    print(f"{name:<24} {len(rows):>5} runs   no fit {100 * mean_error(predicted, measured):6.1f} %   one scale "
          f"{100 * mean_error([factor * p for p in predicted], measured):6.1f} % (x {factor:.2f})   constant TFLOP/s "
          f"{100 * mean_error([rival * f for f in flops], measured):6.1f} %   Spearman {spearman(predicted, measured):.3f}")


def model_all(monet, runs, jobs, host_ns=None):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda run: model(monet, run, host_ns), runs))


def times_of(runs, results):
    rows, refused = [], []
    for run, result in zip(runs, results):
        if isinstance(result, str):
            refused.append((run["id"], result))
            continue
        measured = measured_seconds(run, result)
        if measured:
            hardware = result["hfu"] * result["time_ns"]
            rows.append((result["time_ns"] * 1e-9, measured, hardware * 1e-9))
    for run_id, words in refused[:5]:
        print(f"  refused: {run_id}: {words.splitlines()[0][:140] if words else ''}")
    return rows


def single_node_runs(path):
    runs = []
    with open(path, encoding="utf-8-sig") as file:
        for row in csv.reader(file):
            if row[0].startswith("#"):
                continue
            gpus, batch, micro, hidden, heads, layers, sequence, tensor, data, pipeline = map(int, row[:10])
            runs.append({"id": f"vtrain-{len(runs)}", "metrics": {"iteration_s": float(row[10]) * 1e-3},
                         "h100": False, "devices": gpus, "layers": layers, "hidden": hidden, "heads": heads,
                         "kv_heads": heads, "sequence": sequence, "vocabulary": 51200, "ffn": 4 * hidden,
                         "data": data, "tensor": tensor, "pipeline": pipeline, "virtual": 1, "context": 1,
                         "expert": 1, "zero": 0, "micro_batch": micro, "global_batch": batch,
                         "recompute": "full", "precision": "fp16", "sequence_parallel": False, **MEGATRON})
    return runs


def single_node(monet, path, jobs):
    """One host time a kernel from a fifth of the rows, the error of the others."""
    runs = single_node_runs(path)
    report_times("single node", times_of(runs, model_all(monet, runs, jobs)))
    known = runs[::5]
    def error(host_ns):
        rows = times_of(known, model_all(monet, known, jobs, host_ns))
        return mean_error([p for p, _, _ in rows], [m for _, m, _ in rows])
    host = min((float(ns) for ns in range(20000, 100001, 10000)), key=error)
    others = [run for i, run in enumerate(runs) if i % 5 != 0]
    report_times(f"  host {host / 1000:.0f} us a kernel", times_of(others, model_all(monet, others, jobs, host)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet")
    parser.add_argument("folder")
    parser.add_argument("--sets", default="korthikanti,mpt,bloom,tables,single_node")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    sets = {"korthikanti": ("korthikanti.csv", MEGATRON), "mpt": ("mpt_fsdp_a100.csv", MPT),
            "bloom": ("bloom_176b.csv", BLOOM), "tables": ("megatron_tables.csv", MEGATRON)}
    for name in arguments.sets.split(","):
        if name == "single_node":
            single_node(arguments.monet, os.path.join(arguments.folder, "vtrain_single_node.csv"), arguments.jobs)
            continue
        if name not in sets:
            sys.exit(f"no set is called '{name}': {', '.join(sets)}, single_node")
        file, settings = sets[name]
        runs = [run for run in read_runs(os.path.join(arguments.folder, file), settings)
                if run["data"] * run["tensor"] * run["pipeline"] * run["context"] == run["devices"]]
        for run in runs:
            run["sequence_parallel"] = run["sequence_parallel"] and run["tensor"] > 1
        report_times(name, times_of(runs, model_all(arguments.monet, runs, arguments.jobs)))


if __name__ == "__main__":
    main()
