"""Measured training runs as experiments of `monet cluster`, and the errors of a model of them.

A run is a dictionary with the settings of its experiment and the measured `metrics`. Settings that the tables leave out
are from the papers and repositories named in them, and stated here.
"""
import csv
import json
import os
import statistics
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data" / "cluster"
MEASURED = DATA.parent / "measured"
PEAK_TFLOPS = {"a100": 312.0, "h100": 989.0}

# Software of the sets. Megatron-LM and BLOOM's Megatron-DeepSpeed: dropout, attention as products and a softmax,
# no communication hidden behind passes (2021 and 2022), vocabularies padded to 128 times the tensor ranks.
MEGATRON = {"dropout": 0.1, "overlap": False, "pad": 128}
# BLOOM: ALiBi in place of positions, 4 Omni-Path ports a node.
BLOOM = {**MEGATRON, "positions": "none", "cluster": "jean_zay_a100.yaml"}
# llm-foundry's MPT: no biases, ALiBi or learned positions, fused attention, FSDP overlapped with passes.
# Its attention is FlashAttention's first version in Triton: 25 to 40 % of an A100's peak (Dao 2023, arXiv 2307.08691, abstract).
MPT = {"dropout": 0.0, "overlap": True, "biases": False, "positions": "none", "fused": True, "pad": 1,
       "attention_share": 0.325}
# Megatron-Core: gradients, parameters and sends overlapped with passes, fused attention, sequence parallelism.
CORE = {"dropout": 0.1, "overlap": True, "fused": True, "pad": 128}


def integer(row, key, other):
    try:
        return int(float(row.get(key, "")))
    except ValueError:
        return other


def cluster_of(gpu):
    """Returns the cluster file of a kind of device, or None."""
    gpu = gpu.lower()
    if "h100" in gpu:
        return "dgx_h100.yaml"
    if "a100" in gpu:
        return "selene_40gb.yaml" if "40gb" in gpu.replace("_", "").replace("-", "") else "selene.yaml"
    return None


def experiment(run, host_ns=None):
    """Returns the experiment of a run as JSON, which is valid YAML."""
    transformer = {key: run[key] for key in ("layers", "hidden", "heads", "sequence", "vocabulary", "ffn")}
    transformer.update(dropout=run["dropout"], biases=run.get("biases", True),
                       positions=run.get("positions", "learned"), vocabulary_multiple=run["pad"])
    for key in ("tied", "activation", "norm", "causal", "experts", "topk", "head_size"):
        if key in run:
            transformer[key] = run[key]
    if run.get("fused"):  # the kernel includes dropout
        transformer["attention_dropout"] = 0.0
    if run["kv_heads"] != run["heads"]:
        transformer["kv_heads"] = run["kv_heads"]
    low = run["precision"]
    precision = {"weights": low, "activations": low, "gradients": low,
                 "master_weights": "fp32", "optimizer_state": "fp32"}
    if run.get("fp32_gradients", low == "bf16"):
        precision["weight_gradients"] = "fp32"
    training = {"loss": "cross_entropy", "optimizer": {"type": "adam"}, "store": "pytorch-eager",
                "precision": precision, "clip_global_norm": 1.0}
    if low == "fp16":
        training["loss_scale"] = "dynamic"
    if run.get("fused"):
        training["attention"] = "fused"
    parallel = {key: run[key] for key in ("data", "tensor", "pipeline", "virtual", "context", "expert", "zero",
                                          "micro_batch", "global_batch", "recompute", "overlap")}
    parallel["sequence"] = run["sequence_parallel"] and run["tensor"] > 1
    if run["virtual"] > 1:
        parallel["schedule"] = "interleaved"
    if "stage_layers" in run:
        parallel["layers"] = run["stage_layers"]
    cluster = {"file": os.path.join(DATA, run["cluster"]), "devices": run["devices"]}
    if "attention_share" in run:
        cluster["attention_share"] = run["attention_share"]
    if host_ns is not None:
        cluster["host_ns_per_kernel"] = host_ns
    return json.dumps({"name": run["id"], "cluster": cluster, "workload": {"transformer": transformer},
                       "training": training, "parallel": parallel})


