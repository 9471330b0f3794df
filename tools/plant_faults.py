#!/usr/bin/env python3
"""Plants small faults in a copy of the sources and counts how many of them the tests find.

    tools/plant_faults.py list
    tools/plant_faults.py plant SCRATCH            # copies the tracked files, with all faults of tests/planted_faults.txt behind a switch
    tools/plant_faults.py build SCRATCH [TARGET...]
    tools/plant_faults.py run SCRATCH --level fast|full|slow [--jobs N] [--only IDS] [--keep]

All faults are compiled at once. The environment variable MONET_FAULT selects the active fault; 0 is no fault. `run` first runs the
tests without a fault, then with each fault until a test fails: tests of the fault's stage first, then the others, the shortest first.

A test has failed if it takes ten times its time without a fault (at least a minute). Tests that fail without a fault are left out.
The commands, environments and labels of the tests are those of CTest. Tests of one gtest program that CTest runs case by case run
together. The table goes to standard output and to SCRATCH/faults_LEVEL.json. With --keep, faults in that file do not run again.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/planted_faults.txt"
LEVELS = {"fast": {"fast"}, "full": {"fast", "medium"}, "slow": {"fast", "medium", "slow"}}
LEAST_LIMIT = 60  # seconds
SLOWDOWN = 10
# Tests of include rules read the sources, and the planted sources break these rules.
SETTINGS = {"GTEST_FAIL_FAST": "1", "GTEST_FILTER": "-Includes.of_the_repository*"}
MEMORY = 12 << 30  # bytes of address space of a test
# Test programs whose names differ from their stages.
PROGRAMS = {"base": "readers", "numerics": "readers", "workload": "readers|execute", "hardware": "readers", "training": "training|execute",
            "train": "execute", "tiling": "schedule", "model": "optimise"}
SWITCH = """#ifndef MONET_FAULT_SWITCH
#define MONET_FAULT_SWITCH
#include <cstdlib>
inline bool monet_fault(int id) {
  static const int active = std::getenv("MONET_FAULT") == nullptr ? 0 : std::atoi(std::getenv("MONET_FAULT"));
  return id == active;
}
#endif
"""


class Place:
    """The place of a fault: code of a file whose middle part changes."""

    def __init__(self, path):
        self.path = path

    def set_code(self, line):
        self.before, old, new, self.behind = re.fullmatch(r"\s*(.*)<\[(.*?) => (.*?)\]>(.*)", line).groups()
        self.old, self.new = old, new


class Fault:
    def __init__(self, line):
        head, self.kind = line.split(": ", 1)
        number, self.stage, self.difficulty, path = head.split()
        self.id = int(number)
        self.tests = f"^({self.stage}|{PROGRAMS.get(self.stage, self.stage)})"
        self.places = [Place(path)]


def read_faults():
    faults = []
    for line in TABLE.read_text().splitlines():
        if line[:1].isdigit():
            faults.append(Fault(line))
        elif line.startswith("  "):
            faults[-1].places[-1].set_code(line)
        elif line.startswith("tests "):
            faults[-1].tests = line[6:]
        elif line.startswith("or "):
            faults[-1].places.append(Place(line[3:]))
    assert len({fault.id for fault in faults}) == len(faults), "two faults of one number"
    return faults


def pattern(code):
    """Returns an expression for the code, with any white space between its tokens."""
    words = re.findall(r"\w+|[^\w\s]", code)
    return r"\s*".join(rf"\b{word}\b" if re.match(r"\w", word) else re.escape(word) for word in words)


def locate(fault, root):
    """Finds the first existing place of the fault: (place, (begin, end), line)."""
    reasons = []
    for place in fault.places:
        text = (root / place.path).read_text() if (root / place.path).is_file() else ""
        code = rf"{pattern(place.before)}\s*(?P<old>{pattern(place.old)})\s*{pattern(place.behind)}"
        found = list(re.finditer(code, text))
        if len(found) == 1:
            return place, found[0].span("old"), text.count("\n", 0, found[0].start("old")) + 1
        reasons.append(f"{place.path} has '{place.before}{place.old}{place.behind}' {len(found)} times")
    raise LookupError("; ".join(reasons))


def switched(fault, place, old):
    test = f"::monet_fault({fault.id})"
    if place.old.endswith(";"):
        return f"{{ if ({test}) {{ {place.new} }} else {{ {old} }} }}"
    return f"({test} ? ({place.new}) : ({old}))"


def locate_all():
    """Finds the places of all faults: (place, (begin, end), line) by fault."""
    located, problems = {}, []
    for fault in read_faults():
        try:
            located[fault] = locate(fault, ROOT)
        except LookupError as error:
            problems.append(f"fault {fault.id}: {error}")
    if problems:
        sys.exit("\n".join(problems))
    return located


def plant(scratch):
    located = locate_all()
    by_file = {}
    for fault, (place, span, line) in located.items():
        by_file.setdefault(place.path, []).append((span, fault, place))
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, scratch / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in by_file:
            text = source.read_text()
            for (begin, end), fault, place in sorted(by_file[name], key=lambda change: change[0], reverse=True):
                text = text[:begin] + switched(fault, place, text[begin:end]) + text[end:]
            if not target.is_file() or target.read_text() != SWITCH + text:  # an unchanged file is not compiled again
                target.write_text(SWITCH + text)
        elif source.is_file() and not (target.is_file() and target.stat().st_mtime == source.stat().st_mtime):
            shutil.copy2(source, target)
    if not (scratch / ".git").exists():  # results name a commit
        git = ["git", "-c", "user.name=faults", "-c", "user.email=faults@localhost"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Plant faults"]):
            subprocess.run(git + command, cwd=scratch, check=True)
    print(f"{len(located)} faults in {len(by_file)} files of {scratch}")


def build(scratch, targets):
    subprocess.run(["cmake", "--preset", "dev", "-DMONET_UNITY=ON"], cwd=scratch, check=True)
    chosen = ["--target", *targets] if targets else []
    subprocess.run(["cmake", "--build", "build/dev", f"-j{os.cpu_count()}", *chosen], cwd=scratch, check=True)


class Test:
    def __init__(self, entry):
        properties = {one["name"]: one["value"] for one in entry.get("properties", [])}
        self.name, self.command = entry["name"], entry.get("command", ["false"])
        self.labels = set(properties.get("LABELS", []))
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
        self.setups = "FIXTURES_SETUP" in properties
        self.cleans_up = "FIXTURES_CLEANUP" in properties
        self.fails = bool(properties.get("WILL_FAIL", False))
        self.passes_with, self.fails_with = ([re.compile(one) for one in properties.get(key, [])]
                                             for key in ("PASS_REGULAR_EXPRESSION", "FAIL_REGULAR_EXPRESSION"))
        self.skipped = properties.get("SKIP_RETURN_CODE")
        # A test that shares a resource with others runs alone.
        self.alone = bool(self.setups or properties.get("RUN_SERIAL") or properties.get("RESOURCE_LOCK"))

    def is_case(self):
        """One case of a gtest program."""
        return any(re.fullmatch(r"--gtest_filter=[^*:?-]+", one) for one in self.command[1:])


def tests_of(scratch, level):
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=scratch / "build/dev", check=True, capture_output=True, text=True)
    tests, programs = [], {}
    for test in map(Test, json.loads(listed.stdout)["tests"]):
        if not test.labels & LEVELS[level] or test.cleans_up:
            continue
        if test.is_case():
            key = (test.command[0], frozenset(test.labels))
            if key in programs:
                continue
            programs[key] = test
            test.name, test.command = pathlib.Path(test.command[0]).name, test.command[:1]
        tests.append(test)
    return tests


class Running:
    """A test that runs with a fault."""

    def __init__(self, test, fault, limit, log):
        self.test, self.limit, self.began = test, limit, time.monotonic()
        self.path = log
        environment = os.environ | SETTINGS | {"MONET_FAULT": str(fault), "TMPDIR": str(log.parent)} | test.environment
        with open(log, "wb") as out:
            self.process = subprocess.Popen(test.command, cwd=test.folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, start_new_session=True,
                                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))

    def seconds(self):
        return time.monotonic() - self.began

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def outcome(self):
        """Returns None while the test runs, then the reason of its failure, empty if it passed."""
        code = self.process.poll()
        if code is None:
            if self.seconds() < self.limit:
                return None
            self.stop()
            return f"{self.test.name}: time-out"
        text = self.path.read_text(errors="replace")
        if self.test.skipped is not None and code == self.test.skipped:
            return ""
        failed = code != 0
        if self.test.passes_with:
            failed = not any(one.search(text) for one in self.test.passes_with)
        failed = failed or any(one.search(text) for one in self.test.fails_with)
        if failed == self.test.fails:
            return ""
        case = re.search(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", text, re.MULTILINE)
        return f"{self.test.name}: " + (case[1] if case else f"signal {-code}" if code < 0 else f"exit {code}")


def run_tests(order, fault, limits, jobs, logs, ended, first_only):
    """Runs the tests in order, `jobs` in parallel. With `first_only`, the first failure ends the run. Calls `ended(test, seconds, why)` for each test."""
    waiting, running = list(order), []
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    try:
        while waiting or running:
            while waiting and len(running) < jobs and not any(one.test.alone for one in running) and not (waiting[0].alone and running):
                log = logs / f"{fault}_{len(order) - len(waiting)}.log"
                running.append(Running(waiting[0], fault, limits.get(waiting[0].name, 3600), log))
                waiting.pop(0)
            time.sleep(0.01)
            for one in list(running):
                why = one.outcome()
                if why is None:
                    continue
                running.remove(one)
                ended(one.test, one.seconds(), why)
                if not why:
                    one.path.unlink()
                elif first_only:
                    return why
        return ""
    finally:
        for one in running:
            one.stop()


def baseline(tests, level, jobs, scratch, logs):
    """Returns the seconds of each test without a fault, without the tests that fail."""
    store = scratch / f"baseline_{level}.json"
    built = max(os.stat(shutil.which(test.command[0]) or test.command[0]).st_mtime for test in tests)
    if store.is_file() and store.stat().st_mtime > built:
        known = json.loads(store.read_text())
        if set(known["seconds"]) | set(known["failed"]) == {test.name for test in tests}:
            return known["seconds"], known["failed"]
    seconds, failed = {}, {}

    def ended(test, took, why):
        if why:
            failed[test.name] = why
        else:
            seconds[test.name] = round(took, 2)

    setups = sorted(tests, key=lambda test: not test.setups)  # first
    run_tests(setups, 0, {}, jobs, logs, ended, False)
    store.write_text(json.dumps({"seconds": seconds, "failed": failed}, indent=1))
    return seconds, failed


def ordered(fault, tests, seconds):
    """Orders the tests: those of the fault's stage first, the shortest first. Set-up tests have run without a fault."""
    return sorted((test for test in tests if not test.setups),
                  key=lambda test: (not re.search(fault.tests, test.name), seconds[test.name]))


