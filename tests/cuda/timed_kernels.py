#!/usr/bin/env python3
"""Checks on the emulated machine that bench_kernels times every kernel of a family that training steps launch.

usage: tests/cuda/timed_kernels.py BIN bench.norms|bench.products      products: convolutions and linear layers
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from cuda_symbols import read_run  # noqa: E402

UNITS = {"bench.norms": ("norm_cuda: ",), "bench.products": ("conv_cuda: ", "linear_cuda: ")}
BENCHES = {
    "bench.norms": "^cuda/batch_norm_.*/(f32|f16)/256x(64|2048)x",
    "bench.products": "^cuda/(conv2d_(forward|backward).*/(f32|f16)/(64|256x(64x56x64|128x56)x)"
    "|linear_.*/(f32|f16)/)",
}
NETWORKS = {"train_convnet": "convnet", "train_resnet": "resnet20"}
TRAININGS = [(program, level) for program in NETWORKS for level in ("O0", "O2")]


def launched(program: Path, *arguments: str) -> set[str]:
    """Names of the kernels that a program launches."""
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "kernels"
        environment = os.environ | {"LOCKSTEP_EMULATION_KERNELS": str(noted)}
        line = [str(program), *arguments]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)} ended with {done.returncode}:\n{done.stderr}")
        return {run.name for run in read_run(program, noted)}


def main() -> int:
    folder, test = Path(sys.argv[1]).resolve(), sys.argv[2]
    bench = launched(folder / "bench_kernels_emulated", "--rehearsal", f"--benchmark_filter={BENCHES[test]}")
    launches, missing = 0, set()
    for program, level in TRAININGS:
        step = ["--device", "cuda", "-a", NETWORKS[program], "--dataset", "synthetic", "-b", "2", "--max-steps", "1"]
        step += ["--no-eval", "-j", "0", "--opt-level", level, "--output-dir", "run"]
        found = launched(folder / f"{program}_emulated", *step)
        own = {name for name in found if name.startswith(UNITS[test])}
        launches += len(own)
        missing |= {f"{name}: a step of {program} at {level} runs it, no bench does" for name in own - bench}
    print("\n".join(sorted(missing)) or f"{launches} kernels of training steps are timed")
    return 1 if missing or launches == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
