#!/usr/bin/env python3
"""Runs every command of the five tutorials (tests/tutorials/commands.tsv) with our program in place of the script.

usage: tests/e2e/tutorial_commands.py BIN

A stand-in for the launcher sets torchrun's variables, with both nodes on one host. A command with a launcher
also runs without it, with the launcher's flags given to our program: it must exit with code 2, and one line must say
which command starts the ranks. Columns: the expected number of ranks, and a pattern that one line must match, if any.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SMALL_PHOTOS = "-b 4 --max-steps 1 --train-crop-size 32 --no-eval --print-freq 1 -j 1"
NETWORK = "-a resnet20"  # in place of the tutorial's, which would take minutes here
PROGRAMS = {  # the tutorials' scripts: program, what stands before their flags, what makes the command short
    "DDP_warmup.py": ("train_convnet", "data --preset ddp-tricks", "-a convnet -b 16 --max-steps 2 --opt-level O0"),
    "imagenet_ddp_apex.py": ("train_resnet", "--preset apex-imagenet", f"{SMALL_PHOTOS} {NETWORK}"),
    "origin_main.py": ("train_convnet", "data --preset demo-baseline", "--max-steps 2"),
    "ddp_main.py": ("train_convnet", "data --preset demo-ddp", "--max-steps 2"),
    "ddp_main_torchrun.py": ("train_convnet", "data --preset demo-ddp", "--max-steps 2"),
    "dataparallel.py": ("train_resnet", f"photos {NETWORK} --parallel dp --devices 2", SMALL_PHOTOS),
    "test.py": ("lockstep", "ranks", ""),
    "distributed.py": ("train_resnet", f"photos {NETWORK}", SMALL_PHOTOS),
    "multiprocessing_distributed.py": ("train_resnet", f"photos {NETWORK}", SMALL_PHOTOS),
    "main_pytorch.py": ("train_resnet", "photos --preset imagenet-main", f"{SMALL_PHOTOS} {NETWORK}"),
    "main.py": ("minimal_example", "", ""),
}
HERE = {"/home/shared/imagenet/raw/": "photos", "192.168.100.11": "127.0.0.1"}
WITHOUT_FLAGS = ("test.py", "main.py")  # these programs learn about ranks only from a launcher
LAUNCHERS = (["python", "-m", "torch.distributed.launch"], ["torchrun"])
STARTS = re.compile(r"try: .*(mpirun -np|torchrun --no-python)")


@dataclass
class Command:
    environment: dict[str, str]
    launcher: list[str]  # the launcher's flags
    script: str
    flags: list[str]

    def line(self, launcher_flags: list[str]) -> list[str]:
        program, before, short = PROGRAMS[self.script]
        return [program, *before.split(), *launcher_flags, *self.flags, *short.split()]


def parse(printed: str) -> Command:
    for there, here in HERE.items():
        printed = printed.replace(there, here)
    words, environment = shlex.split(printed), {}
    while "=" in words[0]:
        name, _, environment[name] = words.pop(0).partition("=")
    script = next(number for number, word in enumerate(words) if word in PROGRAMS)
    head = next((one for one in LAUNCHERS if words[: len(one)] == one), ["python"])
    return Command(environment, words[len(head) : script], words[script], words[script + 1 :])


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@dataclass
class Result:
    codes: list[int]
    said: list[str]  # the output of each rank


def run(bins: Path, line: list[str], environments: list[dict[str, str]], place: str) -> Result:
    """Runs one rank for each of `environments`, all at once."""
    foreign = ("RANK", "WORLD_SIZE", "MASTER_", "LOCAL_", "OMPI_", "PMI", "SLURM_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    ranks = [
        subprocess.Popen(
            [bins / line[0], *line[1:]],
            cwd=place,
            env=clean | environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for environment in environments
    ]
    try:
        said = [rank.communicate(timeout=100)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()  # if another one timed out
    return Result([rank.returncode for rank in ranks], said)


def launched(command: Command) -> list[dict[str, str]]:
    """The environments that torchrun would set for the ranks of all nodes."""
    flags = re.sub(r"(--\w+)=", r"\1 ", " ".join(command.launcher)).split()
    given = {flag: value for flag, value in zip(flags, flags[1:]) if flag.startswith("--")}
    local, nodes = int(given["--nproc_per_node"]), int(given.get("--nnodes", 1))
    return [
        command.environment
        | {
            "RANK": str(rank),
            "WORLD_SIZE": str(local * nodes),
            "LOCAL_RANK": str(rank % local),
            "LOCAL_WORLD_SIZE": str(local),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free,
        }
        for free in [free_port()]
        for rank in range(local * nodes)
    ]


def seen_ranks(said: str) -> int:
    """The number of ranks that a program prints."""
    start_line = re.search(r"· (\d+) ranks? of", said)
    if start_line:
        return int(start_line[1])
    return len(re.findall(r"^ +\d+ +\d+ +\w+ +\d+|^rank \d+ weight", said, re.MULTILINE))


def problem_of(bins: Path, printed: str, ranks: int, answer: str, place: str) -> str | None:
    command = parse(printed)
    line = command.line([])
    if command.launcher and command.script not in WITHOUT_FLAGS:
        bare = run(bins, command.line(command.launcher), [command.environment], place)
        if bare.codes != [2] or not STARTS.search(bare.said[0]):
            return f"without its launcher: exit {bare.codes}\n{bare.said[0]}"
    result = run(bins, line, launched(command) if command.launcher else [command.environment], place)
    said = "".join(result.said)
    if any(result.codes) or seen_ranks(said) != ranks:
        return f"exit {result.codes}, {seen_ranks(said)} ranks, expected {ranks}\n$ {shlex.join(line)}\n{said}"
    return None if re.search(answer, said) else f"no line says: {answer}\n{said}"


def main() -> int:
    bins = Path(sys.argv[1]).resolve()
    rows = (TESTS / "tutorials/commands.tsv").read_text(encoding="utf-8").splitlines()[1:]
    failures = 0
    for row in rows:
        tutorial, printed, ranks, answer = row.split("\t")
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, TESTS / "e2e/make_small_data.py", place], check=True)
            problem = problem_of(bins, printed, int(ranks), answer, place)
        print(f"{tutorial} {'fails' if problem else 'holds'}: {printed}\n{problem or ''}", flush=True)
        failures += problem is not None
    print(f"{len(rows) - failures} of {len(rows)} commands hold")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
