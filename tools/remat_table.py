#!/usr/bin/env python3
"""Overhead, bound and gap of recomputation on operator logs, as tables for docs/results.md.

usage: tools/remat_table.py MONET LOG... [--time-limit SECONDS] [--json FOLDER]

Runs `monet optimise checkpointing --log LOG --sweep` for each log, one after the other. With --json, results are kept
in the folder, and those that are there already are not made again.
"""
import argparse
import json
import pathlib
import resource
import subprocess

HEURISTICS = ("sqrt", "greedy", "dtr", "msps")


def percent(value):
    return "-" if value is None else f"{100 * value:.2f}"


def solve(monet, log, limit, folder):
    """The sweep's JSON and the processor seconds that it took."""
    kept = folder / (log.stem + ".json") if folder else None
    if kept and kept.exists():
        return json.loads(kept.read_text())
    command = [monet, "optimise", "checkpointing", "--log", str(log), "--sweep", "--json", "-"]
    if limit:
        command += ["--time-limit", str(limit)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(ran.stdout)
    result["cpu_seconds"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if kept:
        kept.write_text(json.dumps(result))
    return result


def table(result):
    base = result["base_ns"]
    peak = result["unconstrained_peak_bytes"]
    lines = [
        f"### {result['name'].split('-')[0]}: {result['operators']:,} operators, {base / 1e6:,.1f} ms, "
        f"peak {peak / 1e6:,.0f} MB",
        "",
        "| budget, % | peak, MB | overhead, % | at least, % | gap, % | wall, s | " + " | ".join(HEURISTICS) + " |",
        "|---:|---:|---:|---:|---:|---:|" + "---:|" * len(HEURISTICS),
    ]
    for row in result["budgets"]:
        others = {other["name"]: other.get("overhead") for other in row["compared"]}
        cells = [
            f"{100 * row['budget_bytes'] / peak:.1f}",
            f"{row['peak_bytes'] / 1e6:,.0f}",
            percent(row["overhead"]),
            percent(row["bound"] / base - 1),
            percent(row["gap"]),
            f"{row['seconds']:.1f}",
        ] + [percent(others.get(name)) for name in HEURISTICS]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"CPU {result['cpu_seconds']:.0f} s in all. No plan needs less than "
              f"{100 * result['least_bytes_bound'] / peak:.1f} %.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("monet")
    parser.add_argument("logs", nargs="+", type=pathlib.Path, metavar="LOG")
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--json", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.json:
        arguments.json.mkdir(parents=True, exist_ok=True)
    for log in arguments.logs:
        print(table(solve(arguments.monet, log, arguments.time_limit, arguments.json)), flush=True)


if __name__ == "__main__":
    main()