def run(scratch, level, jobs, only, keep):
    os.environ["MONET_TEST_LEVEL"] = level
    logs = scratch / "logs"  # also has temporary files of tests that were stopped
    tests = tests_of(scratch, level)
    seconds, failed = baseline(tests, level, jobs, scratch, logs)
    for why in failed.values():
        print(f"fails without a fault, left out: {why}", flush=True)
    tests = [test for test in tests if test.name in seconds]
    limits = {name: max(LEAST_LIMIT, SLOWDOWN * took) for name, took in seconds.items()}
    print(f"{len(tests)} tests, {sum(seconds.values()):.0f} s without a fault", flush=True)
    store = scratch / f"faults_{level}.json"
    results = json.loads(store.read_text()) if keep and store.is_file() else {}
    for fault in read_faults():
        if (only and fault.id not in only) or str(fault.id) in results:
            continue
        place, _, line = locate(fault, ROOT)
        began = time.monotonic()
        why = run_tests(ordered(fault, tests, seconds), fault.id, limits, jobs, logs, lambda *_: None, True)
        results[str(fault.id)] = {"stage": fault.stage, "difficulty": fault.difficulty, "place": f"{place.path}:{line}",
                                  "kind": fault.kind, "found": why, "seconds": round(time.monotonic() - began, 1)}
        store.write_text(json.dumps(results, indent=1))
        row = results[str(fault.id)]
        print(f"{fault.id:3} {fault.stage:10} {fault.difficulty:7} {row['place']:52} {row['seconds']:7.1f} s  {why or 'MISSED'}"
              f"  ({fault.kind})", flush=True)
    report(results)


