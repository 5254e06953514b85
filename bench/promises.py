"""Measures how long failing jobs take to end, to stop and to go on here. Writes bench/results/promises.json.

usage: python3 bench/promises.py [--times 5] [--only NAME,...]

Each row is a fault done to a job of the ConvNet on the built-in digits, --times times at random moments, and what was
measured: a time and its bound, or a count of steps. A job that does not end as promised ends this program.
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
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, ROOT, merge_result, origin

TRAIN = [str(PROGRAMS / "train_convnet"), "--threads", "1", "--print-freq", "1", "--no-eval", "--progress", "none"]
TRAIN += ["--global-batch-size", "64", "--shards", "8", "--bn-groups", "8"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
LONG = ["--max-steps", "100000"]


class Job:
    """A training of `ranks` ranks in a folder of its own."""

    def __init__(self, launcher: list[str], ranks: int, arguments: list[str], environment: dict | None = None) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.run, self.ranks = Path(self.place.name, "run"), ranks
        self.log = open(Path(self.place.name, "log"), "w+", encoding="utf-8")
        line = [*launcher, "-np", str(ranks), *TRAIN, *arguments, "-o", str(self.run)]
        self.process = subprocess.Popen(
            line, stdout=self.log, stderr=self.log, env=os.environ | (environment or {}), start_new_session=True
        )

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_) -> None:
        for process in [*self.rank_processes(), self.process.pid]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.log.close()
        self.place.cleanup()

    def rank_processes(self) -> list[int]:
        found = subprocess.run(
            ["pgrep", "-f", f"^{PROGRAMS}/train_convnet .* -o {self.run}( |$)"], capture_output=True, text=True
        )
        return sorted(map(int, found.stdout.split()))

    def text(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def steps(self) -> int:
        """The steps done so far, from the run's log."""
        log = self.run / "metrics.jsonl"
        return log.read_text().count('"step":') if log.exists() else 0

    def wait_until(self, holds, what: str, seconds: float = 60) -> float:
        """Waits until holds(); returns the seconds that it took. Errors: RuntimeError with the job's output."""
        start = time.monotonic()
        while not holds():
            if time.monotonic() - start > seconds:
                raise RuntimeError(f"{what}: not within {seconds} s\n{self.text()}")
            time.sleep(0.005)
        return time.monotonic() - start

    def train_for_a_while(self) -> None:
        self.wait_until(lambda: self.steps() >= 3, "three steps")
        time.sleep(random.uniform(0, 0.5))

    def seconds_to_end(self, said: str, code: int | None = None) -> float:
        """Waits until no process of the job is left. It must print `said`, and end with `code` if that is given."""
        took = self.wait_until(lambda: self.process.poll() is not None and not self.rank_processes(), "the end")
        if not re.search(said, self.text()):
            raise RuntimeError(f"the job does not say {said}:\n{self.text()}")
        if self.process.returncode == 0 or code not in (None, self.process.returncode):
            raise RuntimeError(f"exit {self.process.returncode}, not {code}:\n{self.text()}")
        return took


def dead_rank(ranks: int) -> float:
    with Job(MPIRUN, ranks, LONG) as job:
        job.train_for_a_while()
        os.kill(random.choice(job.rank_processes()), signal.SIGKILL)
        return job.seconds_to_end("signal 9")


def stopped_rank() -> float:
    with Job(MPIRUN, 2, [*LONG, "--stall-abort", "3"]) as job:
        job.train_for_a_while()
        os.kill(random.choice(job.rank_processes()), signal.SIGSTOP)
        return job.seconds_to_end(r"rank \d is stopped by a signal", 75) - 3


def killed_mpirun() -> float:
    with Job(MPIRUN, 4, LONG) as job:
        job.train_for_a_while()
        job.process.kill()
        return job.seconds_to_end("")


