"""Runs trainings with one fault each, by fault_shim.so, and checks the promises of docs/reliability.md."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

# Must match fault_shim.cpp.
KINDS = ("open read write fsync rename unlink symlink mkdir mmap memfd_create socket send recv futex malloc").split()
ERRORS = {  # errno values that such a call returns in practice
    "open": (13, 24, 28), "read": (4, 5), "write": (4, 5, 28), "fsync": (5, 28), "rename": (5, 13), "unlink": (5, 13),
    "symlink": (1, 28), "mkdir": (13, 28), "mmap": (12,), "memfd_create": (24, 38), "socket": (13, 24),
    "send": (4, 32, 105), "recv": (4, 104), "futex": (4, 11), "malloc": (12,),
}
LASTING = {"open": 24, "write": 28, "fsync": 5, "mmap": 12}  # errno: all calls fail from some call on
SHORTENED = ("read", "write", "send", "recv")
LIMIT_S = 60  # a job that takes longer counts as hanging
DOCUMENTED = (2, 3, 4, 5, 6, 43, 75)  # exit codes of docs/running.md that are not bugs
STEPS, MORE_STEPS = 4, 6  # of the disturbed training, and of the one that continues it
BEGUN_STEPS = 2  # of the run that a resume continues
TRAINING = "--global-batch-size 32 --shards 2 --bn-groups 2 --threads 1 --workers 1 --save-steps 2 --keep 1 --no-eval"
TRAINING += " --print-freq 1 --resume auto"
RANKS = "--world-size 2 --dist-url file://meeting --stall-abort 10 --rendezvous-timeout 10"


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a training whose calls are disturbed."""

    name: str
    flags: str = ""
    ranks: int = 1
    begun: bool = False  # continues a run that has ended
    first_file: str = ""  # count calls once a file is opened whose path contains this


PHASES = {phase.name: phase for phase in (
    Phase("save", first_file=f".tmp.step{STEPS:07}"),  # the last save, beside an earlier checkpoint
    Phase("resume", begun=True),
    Phase("start", RANKS, ranks=2),
    Phase("start-tcp", f"{RANKS} --transport tcp", ranks=2),
)}


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault. As text: PHASE,RANK,KIND,AT,DO."""

    phase: str
    rank: int
    kind: str
    at: int
    do: str  # the text of FAULT_DO

    def __str__(self) -> str:
        return f"{self.phase},{self.rank},{self.kind},{self.at},{self.do}"

    @staticmethod
    def parse(text: str) -> "Fault":
        phase, rank, kind, at, do = text.split(",")
        return Fault(phase, int(rank), kind, int(at), do)

    def must_succeed(self) -> bool:
        """Whether a correct program must not notice. A short socket call is excluded: it loses a message's rest."""
        return self.do.startswith("late") or (self.do == "short" and self.kind in ("read", "write"))


@dataclasses.dataclass
class Ended:
    code: int | None  # negative: a signal; None: it hangs
    text: str


