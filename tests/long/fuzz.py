#!/usr/bin/env python3
"""usage: tests/long/fuzz.py [--minutes 10] [--only TARGET,...] [--folder FOLDER]

Fuzzes each target of tests/fuzz for so many CPU minutes with libFuzzer, ASan and UBSan, in a copy of HEAD, and writes
the table in tests/long/fuzz.md. Needs clang-19, libclang-rt-19-dev and libomp-19-dev. An input that breaks a target
stays in FOLDER/finds, and the exit status is 1. What is found goes into tests/fuzz/corpus/TARGET, which test_fuzz
replays.
"""
import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/long/fuzz.md"
MEBIBYTES, SECONDS = 2560, 20  # that one input may take



def build(tree: Path) -> Path:
    folder = tree / "build/fuzz"
    if not (folder / "build.ninja").exists():
        line = ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++-19"]
        line += ["-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1"]
        line += ["-DLOCKSTEP_SANITIZE=address,undefined,fuzzer-no-link", "-DLOCKSTEP_CUDA=OFF", "-DLOCKSTEP_BENCH=OFF"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["nice", "-n", "15", "ninja", "-j", "2", "-C", folder, "fuzz_target"], check=True, stdout=subprocess.DEVNULL)
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
        line = [program, corpus, *([kept] if kept.exists() else []), f"-artifact_prefix={finds}/"]
        line += [f"-max_total_time={seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEBIBYTES}", "-max_len=16384"]
        line += ["-print_final_stats=1", "-seed=1"]
        with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
            done = subprocess.run(line, capture_output=True, text=True, errors="replace",
                                  env=environment | {"TMPDIR": scratch})
        runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
        edges = re.findall(r"cov: (\d+)", done.stderr)
        self.runs, self.edges = int(runs[1]) if runs else 0, int(edges[-1]) if edges else 0
        self.inputs = len(list(corpus.iterdir()))
        self.broke = done.returncode != 0
        if self.broke:
            (finds / "log").write_text(done.stderr)


def fuzz(program: Path, targets: list[str], minutes: float, folder: Path) -> bool:
    rows, finds = [], 0
    for target in targets:
        one = Fuzzed(program, target, round(60 * minutes), folder)
        finds += one.broke
        found = "broke" if one.broke else "none"
        rows.append(f"| {target} | {one.runs:,} | {one.edges:,} | {one.inputs:,} | {found} |")
        print(rows[-1], flush=True)
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    TABLE.write_text(
        "# Fuzzing\n\n"
        f"Written by `tests/long/fuzz.py` on {datetime.date.today()}, commit {commit.stdout.strip()}: {minutes:g} "
        "minutes a target,\nwith ASan and UBSan.\n\n"
        "| target | inputs tried | edges reached | corpus | found |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    print(f"{len(targets)} targets, {minutes:g} minutes each: {finds or 'nothing'} found")
    return finds == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", default="", metavar="TARGETS")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "lockstep_fuzz")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tree = args.folder / "tree"
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    subprocess.run(["git", "-C", tree, "fetch", "--quiet", ROOT, "HEAD"], check=True)
    subprocess.run(["git", "-C", tree, "checkout", "--quiet", "--force", "FETCH_HEAD"], check=True)
    program = build(tree)
    targets = [name for name in target_names(program) if not args.only or name in args.only.split(",")]
    sys.exit(0 if fuzz(program, targets, args.minutes, args.folder) else 1)


if __name__ == "__main__":
    main()
