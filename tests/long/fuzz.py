#!/usr/bin/env python3
"""usage: tests/long/fuzz.py [--minutes 10] [--planted] [--only TARGET,...] [--jobs 2] [--processes 1] [--folder FOLDER]

Fuzzes each target of tests/fuzz for so many CPU minutes with libFuzzer, ASan and UBSan, in a copy of HEAD, and writes
the table in tests/long/fuzz.md: one row a target, which stays until the target runs again. --planted: each target looks
for the bug of tests/long/planted_bugs.py that was built into the copy, for so many CPU minutes at most.

scripts/setup.sh fuzz installs what this needs. An input that breaks a target stays in FOLDER/finds, and the exit status
is 1. Copy what is found to tests/fuzz/corpus/TARGET, which test_fuzz replays.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import planted_bugs

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/long/fuzz.md"
MEBIBYTES, SECONDS = 2560, 120  # that one input may take: seconds of the clock, so beside other work too
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

    def __init__(self, program: Path, target: str, args: argparse.Namespace, folder: Path) -> None:
        self.program, self.target, self.finds = program, target, folder / "finds" / target
        self.corpus = folder / "corpus" / target
        for path in (self.corpus, self.finds):
            path.mkdir(parents=True, exist_ok=True)
        self.environment = os.environ | {
            "LOCKSTEP_FUZZ_TARGET": target, "LOCKSTEP_GOLDEN_DIR": str(ROOT / "tests/golden")}
        subprocess.run([program], check=True, env=self.environment | {"LOCKSTEP_FUZZ_SEEDS": str(self.corpus)})
        self.runs, self.edges, self.cpu_seconds, self.broke, self.said = 0, 0, 0.0, False, ""
        seed = 0
        while not self.broke and self.cpu_seconds < 60 * args.minutes - 1:  # libFuzzer counts seconds of the clock
            seconds = max(1, round((60 * args.minutes - self.cpu_seconds) / args.processes))
            limits = [f"-max_total_time={seconds}", f"-max_len={self.longest()}"]
            with ThreadPoolExecutor(args.processes) as pool:
                seeds = range(seed + 1, seed + 1 + args.processes)
                for process in list(pool.map(lambda one: self.run(one, limits), seeds)):  # noqa: B023
                    self.add(*process)
            seed += args.processes
        self.inputs = len(list(self.corpus.iterdir()))
        if self.broke:
            (self.finds / "log").write_text(self.said)

    def corpora(self) -> list[Path]:
        """What is found goes to the first."""
        kept = ROOT / "tests/fuzz/corpus" / self.target
        return [self.corpus, kept] if kept.exists() else [self.corpus]

    def longest(self) -> int:
        """A seed that is longer would be cut, and a record of a fixed size never be read."""
        return max(16384, *(path.stat().st_size for corpus in self.corpora() for path in corpus.iterdir()))

    def run(self, seed: int, limits: list[str]) -> tuple[bool, float, str]:
        """Whether one process broke, its CPU seconds, and its log."""
        line = ["nice", "-n", "15", self.program, *self.corpora(), *limits, f"-seed={seed}", "-print_final_stats=1"]
        line += [f"-artifact_prefix={self.finds}/", f"-timeout={SECONDS}", f"-rss_limit_mb={MEBIBYTES}"]
        with (tempfile.TemporaryDirectory(dir="/dev/shm") as scratch,
              tempfile.TemporaryFile("w+", errors="replace") as log):
            process = subprocess.Popen(line, stdout=log, stderr=log, env=self.environment | {"TMPDIR": scratch})
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            return process.returncode != 0, used.ru_utime + used.ru_stime, log.read()

    def add(self, broke: bool, cpu_seconds: float, said: str) -> None:
        self.cpu_seconds += cpu_seconds
        runs = re.search(r"stat::number_of_executed_units: (\d+)", said)
        self.runs += int(runs[1]) if runs else 0
        self.edges = max([self.edges, *map(int, re.findall(r"cov: (\d+)", said))])
        self.said = said if broke or not self.broke else self.said
        self.broke = self.broke or broke


class Table:
    """One part of tests/long/fuzz.md: a row per target. Rows of targets that are not fuzzed again stay."""

    def __init__(self, part: str, head: str) -> None:
        self.part, self.head = part, head
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        self.origin = f"{datetime.date.today()}, {commit.stdout.strip()}"
        self.parts = {name: TABLE.read_text().partition(heading)[2].partition("\n## ")[0].strip()
                      if TABLE.exists() else "" for name, heading in PARTS.items()}
        lines = [line for line in self.parts[part].splitlines() if line.startswith("| ")][1:]
        self.rows = {line.split(" | ")[0][2:]: line for line in lines}

    def write(self, target: str, cells: list[str]) -> None:
        self.rows[target] = f"| {target} | {' | '.join(cells)} | {self.origin} |"
        print(self.rows[target], flush=True)
        rows = [self.rows[name] for name in sorted(self.rows)]
        rule = "|" + "---|" * (self.head.count("|") - 1)
        self.parts[self.part] = "\n".join([self.head, rule, *rows])
        texts = [f"{heading}\n{self.parts[name]}" for name, heading in PARTS.items() if self.parts[name]]
        TABLE.write_text("# Fuzz targets\n\nWritten by `tests/long/fuzz.py`: libFuzzer with ASan and UBSan.\n\n"
                         + "\n\n".join(texts) + "\n")


def each(targets: list[str], jobs: int, fuzzed, done) -> list[Fuzzed]:
    """Fuzzes so many targets at once; `done` is told of one at a time."""
    lock = threading.Lock()

    def one(target: str) -> Fuzzed:
        result = fuzzed(target)
        with lock:
            done(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, targets))


def fuzz(program: Path, targets: list[str], args: argparse.Namespace) -> bool:
    table = Table("found", "| target | CPU minutes | inputs tried | edges reached | corpus | found | when, commit |")

    def done(one: Fuzzed) -> None:
        figures = [f"{one.cpu_seconds / 60:.1f}", f"{one.runs:,}", f"{one.edges:,}", f"{one.inputs:,}"]
        table.write(one.target, [*figures, "broke" if one.broke else "none"])

    all_of_them = each(targets, args.jobs, lambda target: Fuzzed(program, target, args, args.folder), done)
    spent, finds = sum(one.cpu_seconds for one in all_of_them) / 60, sum(one.broke for one in all_of_them)
    print(f"{len(targets)} targets, {spent:.0f} CPU minutes in all: {finds or 'nothing'} found")
    return finds == 0


def find_planted(program: Path, targets: list[str], args: argparse.Namespace) -> bool:
    table = Table("planted", "| target | planted | inputs tried | CPU seconds | found as | when, commit |")

    def done(one: Fuzzed) -> None:
        file, _, _, what = planted_bugs.PLANTED[one.target]
        said = re.search(r"SUMMARY: (.*)", one.said)
        how = re.sub(r" *\([^)]*\)| in .*| /usr/.*/", " ", said[1]).strip() if said else "an exception"
        how = how if one.broke else "**not found**"
        table.write(one.target, [f"`{file}`: {what}", f"{one.runs:,}", f"{one.cpu_seconds:.0f}", how])

    with tempfile.TemporaryDirectory() as fresh:  # what breaks it is no part of the corpus
        all_of_them = each(targets, args.jobs, lambda target: Fuzzed(program, target, args, Path(fresh)), done)
    found = sum(one.broke for one in all_of_them)
    print(f"{found} of {len(targets)} planted bugs found")
    return found == len(targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--only", default="", metavar="TARGETS")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--processes", type=int, default=1, help="of each target: some mostly wait for a socket")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "lockstep_fuzz")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tree = checked_out(args.folder)
    if args.planted:
        planted_bugs.plant(tree)
    program = build(tree)
    targets = [name for name in target_names(program) if not args.only or name in args.only.split(",")]
    if not targets:
        sys.exit(f"{program} has no such target")
    sys.exit(0 if (find_planted if args.planted else fuzz)(program, targets, args) else 1)


if __name__ == "__main__":
    main()