def report(results):
    rows = list(results.values())
    for key in ("stage", "difficulty"):
        for value in dict.fromkeys(row[key] for row in rows):
            of_value = [bool(row["found"]) for row in rows if row[key] == value]
            print(f"{value:10} {sum(of_value):3} of {len(of_value)}")
    print(f"found {sum(bool(row['found']) for row in rows)} of {len(rows)} faults in {sum(row['seconds'] for row in rows):.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    for name in ("plant", "build", "run"):
        commands.add_parser(name).add_argument("scratch", type=pathlib.Path)
    commands.choices["build"].add_argument("targets", nargs="*")
    of_run = commands.choices["run"]
    of_run.add_argument("--level", choices=LEVELS, required=True)
    of_run.add_argument("--jobs", type=int, default=2)
    of_run.add_argument("--only", type=lambda text: {int(one) for one in text.split(",")}, help="IDS separated by commas")
    of_run.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if args.command == "list":
        for fault, (place, _, line) in locate_all().items():
            print(f"{fault.id:3} {fault.stage:10} {fault.difficulty:7} {place.path}:{line}: {fault.kind}")
        return
    scratch = args.scratch.resolve()
    if args.command == "plant":
        plant(scratch)
    elif args.command == "build":
        build(scratch, args.targets)
    else:
        run(scratch, args.level, args.jobs, args.only, args.keep)


if __name__ == "__main__":
    main()
