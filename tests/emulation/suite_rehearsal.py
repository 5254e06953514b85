#!/usr/bin/env python3
"""Runs bench/gpu_suite.sh on the emulated machine: each part must pass, and the page must name its measurements.

usage: tests/emulation/suite_rehearsal.py BIN gpu_suite.nccl|gpu_suite.steps|gpu_suite.rest
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# nccl: measurements of two ranks; more ranks need LOCKSTEP_EMULATION_DEVICES=8. rest: the other parts that the emulated
# machine can run.
PARTS = {
    "nccl": ["plan", "nccl-1", "nccl-2", "nccl-4"],
    "steps": ["step", "speed-amp", "speed-rule", "speed-compile", "speed-max-autotune", "speed-f32", "speed-tf32"]
    + ["speed-convnet", "speed-small", "input", "trace"],
    "rest": ["plan", "tests", "memory", "ranks", "norms", "train", "jpeg", "bench"],
}
ABSENT = {"nccl-4"}  # the machine has two devices
FIGURES = {
    "nccl": ["nccl_2_efficiency", "nccl_2_images_per_s", "nccl_2_killed_s"],
    "steps": ["against_cpu_convnet_f16", "images_per_s_amp", "images_per_s_input", "trace_host_ms"],
    "rest": ["largest_batch_of_plan", "norm_forward_of_copy", "norm_backward_of_copy", "convnet_wall_s"]
    + ["jpeg_images_per_s"],
}


def main() -> int:
    programs, kind = Path(sys.argv[1]).resolve(), sys.argv[2].split(".")[-1]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        line = [ROOT / "bench" / "gpu_suite.sh", "--rehearse", "--programs", programs, "--results", results]
        line += ["--only", ",".join(PARTS[kind])]
        done = subprocess.run(line, capture_output=True, text=True)
        print(done.stdout + done.stderr)
        parts = json.loads((results / "gpu_suite.json").read_text())["parts"]
        states = {name: part["state"] for name, part in parts.items()}
        expected = {name: "absent" if name in ABSENT else "passed" for name in PARTS[kind]}
        figures = json.loads((results / "gpu_figures.json").read_text())["figures"]
        missing = [name for name in FIGURES[kind] if name not in figures]
        page = (results / "summary.md").read_text()
        if kind == "nccl" and " 0.998 |" not in page:
            missing.append("the plan's prediction for 2 ranks")
        if states != expected or missing or done.returncode != 0:
            print(f"parts {states}, not {expected}; missing: {missing}; exit status {done.returncode}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
