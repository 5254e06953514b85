#!/usr/bin/env python3
"""usage: tests/long/soak.py BIN [--minutes 30] [--ranks 8] [--seed N]

The ConvNet on 8 oversubscribed ranks under scripts/run, disturbed for so long: ranks are stopped for up to 4 s, the
disk is full for some seconds, all ranks are asked to save and stop and start again, a rank is killed and the job
restarts. Then it trains 200 steps more, undisturbed.

Each resumed process's memory and descriptors, from its second epoch on, stay within 2 % (and 2 descriptors) of those of
the first resumed process of its rank; no file, shared memory or process is left; the weights have the digest of one
rank that nobody disturbed. Needs root, for a small tmpfs.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WARM_EPOCHS = 2  # begun since the process was first seen: an order of images was drawn beside another one
SAMPLES = 10  # one per second
DISK_MIB = 64
BATCH = 256
CORES = 2
ENDLESS = 10**9  # steps


class Soak:
    def __init__(self, args: argparse.Namespace, work: Path):
        self.args, self.work, self.rng = args, work, random.Random(args.seed)
        self.disk, self.log, self.program = work / "disk", work / "log", args.bin.resolve() / "train_convnet"
        self.job: subprocess.Popen | None = None
        self.counts: dict[str, int] = defaultdict(int)
        self.seen: dict[int, dict] = {}  # by process: rank, and samples of (KiB, descriptors)
        self.born: dict[int, int] = {}  # by process: the epoch in which it was first seen

    def line(self, ranks: int, run: Path, steps: int, *more: str) -> list[str]:
        # Dummy images: pages of a data set come into memory over many epochs.
        start = [ROOT / "scripts/run", "-np", str(ranks), "--max-restarts", "1000"] if ranks > 1 else []
        shards = ["--shards", "8", "--bn-groups", "8", "--global-batch-size", str(BATCH), "--dummy"]
        shards += ["--threads", str(CORES if ranks == 1 else 1)]
        length = ["--epochs", "1000000", "--max-steps", str(steps), "--save-freq", "50", "--keep", "2"]
        quiet = ["--no-eval", "--no-tensorboard", "-p", "50", "-q", "--stall-abort", "30"]
        return list(map(str, [*start, self.program, *shards, *length, *quiet, "-o", run, *more]))

    def start(self, steps: int) -> subprocess.Popen:
        line = self.line(self.args.ranks, self.disk / "run", steps, "--resume", "auto")
        with self.log.open("a") as log:
            self.job = subprocess.Popen(line, stdout=log, stderr=log, env=os.environ | {"MALLOC_ARENA_MAX": "1"})
        return self.job

    def end(self) -> None:
        """Where this script ends early, the job ends too."""
        if self.job and self.job.poll() is None:
            self.job.terminate()
            self.job.wait(timeout=120)

    def processes(self) -> list[int]:
        found = subprocess.run(["pgrep", "-f", f"^{self.program} .* -o {self.disk}/run( |$)"], stdout=subprocess.PIPE)
        return [int(word) for word in found.stdout.split()]

    def epoch(self) -> int:
        """The newest one in the run's metrics; 0 before there is any."""
        try:
            with (self.disk / "run/metrics.jsonl").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
                epochs = re.findall(rb'"epoch": ?(\d+)', file.read())
        except FileNotFoundError:
            return 0
        return int(epochs[-1]) if epochs else 0

    def sample(self) -> None:
        """Memory and descriptors of each rank that has had time to warm up."""
        epoch = self.epoch()
        for process in self.processes():
            if epoch < self.born.setdefault(process, epoch) + WARM_EPOCHS:
                continue
            try:
                environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
                status = Path(f"/proc/{process}/status").read_text().split()
                descriptors = len(os.listdir(f"/proc/{process}/fd"))
                rank = next(int(word.partition(b"=")[2]) for word in environment
                            if word.startswith(b"OMPI_COMM_WORLD_RANK="))
                resident = int(status[status.index("RssAnon:") + 1])
            except (OSError, ValueError, StopIteration):
                continue  # it has just ended
            self.seen.setdefault(process, {"rank": rank, "samples": []})["samples"].append((resident, descriptors))

    def watch(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.sample()
            time.sleep(1)

    def one_process(self) -> int | None:
        processes = self.processes()
        return self.rng.choice(processes) if processes else None

    def send(self, process: int, number: int) -> None:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass  # it ended first

    def stall(self) -> None:
        if process := self.one_process():
            self.send(process, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.1, 4))
            self.send(process, signal.SIGCONT)

    def fill_disk(self) -> None:
        ballast = self.disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass  # full, as it should be
        self.watch(self.rng.uniform(2, 6))
        ballast.unlink()

    def kill(self) -> None:
        if process := self.one_process():
            self.send(process, signal.SIGKILL)

    def disturb(self) -> int:
        """Disturbs the run, and stops it. Returns its steps."""
        job, end = self.start(ENDLESS), time.monotonic() + 60 * self.args.minutes
        harmless, restarts = ["stall", "stall", "fill_disk"], ["kill", "stop"]
        next_restart = time.monotonic() + 90  # so that most processes are old enough to be measured
        while time.monotonic() < end:
            self.watch(self.rng.uniform(3, 8))
            what = self.rng.choice(harmless)
            if time.monotonic() > next_restart:
                what, next_restart = self.rng.choice(restarts), time.monotonic() + self.rng.uniform(60, 150)
            self.counts[what] += 1
            if what == "stop":
                job.send_signal(signal.SIGTERM)
            else:
                getattr(self, what)()
            if what == "stop" or job.poll() is not None:
                self.counts[f"exit {job.wait(timeout=120)}"] += 1
                job = self.start(ENDLESS)
        self.watch(10)
        job.send_signal(signal.SIGTERM)
        self.counts[f"exit {job.wait(timeout=120)}"] += 1
        newest = (self.disk / "run/checkpoints/last.safetensors").readlink()
        return int(re.fullmatch(r"step(\d+)\.safetensors", newest.name)[1])

    def growth(self) -> list[str]:
        """What grew by more than it may, from a rank's first resumed process to any later one, or within one.

        The process that began the run is left out: it never read a checkpoint, so its heap is some 0.3 MiB smaller.
        The least of some seconds counts, for a save takes memory and a descriptor in passing.
        """
        found, lives = [], defaultdict(list)
        for life in self.seen.values():
            if len(life["samples"]) >= SAMPLES:
                lives[life["rank"]].append(life["samples"])
        for rank, (_, *processes) in sorted(lives.items()):
            if not processes:
                return [f"no resumed process of rank {rank} was old enough to be measured"]
            early, opened = at_rest(processes[0][:SAMPLES])
            ends = [at_rest(samples[-SAMPLES:]) for samples in processes]
            late, open_late = max(resident for resident, _ in ends), max(descriptors for _, descriptors in ends)
            print(f"rank {rank}: {len(processes)} resumed processes, {early} to {late} KiB of their own, "
                  f"{opened} to {open_late} descriptors; at their ends {[resident for resident, _ in ends]}")
            if not late <= early * 1.02 or not open_late <= opened + 2:
                found.append(f"rank {rank} grew")
        return found if lives else ["no process was old enough to be measured"]


