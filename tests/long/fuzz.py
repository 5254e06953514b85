#!/usr/bin/env python3
"""usage: tests/long/fuzz.py [--minutes 10] [--planted] [--only TARGET,...] [--folder FOLDER]

Fuzzes each target of tests/fuzz for so many CPU minutes with libFuzzer, ASan and UBSan, in a copy of HEAD, and writes
the table in tests/long/fuzz.md. --planted: each target looks for the bug of tests/long/planted_bugs.py that was built
into the copy, for so many minutes at most. scripts/setup.sh fuzz installs what this needs. An input that breaks a
target stays in FOLDER/finds, and the exit status is 1. What is found goes into tests/fuzz/corpus/TARGET, which
test_fuzz replays.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import planted_bugs

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/long/fuzz.md"
MEBIBYTES, SECONDS = 2560, 20  # that one input may take
PARTS = {"found": "## Fuzzing\n", "planted": "## Planted bugs\n"}  # of the table's file


def checked_out(folder: Path) -> Path:
    """A clean copy of HEAD in which what was built before stays."""
    tree = folder / "tree"
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    subprocess.run(["git", "-C", tree, "fetch", "--quiet", ROOT, "HEAD"], check=True)
    subprocess.run(["git", "-C", tree, "checkout", "--quiet", "--force", "FETCH_HEAD"], check=True)
    return tree


def build(tree: Path) -> Path:
    folder = tree / "build/fuzz"
    if not (folder / "build.ninja").exists():
        line = ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++-19"]
        line += ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1", "-DLOCKSTEP_CUDA=OFF", "-DLOCKSTEP_BENCH=OFF"]
        line += ["-DLOCKSTEP_SANITIZE=address,undefined,fuzzer-no-link"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    line = ["nice", "-n", "15", "ninja", "-j", "2", "-C", folder, "fuzz_target"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return folder / "bin/fuzz_target"


def target_names(program: Path) -> list[str]:
    return subprocess.run([program], capture_output=True, text=True).stdout.split()


class Fuzzed:
    """What libFuzzer says of one target."""

    def __init__(self, program: Path, target: str, seconds: int, folder: Path) -> None:
        corpus, finds = folder / "corpus" / target, folder / "finds" / target
        for path in (corpus, finds):
            path.mkdir(parents=True, exist_ok=True)
        kept = ROOT / "tests/fuzz/corpus" / target
        environment = os.environ | {"LOCKSTEP_FUZZ_TARGET": target, "LOCKSTEP_GOLDEN_DIR": str(ROOT / "tests/golden")}
        subprocess.run([program], check=True, env=environment | {"LOCKSTEP_FUZZ_SEEDS": str(corpus)})
        line = ["nice", "-n", "15", program, corpus, *([kept] if kept.exists() else []), f"-artifact_prefix={finds}/"]
        line += [f"-max_total_time={seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEBIBYTES}", "-max_len=16384"]
        line += ["-print_final_stats=1", "-seed=1"]
        begun = time.monotonic()
        before = os.times()
        with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
            done = subprocess.run(line, capture_output=True, text=True, errors="replace",
                                  env=environment | {"TMPDIR": scratch})
        after = os.times()
        self.seconds = time.monotonic() - begun
        self.cpu_minutes = sum(after[2:4]) / 60 - sum(before[2:4]) / 60
        runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
        edges = re.findall(r"cov: (\d+)", done.stderr)
        self.runs, self.edges = int(runs[1]) if runs else 0, int(edges[-1]) if edges else 0
        self.inputs = len(list(corpus.iterdir()))
        self.broke = done.returncode != 0
        self.said = done.stderr
        if self.broke:
            (finds / "log").write_text(done.stderr)


def write_part(name: str, text: str) -> None:
    """Replaces one part of the table's file."""
    parts = {part: TABLE.read_text().partition(heading)[2].partition("\n## ")[0].strip() if TABLE.exists() else ""
             for part, heading in PARTS.items()}
    parts[name] = text.strip()
    TABLE.write_text("# Fuzz targets\n\nWritten by `tests/long/fuzz.py`.\n\n" +
                     "\n\n".join(f"{heading}\n{parts[part]}" for part, heading in PARTS.items() if parts[part]) + "\n")


def head() -> str:
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return f"{datetime.date.today()}, commit {commit.stdout.strip()}"


def fuzz(program: Path, targets: list[str], minutes: float, folder: Path) -> bool:
    rows, finds, spent = [], 0, 0.0
    for target in targets:
        one = Fuzzed(program, target, round(60 * minutes), folder)
        finds += one.broke
        spent += one.cpu_minutes
        found = "broke" if one.broke else "none"
        figures = f"{one.cpu_minutes:.1f} | {one.runs:,} | {one.edges:,} | {one.inputs:,}"
        rows.append(f"| {target} | {figures} | {found} |")
        print(rows[-1], flush=True)
        write_part("found", f"{head()}, with ASan and UBSan: {spent:.0f} CPU minutes in all.\n\n"
                   "| target | CPU minutes | inputs tried | edges reached | corpus | found |\n"
                   "|---|---|---|---|---|---|\n" + "\n".join(rows))
    print(f"{len(targets)} targets, {spent:.0f} CPU minutes in all: {finds or 'nothing'} found")
    return finds == 0


def find_planted(program: Path, targets: list[str], minutes: float, folder: Path) -> bool:
    rows, missed = [], 0
    for target in targets:
        file, _, _, what = planted_bugs.PLANTED[target]
        one = Fuzzed(program, target, round(60 * minutes), folder)
        missed += not one.broke
        said = re.search(r"SUMMARY: (.*)", one.said)
        how = (said[1].replace(str(program.parents[3]) + "/", "") if said else "an exception").replace("|", "/")
        how = how if one.broke else "**not found**"
        rows.append(f"| {target} | `{file}`: {what} | {one.runs:,} | {one.seconds:.0f} | {how} |")
        print(rows[-1], flush=True)
    write_part("planted", f"{head()}: {len(targets) - missed} of {len(targets)} found.\n\n"
               "| target | planted | inputs tried | seconds | found as |\n|---|---|---|---|---|\n" + "\n".join(rows))
    print(f"{len(targets) - missed} of {len(targets)} planted bugs found")
    return missed == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--only", default="", metavar="TARGETS")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "lockstep_fuzz")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tree = checked_out(args.folder)
    if args.planted:
        planted_bugs.plant(tree)
    program = build(tree)
    targets = [name for name in target_names(program) if not args.only or name in args.only.split(",")]
    if args.planted:
        with tempfile.TemporaryDirectory() as fresh:  # what breaks it is no part of the corpus
            sys.exit(0 if find_planted(program, targets, args.minutes, Path(fresh)) else 1)
    sys.exit(0 if fuzz(program, targets, args.minutes, args.folder) else 1)


if __name__ == "__main__":
    main()
