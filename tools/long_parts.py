"""Runs the tests that are too long for each landing, part by part, and records when each part last passed.

usage: python3 tools/long_parts.py [--lint] [PART...]     (scripts/test.sh --all runs all parts)

A part passed over code that it watches. It runs again only if some of that code has changed since, so a run that was
stopped goes on where it was. Passes are recorded in tests/long/parts.md, which is committed.
--lint: names the parts whose code has changed since their last pass. Fails only if the table's parts are not these.
"""

import datetime
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "long" / "parts.md"
RESULTS = Path("build/test-results")
ROW = re.compile(r"^\| `([\w-]+)` \|.*\| (\w+) \| ([\d-]+) \| ([\d.]+|-) \|$", re.MULTILINE)
NEVER = "never"
CODE = ["core", "kernels", "nn", "comm", "data", "engine", "trainers", "inspect"]


@dataclass(frozen=True)
class Part:
    """Commands, then the tests of ctest with the label long.<part>, if there are such."""

    checks: str
    watches: list[str]
    targets: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    has_label: bool = True


ARCHITECTURES = "build/architectures"
PARTS = {
    "emulation": Part(
        "CUDA kernels under AddressSanitizer and UBSan, and in the reverse order of threads",
        ["core/cuda", "kernels", "tests/cuda", "tests/emulation"],
        targets=["test_cuda_asan", "test_emulation_asan", "mutants_asan"],
    ),
    "architectures": Part(
        "registers, spills and issue use on sm_80, sm_90 and sm_100",
        ["core", "kernels", "tests/cuda"],
        commands=[
            f"cmake --preset release -B {ARCHITECTURES} -DCMAKE_CUDA_ARCHITECTURES=80;90;100 -DLOCKSTEP_TESTS=OFF"
            " -DLOCKSTEP_BENCH=OFF",
            f"cmake --build {ARCHITECTURES} --target lockstep_kernels_cuda",
            f"python3 tools/cuda_resources.py {ARCHITECTURES}/liblockstep_kernels_cuda.a",
            f"python3 tools/cuda_issue.py {ARCHITECTURES}/liblockstep_kernels_cuda.a",
        ],
        has_label=False,
    ),
    "sanitizers": Part(
        "Trainer, the readers of files, the kernels of all levels and the proofs of same bits under sanitizers",
        [*CODE, "tests/comm", "tests/engine", "tests/fuzz", "tests/kernels"],
        commands=[
            "cmake --preset asan-ubsan -DLOCKSTEP_SANITIZED_LEVELS=2;3;4",
            "cmake --build --preset asan-ubsan --target test_comm test_engine test_fuzz test_kernels",
            "ctest --preset asan-ubsan -j 2 -R ^test_(comm|engine|fuzz|kernels)\\.",
            "cmake --preset asan-ubsan -ULOCKSTEP_SANITIZED_LEVELS",
            "cmake --preset tsan",
            "cmake --build --preset tsan --target test_comm",
            "ctest --preset tsan -j 2 -R ^test_comm\\.",
        ],
        has_label=False,
    ),
    "cudnn": Part("emulated training over the emulated cuDNN", [*CODE, "tests/emulation", "tests/emulated_train"]),
    "minimal-build": Part("a build without the optional parts", ["CMakeLists.txt", "cmake", *CODE]),
    "packages": Part("the tarball and the .deb", ["CMakeLists.txt", "cmake", "packaging", "examples"]),
    "toolkits": Part("choosing among CUDA toolkits", ["cmake", "scripts", "tools/nvidia_packages.py"]),
    "recipes": Part("the patches of docs/contributing", ["docs/contributing", *CODE]),
    "reference": Part("the public headers' reference", ["core", "nn", "comm", "data", "engine"]),
    "rehearsals": Part("bench/gpu_suite.sh on the emulated machine", ["bench", "scripts", *CODE]),
}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def changed_files(part: Part, commit: str) -> list[str] | None:
    """Watched files that differ between a commit and the working tree; None if the commit is not in this clone."""
    try:
        return git("diff", "--name-only", commit, "--", *part.watches).splitlines()
    except subprocess.CalledProcessError:
        return None


def read_table() -> dict[str, tuple[str, str, str]]:
    """Part -> commit, date and minutes of its last pass."""
    return {name: (commit, date, minutes) for name, commit, date, minutes in ROW.findall(TABLE.read_text("utf-8"))}


def table_text(passes: dict[str, tuple[str, str, str]]) -> str:
    rows = [
        f"| `{name}` | {part.checks} | {' | '.join(passes.get(name, (NEVER, '-', '-')))} |"
        for name, part in PARTS.items()
    ]
    head = TABLE.read_text("utf-8").split("| part |")[0]
    return head + "\n".join(["| part | checks | commit | date | minutes |", "|---|---|---|---|---|", *rows]) + "\n"


def stale_reason(name: str, passes: dict[str, tuple[str, str, str]]) -> str:
    """Why a part must run again; nothing if its last pass still holds."""
    commit, date, _ = passes.get(name, (NEVER, "", ""))
    if commit == NEVER:
        return "it has never passed"
    changed = changed_files(PARTS[name], commit)
    if changed is None:
        return f"this clone lacks {commit}, at which it passed"
    return f"{len(changed)} files that it watches have changed since {commit} of {date}" if changed else ""


def lint() -> int:
    passes = read_table()
    if passes.keys() != PARTS.keys():
        print(f"{TABLE.relative_to(ROOT)} must have these parts: {', '.join(PARTS)}")
        return 1
    for name in PARTS:
        if reason := stale_reason(name, passes):
            print(f"warning: {name}: {reason}")
    return 0


def run(name: str) -> bool:
    part = PARTS[name]
    commands = [command.split(" ") for command in part.commands]
    if part.targets:
        commands.append(["cmake", "--build", "--preset", "release", "--target", *part.targets])
    if part.has_label:
        junit = ROOT / RESULTS / f"long.{name}.xml"
        commands.append(["ctest", "--test-dir", "build/release", "-j", "2", "--output-on-failure"])
        commands[-1] += ["--no-tests=error", "-L", f"^long\\.{name}$", "--output-junit", str(junit)]
    return all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in commands)


def main() -> int:
    asked = [argument for argument in sys.argv[1:] if argument != "--lint"]
    if unknown := [name for name in asked if name not in PARTS]:
        print(f"long_parts: no part {', '.join(unknown)}\n  try: {' '.join(PARTS)}", file=sys.stderr)
        return 2
    if "--lint" in sys.argv:
        return lint()
    failed = []
    for name in asked or PARTS:
        reason = stale_reason(name, read_table())
        if not reason and not asked:
            print(f"== {name}: its last pass holds, nothing that it watches has changed")
            continue
        print(f"== {name}: {reason or 'asked for'}", flush=True)
        began = time.monotonic()
        if not run(name):
            failed.append(name)
            continue
        if git("status", "--porcelain", "--", *PARTS[name].watches):
            print(f"{name} passed; not recorded, for what it watches is not committed")
            continue
        minutes = f"{(time.monotonic() - began) / 60:.1f}"
        passed = (git("rev-parse", "--short=8", "HEAD"), datetime.date.today().isoformat(), minutes)
        TABLE.write_text(table_text(read_table() | {name: passed}), "utf-8")
    print(f"long parts: failed: {', '.join(failed)}" if failed else "long parts: all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