def at_rest(samples: list[tuple[int, int]]) -> tuple[int, int]:
    """The least memory and the least number of descriptors."""
    return min(resident for resident, _ in samples), min(descriptors for _, descriptors in samples)


def digest_of(run: Path) -> str:
    return json.loads((run / "run.json").read_text())["digest"]


def left_behind(since: float) -> list[str]:
    return [str(path) for path in Path("/dev/shm").glob(f"lockstep.{os.getuid()}.*") if path.stat().st_mtime > since]


def soak(job: Soak) -> list[str]:
    args, work = job.args, job.work
    since = time.time()
    steps = job.disturb() + 200
    code = job.start(steps).wait()
    problems = [] if code == 0 else [f"the run ended with {code}: {job.log.read_text()[-2000:]}"]
    undisturbed = subprocess.run(job.line(1, work / "base", steps), stdout=subprocess.DEVNULL, check=False)
    if undisturbed.returncode or code:
        return [*problems, "no digest to compare"]
    if digest_of(work / "base") != digest_of(job.disk / "run"):
        problems.append("the digest differs from the undisturbed one")
    problems += [f"left: {path}" for path in left_behind(since)] + job.growth()
    problems += [f"process {process} is left" for process in job.processes()]
    happened = ", ".join(f"{count} x {what}" for what, count in sorted(job.counts.items()))
    print(f"{steps} steps on {args.ranks} ranks in {(time.time() - since) / 60:.0f} minutes; {happened}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=os.getpid())
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # which unmounts the disk
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    print(f"soak of seed {args.seed}, commit {commit.strip()}")
    with tempfile.TemporaryDirectory() as work:
        disk = Path(work, "disk")
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "soak", disk], check=True)
        job = Soak(args, Path(work))
        try:
            problems = soak(job)
        finally:
            job.end()
            subprocess.run(["umount", "-l", disk], check=True)
    print("\n".join(problems) or "memory and descriptors are flat, nothing is left, the digest is the undisturbed one")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