def stop_in_slow_steps() -> float:
    """Seconds for which training continued, minus those of a step."""
    step_s = 0.5
    slow = {"LOCKSTEP_FAULT": f"slow:rank=1,ms={step_s * 1000:.0f}"}
    with Job([str(ROOT / "scripts" / "run")], 2, LONG, slow) as job:
        job.train_for_a_while()
        begun = time.time()
        job.process.send_signal(signal.SIGUSR1)
        job.seconds_to_end("", 43)
        return (job.run / "metrics.jsonl").stat().st_mtime - begun - step_s


def save_of_30_seconds() -> float:
    """Seconds that the job took: its two files are flushed for 15 s each, and ranks give up after 5."""
    slow = {"LD_PRELOAD": str(PROGRAMS / "slow_fsync.so"), "SLOW_FSYNC_MS": "15000"}
    with Job(MPIRUN, 2, ["--max-steps", "3", "--stall-abort", "5"], slow) as job:
        took = job.wait_until(lambda: job.process.poll() is not None, "the end", 120)
        if job.process.returncode != 0 or "is still saving a checkpoint" not in job.text() or took < 30:
            raise RuntimeError(f"exit {job.process.returncode} after {took:.1f} s:\n{job.text()}")
        return took


def flipped_bit() -> float:
    """Steps until the ranks' weights are found to differ."""
    with Job(MPIRUN, 4, [*LONG, "--check-ranks", "10"], {"LOCKSTEP_FAULT": "flipbit:rank=1,step=33"}) as job:
        job.seconds_to_end("rank 1", 6)
        return job.steps() - 33


def restart() -> float:
    """Seconds from the kill of a rank to the first step after it."""
    launcher = [str(ROOT / "scripts" / "run"), "--max-restarts", "3"]
    with Job(launcher, 2, [*LONG, "--keep-in-memory", "--progress", "line"]) as job:
        job.train_for_a_while()
        os.kill(random.choice(job.rank_processes()), signal.SIGKILL)
        step = re.compile(r"restart 1 of 3 goes on from step .*^Epoch: ", re.MULTILINE | re.DOTALL)
        return job.wait_until(lambda: step.search(job.text()), "a step after a restart")


ROWS = {  # name: promise, what is done, bound, unit, measurement
    "dead": ("P1", "SIGKILL to one of 4 ranks, until the whole job is gone", 5, "s", lambda: dead_rank(4)),
    "dead_8": ("P1", "the same with 8 ranks", 5, "s", lambda: dead_rank(8)),
    "stopped": ("P2", "SIGSTOP to one of 2 ranks, until the job is gone, after `--stall-abort`", 2, "s", stopped_rank),
    "mpirun": ("P3", "SIGKILL to mpirun, until its 4 ranks are gone", 5, "s", killed_mpirun),
    "flipped": ("P7", "a flipped bit with `--check-ranks 10`, until it is found", 10, "steps", flipped_bit),
    "stop": ("", "SIGUSR1 in steps of 0.5 s, until the last step is done, less 0.5 s", 0.2, "s", stop_in_slow_steps),
    "save": ("", "a save of 30 s or more with `--stall-abort 5`: exit 0, and it is said", 120, "s", save_of_30_seconds),
    "restart": ("", "SIGKILL with `--keep-in-memory`, until a step after the restart", 2, "s", restart),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", metavar="NAME,...", default=",".join(ROWS))
    args = parser.parse_args()
    rows, broken = {}, 0
    for name in args.only.split(","):
        promise, what, bound, unit, measure = ROWS[name]
        values = sorted(measure() for _ in range(1 if name == "save" else args.times))
        broken += not values[-1] <= bound
        print(f"{name}: {what}: {', '.join(f'{value:.2f}' for value in values)} {unit}, bound {bound}", flush=True)
        rows[name] = {"promise": promise, "what": what, "bound": bound, "unit": unit}
        rows[name] |= {"median": round(values[len(values) // 2], 2), "largest": round(values[-1], 2), "n": len(values)}
    path = RESULTS / "promises.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else {}
    merge_result(path, origin("bench/promises.py") | {"rows": known | rows})
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
