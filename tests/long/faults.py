#!/usr/bin/env python3
"""usage: tests/long/faults.py BIN_DIR [--random 2000] [--seed 1] [--jobs 2]

Tries each system call of a save with an error and with a kill, then so many faults at random over save, resume and
start (tests/faults), and writes tests/long/faults.md. Of the calls of malloc those at random alone: a save has some ten
thousand. The exit status is 1 where a promise was broken.
"""

import argparse
import collections
import concurrent.futures
import datetime
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/faults"))
from fault_jobs import PHASES, Fault, Jobs, seconds_of_children  # noqa: E402


def check_all(jobs: Jobs, faults: list[Fault], at_once: int) -> list[str]:
    """The problem of each fault, '' where there is none."""
    problems = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for number, (fault, problem) in enumerate(zip(faults, pool.map(jobs.check, faults)), 1):
            problems.append(problem)
            if problem:
                print(f"{fault}: {problem}", flush=True)
            if number % 100 == 0:
                print(f"{number} of {len(faults)}", flush=True)
    return problems


def table(faults: list[Fault], problems: list[str]) -> str:
    """A row for each phase and kind of call."""
    tried, broken = collections.Counter(), collections.Counter()
    for fault, problem in sorted(zip(faults, problems, strict=True), key=str):
        what = fault.do.partition(":")[0]
        tried[fault.phase, fault.kind, {"errors": "error"}.get(what, what)] += 1
        broken[fault.phase, fault.kind] += bool(problem)
    lines = ["| phase | call | error | kill | short | late | broke a promise |", "|---|---|---|---|---|---|---|"]
    for phase, kind in broken:
        counts = [tried[phase, kind, what] for what in ("error", "kill", "short", "late")]
        lines.append(f"| {phase} | {kind} | " + " | ".join(map(str, counts)) + f" | {broken[phase, kind]} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    jobs = Jobs(args.bin_dir)
    try:
        jobs.prepare(list(PHASES))
        every = [fault for fault in jobs.every("save") if fault.kind != "malloc"]
        rng = random.Random(args.seed)
        at_random = [jobs.at_random(rng) for _ in range(args.random)]
        of_every, of_random = (check_all(jobs, faults, args.jobs) for faults in (every, at_random))
    finally:
        jobs.close()
    broken = sum(map(bool, of_every + of_random))
    seconds = round(seconds_of_children())
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    last = (f"{len(every)} faults, each system call of a save with an error and with a kill, and {len(at_random)} at "
            f"random of seed {args.seed}: {broken} broke a promise")
    (ROOT / "tests/long/faults.md").write_text(
        f"# Faults in system calls\n\nWritten by `tests/long/faults.py` on {datetime.date.today()}, commit "
        f"{commit.stdout.strip()}, in {seconds} s of processor time.\n{last}.\n\n## Each call of a save\n\n" +
        table(every, of_every) + "\n## At random\n\n" + table(at_random, of_random))
    print(last)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
