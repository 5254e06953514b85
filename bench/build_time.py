"""Times builds and CI in clean clones, for bench/build_time.sh."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from side_by_side import RESULTS, ROOT, merge_result, origin

RESULT = RESULTS / "build_time.json"
EDITS = {"change_nn": "nn/layers.cpp", "change_kernels": "kernels/norm/batch_norm.h"}
PARTS = ["train", "train_cuda", *EDITS, "ci_empty", "ci_warm"]


def resident_bytes(session: int) -> int:
    """The memory of all processes of a session. Shared pages count for each process."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) == session:
                total += int((entry / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:  # it has ended
            continue
    return total


class Run:
    """A command in its own session: its time, its peak memory, and when a line of its output began with `until`."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], until: str = ""):
        self.peak_bytes, self.lines = 0, []
        began = time.monotonic()
        child = subprocess.Popen(
            command, cwd=folder, env=os.environ | environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        watcher = threading.Thread(target=self.watch, args=(child,), daemon=True)
        watcher.start()
        try:
            seen = 0.0
            for line in child.stdout:
                self.lines.append(line)
                if until and line.startswith(until):
                    seen = time.monotonic() - began
            status = child.wait()
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGTERM)
            raise
        self.seconds = seen or time.monotonic() - began
        if status != 0 or (until and not seen):
            raise RuntimeError(f"{' '.join(command)} ended with {status}:\n{''.join(self.lines[-40:])}")

    def watch(self, child: subprocess.Popen) -> None:
        while child.poll() is None:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(child.pid))
            time.sleep(0.25)


def clone(folder: Path) -> Path:
    """A fresh clone of the last commit, with the data sets that lie beside this checkout."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    shared, link = ROOT.parent / "shared", folder.parent / "shared"
    if shared.is_dir() and not link.exists():
        link.symlink_to(shared)
    return folder


def add_line(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"// {time.monotonic_ns()}\n")


def summary(run: Run) -> dict:
    return {"seconds": round(run.seconds, 1), "peak_mib": run.peak_bytes >> 20}


def time_training(work: Path, environment: dict[str, str]) -> dict:
    place = clone(work / "train")
    run = Run(["scripts/train.sh"], place, {"CCACHE_DISABLE": "1"} | environment, until="Accuracy is")
    shutil.rmtree(place)
    return summary(run)


def time_change(work: Path, part: str) -> dict:
    """Seconds from a changed line to the end of its folder's unit tests, in an up-to-date build."""
    place = work / "change"
    environment = {"CCACHE_DISABLE": "1"}
    if not place.exists():
        clone(place)
        Run(["scripts/setup.sh", "test"], place, {})
        Run(["cmake", "--preset", "release"], place, {})
        Run(["cmake", "--build", "--preset", "release", "--target", "test_nn", "test_kernels"], place, {})
    seconds = []
    for _ in range(3):
        add_line(place / EDITS[part])
        seconds.append(Run(["scripts/test.sh", "--changed"], place, environment).seconds)
    subprocess.run(["git", "checkout", "-q", "."], cwd=place, check=True)
    Run(["cmake", "--build", "--preset", "release", "--target", "test_nn", "test_kernels"], place, {})
    return {"seconds": round(sorted(seconds)[1], 1)}


def time_ci(work: Path, part: str) -> dict:
    environment = {"CI": "true", "CCACHE_DIR": str(work / "ccache")}
    place = clone(work / "ci")  # one path for both: what ccache holds of debug builds knows it
    if part == "ci_warm":
        add_line(place / "nn/layers.cpp")
    run = Run(["bash", ".ci/run"], place, environment)
    shutil.rmtree(place)
    table = [index for index, line in enumerate(run.lines) if line.startswith("part ")]
    print("".join(run.lines[table[-1] :]) if table else "", end="")
    return summary(run)


def main() -> int:
    parts = sys.argv[1:] or PARTS
    if unknown := [part for part in parts if part not in PARTS]:
        print(f"build_time: no part {', '.join(unknown)}\n  try: {' '.join(PARTS)}", file=sys.stderr)
        return 2
    work = Path(tempfile.mkdtemp(prefix="build_time."))
    try:
        for part in parts:
            if part.startswith("train"):
                cuda = {"LOCKSTEP_CUDA": "ON", "CUDAARCHS": "90"} if part == "train_cuda" else {"LOCKSTEP_CUDA": "OFF"}
                figures = time_training(work, cuda)
            elif part.startswith("ci"):
                if part == "ci_warm" and not (work / "ccache").exists():
                    time_ci(work, "ci_empty")
                figures = time_ci(work, part)
            else:
                figures = time_change(work, part)
            merge_result(RESULT, {part: {**origin("bench/build_time.sh"), **figures}})
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
