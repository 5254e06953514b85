"""Shared by the speed scripts: runs programs in turn, picks quiet rounds, and writes results with their origin."""

import datetime
import json
import os
import re
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build" / "release" / "bin"
RESULTS = ROOT / "bench" / "results"
AVX2 = {
    "LOCKSTEP_ISA": "v3",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")


def on_ranks(ranks: int, line: list[str]) -> list[str]:
    return [str(ROOT / "scripts" / "run"), "-np", str(ranks), *line] if ranks > 1 else line


def output_of(line: list[str], preload: Path | None = None) -> str:
    """Runs a program and returns its standard output. A given library is preloaded."""
    extra = {"LD_PRELOAD": str(preload)} if preload and preload.exists() else {}
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | extra)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout.strip()


def origin(script: str) -> dict:
    """The first members of every result."""
    return {
        "script": script,
        "date": datetime.date.today().isoformat(),
        "commit": output_of(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]),
        "cpu": re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1],
        "cores": len(os.sched_getaffinity(0)),
    }


def merge_result(path: Path, parts: dict) -> None:
    """Replaces these parts of the file and keeps the others."""
    known = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known | parts, indent=2) + "\n")
    print(f"wrote {path}")


def measure_part(path: Path, part: str, measure: Callable[[], dict]) -> None:
    """Replaces the part of the file by what is measured. All programs of PART_avx2 are limited to AVX2."""
    with mock.patch.dict(os.environ, AVX2 if part.endswith("_avx2") else {}):
        merge_result(path, {part: measure()})


def ratio(ours: list[float], theirs: list[float]) -> dict:
    """Ratio of medians, and the smallest and largest of single rounds."""
    singles = [a / b for a, b in zip(ours, theirs)]
    return {
        "ratio": round(statistics.median(ours) / statistics.median(theirs), 3),
        "min": round(min(singles), 3),
        "max": round(max(singles), 3),
        "rounds": len(singles),
    }


class Neighbors:
    """CPU time that processes other than our children used meanwhile, in percent of a core."""

    def __init__(self) -> None:
        self.start, self.busy, self.own = time.monotonic(), self.busy_s(), self.own_s()

    @staticmethod
    def busy_s() -> float:
        ticks = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
        idle = ticks[3] + ticks[4]
        return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_s() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    def percent(self) -> float:
        others = self.busy_s() - self.busy - (self.own_s() - self.own)
        return max(0.0, 100 * others / (time.monotonic() - self.start))


def run_rounds(programs: dict, rounds: int, max_others: float, title: str) -> tuple[list[dict], list[float]]:
    """Rounds of {program: what it returned}, and the neighbors' share in each of them.

    The programs run one after another, A B A B ..., so that all see the same machine. A round in which other
    processes used more than max_others percent of a core is run again, at most `rounds` times in all.
    """
    kept, shares, spare = [], [], rounds
    while len(kept) < rounds:
        neighbors = Neighbors()
        results = {name: run() for name, run in programs.items()}
        share = neighbors.percent()
        quiet = share <= max_others or spare == 0
        again = "" if quiet else ", again"
        print(f"{title} round {len(kept) + 1}/{rounds}: others {share:.0f} % of a core{again}", flush=True)
        if quiet:
            kept.append(results)
            shares.append(share)
        else:
            spare -= 1
    return kept, shares