class Jobs:
    """Runs each training in its own folder and compares it with an undisturbed one."""

    def __init__(self, bin_dir: Path) -> None:
        self.bin = bin_dir.resolve()
        self.work = Path(tempfile.mkdtemp(prefix="lockstep_faults"))
        self.digests, self.files = {}, []  # digests by number of steps; the files at the end
        self.begun = self.work / "begun"
        self.begun.mkdir()
        self.counts = {}

    def close(self) -> None:
        shutil.rmtree(self.work)

    def prepare(self, phases: list[str]) -> None:
        """Runs each phase undisturbed and counts its calls: counts[phase][rank][kind]."""
        [begun] = self.run(Phase("begun"), self.begun, {}, BEGUN_STEPS)
        if begun.code != 0:
            raise RuntimeError(f"the run to go on with failed: {begun}")
        for name in phases:
            phase, folder = PHASES[name], self.folder_for(PHASES[name])
            for steps in (STEPS, MORE_STEPS):
                jobs = self.run(phase, folder, {"FAULT_FROM": phase.first_file} if phase.first_file else {}, steps)
                digest = self.digest_of(folder)
                if any(job.code != 0 for job in jobs) or self.digests.setdefault(steps, digest) != digest:
                    raise RuntimeError(f"{name} fails without a fault: {jobs}, digests {digest}, {self.digests}")
                if steps == STEPS:
                    self.counts[name] = [self.read_counts(folder, rank) for rank in range(phase.ranks)]
            self.files = self.files or self.files_of(folder)
            if self.files_of(folder) != self.files:
                raise RuntimeError(f"{name} leaves {self.files_of(folder)}, not {self.files}")

    def folder_for(self, phase: Phase) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.work))
        if phase.begun:
            shutil.copytree(self.begun, folder, symlinks=True, dirs_exist_ok=True)
        return folder

    def run(self, phase: Phase, folder: Path, settings: dict[str, str], steps: int = STEPS,
            faulty_rank: int | None = None) -> list[Ended]:
        """Runs one process per rank. `settings` is added to the environment of `faulty_rank`, or of all ranks."""
        started = []
        for rank in range(phase.ranks):
            line = [self.bin / "train_convnet", *TRAINING.split(), *phase.flags.split(), "--max-steps", str(steps)]
            line += ["-o", "run", *(["--rank", str(rank)] if phase.ranks > 1 else [])]
            environment = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTEP_")}
            environment |= {"LD_PRELOAD": str(self.bin / "fault_shim.so"), "OMP_NUM_THREADS": "1"}
            environment |= {"FAULT_COUNTS": str(self.counts_file(folder, rank))}
            environment |= settings if faulty_rank in (None, rank) else {}
            with open(self.log_file(folder, rank), "wb") as log:
                started.append(subprocess.Popen(line, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log))
        return [self.end_of(process, folder, rank) for rank, process in enumerate(started)]

    def end_of(self, process: subprocess.Popen, folder: Path, rank: int) -> Ended:
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        return Ended(code, self.log_file(folder, rank).read_text(errors="replace"))

    def counts_file(self, folder: Path, rank: int) -> Path:
        return self.work / f"{folder.name}.counts{rank}"

    def log_file(self, folder: Path, rank: int) -> Path:
        return self.work / f"{folder.name}.log{rank}"

    def read_counts(self, folder: Path, rank: int) -> dict[str, int]:
        bytes_read = self.counts_file(folder, rank).read_bytes()
        return dict(zip(KINDS, struct.unpack(f"{len(KINDS)}Q", bytes_read), strict=True))

    @staticmethod
    def digest_of(folder: Path) -> str | None:
        try:
            return json.loads((folder / "run/run.json").read_text()).get("digest")
        except (OSError, ValueError):
            return None

    @staticmethod
    def files_of(folder: Path) -> list[str]:
        names = (str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
        return sorted(re.sub(r"(events\.out\.tfevents)\..*", r"\1", name) for name in names
                      if not name.startswith("run/flight/"))  # one per rank

    def check(self, fault: Fault) -> str:
        """Runs the job with its fault, then continues it without. Returns the promise that it broke, or ''."""
        phase = PHASES[fault.phase]
        folder = self.folder_for(phase)
        settings = {"FAULT_CALL": fault.kind, "FAULT_AT": str(fault.at), "FAULT_DO": fault.do}
        settings |= {"FAULT_FROM": phase.first_file} if phase.first_file else {}
        jobs = self.run(phase, folder, settings, faulty_rank=fault.rank)
        is_hit = self.read_counts(folder, fault.rank)[fault.kind] >= fault.at
        problem = self.problem_of(fault, jobs, is_hit, folder) or self.problem_after(phase, folder)
        shutil.rmtree(folder)
        for rank in range(phase.ranks):
            self.counts_file(folder, rank).unlink()
            self.log_file(folder, rank).unlink()
        return problem

    def problem_of(self, fault: Fault, jobs: list[Ended], is_hit: bool, folder: Path) -> str:
        text = "".join(f"rank {rank}: exit {job.code}\n{job.text}" for rank, job in enumerate(jobs))
        if any(job.code is None for job in jobs):
            return f"hangs\n{text}"
        if re.search("a bug in Lockstep|terminate called|Segmentation", text):
            return f"calls itself faulty\n{text}"
        killed = is_hit and fault.do == "kill"
        for rank, job in enumerate(jobs):
            expected = (-signal.SIGKILL,) if killed and rank == fault.rank else (0, *DOCUMENTED)
            if job.code not in expected:
                return f"ends in another way than the documented ones\n{text}"
        others = [job for rank, job in enumerate(jobs) if not (killed and rank == fault.rank)]
        if not others:
            return ""
        if all(job.code == 0 for job in others):  # a rank may be killed after all work is done
            if PHASES[fault.phase].begun and "=> loaded checkpoint" not in text:
                return f"begins again in place of going on\n{text}"
            wrong = self.digest_of(folder) != self.digests[STEPS]
            return f"exits with 0 and the digest {self.digest_of(folder)}\n{text}" if wrong else ""
        if fault.must_succeed() or not is_hit:
            return f"fails for nothing\n{text}"
        said = all(part in text for part in ("  why: ", "  try: ")) and re.search("lockstep: (error|warning): ", text)
        return "" if said else f"does not say what, why and what to try\n{text}"

    def problem_after(self, phase: Phase, folder: Path) -> str:
        jobs = self.run(phase, folder, {}, MORE_STEPS)
        text = "".join(f"rank {rank}: exit {job.code}\n{job.text}" for rank, job in enumerate(jobs))
        if any(job.code != 0 for job in jobs):
            return f"cannot be gone on with\n{text}"
        if self.digest_of(folder) != self.digests[MORE_STEPS]:
            return f"goes on to the digest {self.digest_of(folder)}\n{text}"
        files = self.files_of(folder)
        return "" if files == self.files else f"leaves {files}, not {self.files}\n{text}"

    def every(self, phase: str) -> list[Fault]:
        """Two faults for each call of a phase: its first error, and a kill."""
        return [Fault(phase, rank, kind, at, do)
                for rank, counts in enumerate(self.counts[phase])
                for kind in KINDS
                for at in range(1, counts[kind] + 1)
                for do in (f"error:{ERRORS[kind][0]}", "kill")]

    def at_random(self, rng: random.Random) -> Fault:
        phase = rng.choice(list(self.counts))
        rank = rng.randrange(PHASES[phase].ranks)
        counts = self.counts[phase][rank]
        kind = rng.choice([kind for kind in KINDS if counts[kind] > 0])
        dos = [f"error:{number}" for number in ERRORS[kind]] + ["kill", "late:300"]
        dos += [f"errors:{LASTING[kind]}"] if kind in LASTING else []
        dos += ["short"] if kind in SHORTENED else []
        return Fault(phase, rank, kind, 1 + rng.randrange(counts[kind]), rng.choice(dos))


def seconds_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system
