#!/usr/bin/env python3
"""Holds `monet cluster` against measured training runs.

    tools/cluster_table.py build/release/apps/monet/monet FOLDER [--sets korthikanti,bloom] [--jobs 2] [--list FILE]

FOLDER holds the tables of runs (cluster_runs.py reads them). Times: for every set the mean error without any fit,
with one scale for the set, what the best constant TFLOP/s of the set reaches, the rank correlation (of several
sections the mean of each), and the regret: how much longer the configuration that the model would choose was
than the best that was measured. Of runs on one node, one host time a kernel is fitted on a fifth of the rows and
the error of the others is given. Memory: how many peaks are within 15 %, the median error, with one constant
workspace a kind of device, and apart for cases that print how attention ran and those that leave it to the
library; which runs that fitted would be refused, and the other way round. What cannot be modelled is counted
by its reason. --list writes a line a run: set, section, run, measured, modelled.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

from cluster_runs import (BLOOM, MEGATRON, MPT, PEAK_TFLOPS, experiment, memory_runs, read_runs,
                          single_node_runs)

LISTED = []


def model(monet, run, host_ns=None):
    """The result of `monet cluster`, or the words of its error."""
    if "refused" in run:
        return run["refused"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(experiment(run, host_ns))
        file.flush()
        done = subprocess.run([monet, "cluster", file.name, "--json", "-", "--allow-overflow"],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = done.stderr.replace(file.name, "").strip() or "no words"
        return words.splitlines()[0][:120]
    result = json.loads(done.stdout)
    return {key: result[key] for key in ("time_ns", "mfu", "hfu", "memory", "stages")}


def model_all(monet, runs, jobs, host_ns=None):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda run: model(monet, run, host_ns), runs))


def measured_seconds(run, result):
    """The time of a step, from whatever was measured."""
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
    """Ranks, of equal values their mean."""
    order = sorted(values)
    first = {}
    for place, value in enumerate(order):
        first.setdefault(value, []).append(place)
    return [statistics.mean(first[value]) for value in values]


def spearman(rows):
    """Of predicted and measured times; nothing of fewer than three."""
    if len(rows) < 3:
        return None
    first, second = places([row[0] for row in rows]), places([row[1] for row in rows])
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def regret(rows):
    """How much longer the run with the least predicted time a token took than the fastest."""
    chosen = min(rows, key=lambda row: row[0] / row[3])
    return chosen[1] / chosen[3] / min(row[1] / row[3] for row in rows) - 1


def mean_error(predicted, measured):
    return statistics.mean(abs(p - m) / m for p, m in zip(predicted, measured))


def best_scale(predicted, measured):
    """The factor with the least mean error, among those that make one run exact."""
    factors = [m / p for p, m in zip(predicted, measured)]
    return min(factors, key=lambda f: mean_error([f * p for p in predicted], measured))


def report_times(name, rows):
    if not rows:
        print(f"{name:<26} no run could be modelled")
        return
    predicted, measured, flops, _ = zip(*rows)
    factor = best_scale(predicted, measured)
    rival = best_scale(flops, measured)
    order = spearman(rows)
    print(f"{name:<26} {len(rows):>4} runs   no fit {100 * mean_error(predicted, measured):5.1f} %   one scale "
          f"{100 * mean_error([factor * p for p in predicted], measured):5.1f} % (x {factor:.2f})   constant TFLOP/s "
          f"{100 * mean_error([rival * f for f in flops], measured):5.1f} %   Spearman "
          f"{'-' if order is None else f'{order:.3f}'}", flush=True)


def report_sections(name, sections):
    """Comparisons that the log made itself: the order inside each."""
    orders, regrets = [], []
    for section, rows in sections.items():
        order = spearman(rows)
        regrets.append(regret(rows))
        words = f"regret {100 * regrets[-1]:5.1f} %"
        if order is not None:
            orders.append(order)
            words = f"Spearman {order:6.3f}   {words}"
        print(f"  {name} {section[:44]:<46} {len(rows):>3} runs   {words}")
    print(f"  {name} sections: Spearman {statistics.mean(orders):.3f} on average, regret "
          f"{100 * statistics.mean(regrets):.1f} % on average", flush=True)


def report_refused(refused):
    for words, count in collections.Counter(refused).most_common():
        print(f"  {count:>4} not modelled: {words}")


def row_of(name, run, result):
    """Predicted and measured seconds, seconds by a constant TFLOP/s, samples; None without a time."""
    measured = measured_seconds(run, result)
    if not measured:
        return None
    seconds = result["time_ns"] * 1e-9
    LISTED.append([name, run["note"], run["id"], measured, seconds])
    return seconds, measured, result["hfu"] * seconds * PEAK_TFLOPS[run["device"]] / 300, run["global_batch"]


def times_of(name, runs, results):
    rows, refused = [], []
    for run, result in zip(runs, results):
        if isinstance(result, str):
            refused.append(result)
            continue
        row = row_of(name, run, result)
        if row:
            rows.append((run, row))
    report_refused(refused)
    return rows


def report_limits(runs, results):
    """Runs that fitted and would be refused, and runs that did not and would not."""
    wrong = [run["id"] for run, result in zip(runs, results) if not isinstance(result, str) and
             ("out_of_memory" in run["metrics"]) == result["memory"]["fits"]]
    overflows = sum("out_of_memory" in run["metrics"] for run in runs)
    print(f"  memory: {overflows} runs out of memory, of {len(runs)} told wrongly: {' '.join(wrong) or 'none'}")


def set_of_times(monet, name, runs, jobs):
    results = model_all(monet, runs, jobs)
    rows = times_of(name, runs, results)
    report_times(name, [row for _, row in rows])
    groups = {}
    for run, row in rows:
        for group in groups_of(name, run):
            groups.setdefault(group, []).append(row)
    if name == "bloom":
        report_sections(name, groups)
    elif len(groups) > 1:
        for group, part in sorted(groups.items()):
            report_times(f"  {group}", part)
    report_limits(runs, results)


def groups_of(name, run):
    """Parts of a set that are told apart."""
    if name == "bloom":
        return [run["note"].split(";")[0]]
    if name == "mpt":
        return ["A100 40 GB" if "40gb" in run["cluster"] else "A100 80 GB",
                "sequence up to 2,048" if run["sequence"] <= 2048 else "sequence beyond 2,048"]
    if name == "tables":
        return [run["id"].split("-")[0]]
    return [name]


def single_node(monet, path, jobs):
    """One host time a kernel from a fifth of the rows, the error of the others."""
    runs = single_node_runs(path)
    known = runs[::5]
    others = [run for i, run in enumerate(runs) if i % 5 != 0]

    def rows(of, host_ns=None, name="fit"):
        return [row for _, row in times_of(name, of, model_all(monet, of, jobs, host_ns))]

    tried = {}

    def error(microseconds):
        if microseconds not in tried:
            found = rows(known, 1000.0 * microseconds)
            tried[microseconds] = mean_error([row[0] for row in found], [row[1] for row in found])
        return tried[microseconds]

    report_times("single node", rows(runs, name="single node"))
    best = min((20, 40, 60, 80), key=error)
    for step in (10, 5):
        best = min((best - step, best, best + step), key=error)
    report_times(f"  host {best} us, others", rows(others, 1000.0 * best, "single node, host fitted"))


def memory(monet, path, jobs):
    """Peaks of the last rank, and what is left at the end of a step."""
    runs = memory_runs(path)
    results = model_all(monet, runs, jobs)
    report_refused([result for result in results if isinstance(result, str)])
    found = [(run, result["stages"][-1]["memory"]) for run, result in zip(runs, results)
             if not isinstance(result, str)]
    for kind, wanted in (("dense", lambda run: "experts" not in run), ("experts", lambda run: "experts" in run)):
        report_memory(kind, [(run, of) for run, of in found if wanted(run)])


def report_memory(kind, found):
    def parts(of):
        kept = of["parameters_bytes"] + of["gradients_bytes"] + of["optimizer_state_bytes"]
        return kept, of["total_bytes"] - of["workspace_bytes"]

    rows = []
    for device in sorted({run["device"] for run, _ in found}):
        here = [(run, *parts(of)) for run, of in found if run["device"] == device]
        constants = [run["metrics"]["peak"] - peak for run, _, peak in here]
        peaks = [run["metrics"]["peak"] for run, _, _ in here]
        workspace = min((max(c, 0) for c in constants), key=lambda c: statistics.mean(
            abs(peak + c - measured) / measured for (_, _, peak), measured in zip(here, peaks)))
        errors = [(peak + workspace) / run["metrics"]["peak"] - 1 for run, _, peak in here]
        rows += [(run["attention_printed"], error) for (run, _, _), error in zip(here, errors)]
        kept = [keep / run["metrics"]["kept"] - 1 for run, keep, _ in here if run["metrics"]["kept"]]
        print(f"memory, {kind}, {device:<6} {len(here):>4} cases   workspace {workspace / 2**20:6.0f} MiB   within 15 % "
              f"{100 * statistics.mean(abs(e) <= 0.15 for e in errors):5.1f} %   median error "
              f"{100 * statistics.median(map(abs, errors)):5.1f} %   kept between steps "
              f"{100 * statistics.median(map(abs, kept)):5.1f} %")
        LISTED.extend([f"memory {device}", "", run["id"], run["metrics"]["peak"], peak + workspace]
                      for run, _, peak in here)
    for name, printed in (("all", (True, False)), ("attention printed", (True,)), ("not printed", (False,))):
        part = [abs(error) for is_printed, error in rows if is_printed in printed]
        if part:
            print(f"memory, {kind}, {name:<18} {len(part):>4} cases   within 15 % "
                  f"{100 * statistics.mean(error <= 0.15 for error in part):5.1f} %   median error "
                  f"{100 * statistics.median(part):5.1f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("monet")
    parser.add_argument("folder")
    parser.add_argument("--sets", default="korthikanti,mpt,bloom,tables,single_node,memory")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", help="a CSV file with a line a run")
    arguments = parser.parse_args()
    sets = {"korthikanti": ("korthikanti.csv", MEGATRON), "mpt": ("mpt_fsdp_a100.csv", MPT),
            "bloom": ("bloom_176b.csv", BLOOM), "tables": ("megatron_tables.csv", MEGATRON)}
    for name in arguments.sets.split(","):
        if name == "single_node":
            single_node(arguments.monet, os.path.join(arguments.folder, "vtrain_single_node.csv"), arguments.jobs)
        elif name == "memory":
            memory(arguments.monet, os.path.join(arguments.folder, "megatron_memory.csv"), arguments.jobs)
        elif name in sets:
            file, settings = sets[name]
            set_of_times(arguments.monet, name, read_runs(os.path.join(arguments.folder, file), settings),
                         arguments.jobs)
        else:
            sys.exit(f"no set is called '{name}': {', '.join(sets)}, single_node, memory")
    if arguments.list:
        with open(arguments.list, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["set", "section", "run", "measured", "modelled"]] + LISTED)


if __name__ == "__main__":
    main()