def embedding_as_layer(layers, parts):
    """Divides layers evenly among the parts, counting embedding and logits as one layer each."""
    bounds = [(layers + 2) * part // parts for part in range(parts + 1)]
    counts = [end - begin for begin, end in zip(bounds, bounds[1:])]
    counts[0] -= 1
    counts[-1] -= 1
    return counts


def bloom_layers(run):
    """Returns the layers of a BLOOM run. If they are not printed, they follow from the printed operations: 96 s B L h^2 in
    the first section, with attention and logits (Narayanan et al. 2021, equation 3) in the others."""
    metrics = run["metrics"]
    if "hw_tflops_per_gpu" not in metrics:
        return 72  # the only network of its section
    flops = metrics["hw_tflops_per_gpu"] * 1e12 * metrics["iteration_s"] * run["devices"]
    layers = flops / (96 * run["sequence"] * run["global_batch"] * run["hidden"] ** 2)
    if "under-reports" not in run["note"]:
        layers = (layers - 250880 / (16 * run["hidden"])) / (1 + run["sequence"] / (6 * run["hidden"]))
    return round(layers)


def complete(run, by_model):
    """Adds the settings that a set leaves out."""
    if not run["layers"] and run["id"].startswith("bloom"):
        run["layers"] = bloom_layers(run)
    if not run["micro_batch"]:  # taken from another row with this network
        run["micro_batch"] = by_model.get((run["model"], run["device"]), 1)
    parts = run["pipeline"] * run["virtual"]
    if run["layers"] % parts:
        run["stage_layers"] = embedding_as_layer(run["layers"], parts)
    return run


def read_runs(path, settings):
    """Reads a long table: one dictionary per run, with its metrics."""
    runs = {}
    with open(path, encoding="utf-8-sig") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            hidden = integer(row, "hidden", 0)
            heads = integer(row, "heads", 0)
            kind = row["precision"]
            core = {**settings, **CORE} if row["run"].startswith(("mcore", "llama")) else settings
            run = runs.setdefault(row["run"], {
                "cluster": cluster_of(row["gpu_type"]), **core,
                "id": row["run"], "metrics": {}, "model": row["model"], "note": row["note"],
                "device": "h100" if "H100" in row["gpu_type"].upper() else "a100",
                "devices": integer(row, "gpus", 1), "layers": integer(row, "layers", 0), "hidden": hidden,
                "heads": heads, "kv_heads": integer(row, "kv_heads", heads),
                "sequence": integer(row, "seq", 1), "vocabulary": integer(row, "vocab", 0),
                "ffn": integer(row, "ffn", 4 * hidden), "data": integer(row, "dp", 1),
                "tensor": integer(row, "tp", 1), "pipeline": integer(row, "pp", 1),
                "virtual": integer(row, "vp", 1), "context": integer(row, "cp", 1),
                "expert": integer(row, "ep", 1), "zero": integer(row, "zero_stage", 0),
                "micro_batch": integer(row, "micro_batch", 0), "global_batch": integer(row, "global_batch", 1),
                "recompute": row["recompute"] if row["recompute"] in ("full", "selective") else "none",
                "precision": "fp8" if kind == "fp8" else "bf16" if "bf16" in kind else "fp16",
                # PURE: everything in bf16; DEFAULT adds gradients up in fp32.
                "fp32_gradients": "bf16" in kind and "PURE" not in row["note"]})
            run["sequence_parallel"] = row["recompute"] == "selective" or core is not settings
            run["metrics"][row["metric"]] = float(row["value"])
    by_model = {(run["model"], run["device"]): run["micro_batch"] for run in runs.values() if run["micro_batch"]}
    return [complete(run, by_model) for run in runs.values()]


def single_node_runs(path):
    """Reads vTrain's runs: Megatron-LM, full recomputation, a vocabulary of 51,200."""
    runs = []
    with open(path, encoding="utf-8-sig") as file:
        for row in csv.reader(file):
            if row[0].startswith("#"):
                continue
            gpus, batch, micro, hidden, heads, layers, sequence, tensor, data, pipeline = map(int, row[:10])
            runs.append({**MEGATRON, "id": f"vtrain-{len(runs)}", "metrics": {"iteration_s": float(row[10]) * 1e-3},
                         "device": "a100", "cluster": "selene.yaml", "note": "", "devices": gpus, "layers": layers,
                         "hidden": hidden, "heads": heads, "kv_heads": heads, "sequence": sequence,
                         "vocabulary": 51200, "ffn": 4 * hidden, "data": data, "tensor": tensor, "pipeline": pipeline,
                         "virtual": 1, "context": 1, "expert": 1, "zero": 0, "micro_batch": micro,
                         "global_batch": batch, "recompute": "full", "precision": "fp16", "sequence_parallel": False})
    return runs


def attention_of(value):
    """Returns whether attention ran as one kernel, and whether the run prints that. If it does not, the Transformer Engine
    chooses, and is assumed to have used such a kernel."""
    printed = "attention-backend" in value or value.get("transformer-impl") == "local"
    return {"fused": value.get("attention-backend") in ("flash", "fused") if printed else True,
            "attention_printed": printed}


def memory_run(row):
    """Returns the run of a row of megatron_memory.csv. Defaults are Megatron-LM's: GPT-2's or BERT's vocabulary, dropout of
    0.1, attention fused by the Transformer Engine."""
    flags = row["flags"].split()
    value = {flag.split("=")[0]: flag.split("=")[-1] for flag in flags}
    hidden, layers, heads = (integer(row, key, 0) for key in ("hidden", "layers", "heads"))
    bert = row["case"].startswith("bert")
    gated = "swiglu" in flags
    ffn = integer(row, "ffn", (8 * hidden // 3) // 64 * 64 if gated else 4 * hidden)
    virtual = integer(row, "vp_stages", 1)
    stages = integer(row, "pp", 1)
    if row["vpp_layers"]:
        virtual = layers // (stages * integer(row, "vpp_layers", 1))
    run = {"id": f"{row['case']} {row['env']}", "device": row["gpu"] or "a100", "note": row["flags"],
           "cluster": cluster_of(row["gpu"]) or "selene.yaml", "devices": integer(row, "gpus", 8), "layers": layers,
           "hidden": hidden, "heads": heads, "kv_heads": integer(row, "kv_groups", heads), "ffn": ffn,
           "sequence": integer(row, "seq", 1024), "vocabulary": integer(row, "vocab", 30522 if bert else 50257),
           "pad": 128, "data": integer(row, "dp", 1), "tensor": integer(row, "tp", 1), "pipeline": stages,
           "virtual": virtual, "context": integer(row, "cp", 1), "expert": integer(row, "ep", 1),
           "zero": integer(row, "zero", 0), "micro_batch": integer(row, "mbs", 1),
           "global_batch": integer(row, "gbs", 1), "recompute": row["recompute"] or "none",
           "precision": row["precision"], "sequence_parallel": row["sp"] == "1",
           "overlap": "overlap-grad-reduce" in flags, "biases": "disable-bias-linear" not in flags,
           "positions": "none" if value.get("position-embedding-type") in ("rope", "none") else "learned",
           "dropout": float(value.get("hidden-dropout", 0.1)), "causal": not bert,
           "tied": "untie-embeddings-and-output-weights" not in flags,
           "activation": "swiglu" if gated else "relu" if "squared-relu" in flags else "gelu",
           "norm": "rms" if value.get("normalization") == "RMSNorm" else "layer", **attention_of(value),
           "metrics": {"peak": float(row["mem_max_bytes"] or 0), "kept": float(row["mem_alloc_bytes"] or 0)}}
    if "kv-channels" in value:
        run["head_size"] = int(value["kv-channels"])
    if row["experts"]:
        run.update(experts=int(row["experts"]), topk=integer(row, "topk", 2))
        run["ffn"] = int(value.get("moe-ffn-hidden-size", ffn))
    first, last = (value.get(f"decoder-{end}-pipeline-num-layers") for end in ("first", "last"))
    if first and last:
        middle = (layers - int(first) - int(last)) // (stages - 2)
        run["stage_layers"] = [int(first)] + [middle] * (stages - 2) + [int(last)]
    elif "account_for_embedding" in row["case"] or layers % (stages * virtual):
        run["stage_layers"] = embedding_as_layer(layers, stages * virtual)
    return run


def memory_runs(path):
    with open(path, encoding="utf-8-sig") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [memory_run(row) for row in csv.DictReader(lines)]


def measured_seconds(run, result):
    """Returns the measured time of a step, derived from the metric of the run."""
    metrics = run["metrics"]
    if "iteration_s" in metrics:
        return metrics["iteration_s"]
    if "tokens_per_s_per_gpu" in metrics:
        return run["global_batch"] * run["sequence"] / run["devices"] / metrics["tokens_per_s_per_gpu"]
    seconds = result["time_ns"] * 1e-9
    peak = PEAK_TFLOPS[run["device"]]
    for metric, share in (("hw_tflops_per_gpu", result["hfu"] * peak),
                          ("model_tflops_per_gpu", result["mfu"] * peak), ("mfu_percent", result["mfu"] * 100)):
        if metric in metrics:
            return seconds * share / metrics[metric]
    return None


def places(values):
    """Returns the ranks of the values; equal values share the mean of their ranks."""
    order = sorted(values)
    first = {}
    for place, value in enumerate(order):
        first.setdefault(value, []).append(place)
    return [statistics.mean(first[value]) for value in values]


def spearman(rows):
    """Returns the rank correlation of predicted and measured times, or None for fewer than three rows."""
    if len(rows) < 3:
        return None
    first, second = places([row[0] for row in rows]), places([row[1] for row in rows])
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def regret(rows):
    """Returns how much longer the run with the least predicted time per token took than the fastest run."""
    chosen = min(rows, key=lambda row: row[0] / row[3])
    return chosen[1] / chosen[3] / min(row[1] / row[3] for row in rows) - 1


def mean_error(predicted, measured):
    return statistics.mean(abs(p - m) / m for p, m in zip(predicted, measured))


def best_scale(predicted, measured):
    """Returns the factor with the least mean error, among the factors that make one run exact."""
    factors = [m / p for p, m in zip(predicted, measured)]
    return min(factors, key=lambda f: mean_error([f * p for p in predicted], measured))


def row_of(run, result):
    """Returns predicted seconds, measured seconds, seconds by a constant TFLOP/s and samples; None without a time."""
    measured = measured_seconds(run, result)
    if not measured:
        return None
    seconds = result["time_ns"] * 1e-9
    return seconds, measured, result["hfu"] * seconds * PEAK_TFLOPS[run["device"]] / 300, run["global_batch"]
